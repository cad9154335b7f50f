//! `tollhouse plugin key` and `tollhouse plugin sign`: create keys and sign components.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt};

use tollhouse_plugins::{PrivateKey, SignedComponent};

use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "\
Writes the private key (PKCS #8 in PEM) to a file that only its owner may read, and prints the
public key, which operators trust under the author's name.

Example:
  tollhouse plugin key acme.key > acme.pub")]
pub struct Key {
    /// Private key file. If it exists, it is kept and only its public key is printed
    file: PathBuf,
}

impl Key {
    pub fn run(self) -> Result {
        let key = match self.file.exists() {
            true => private_key(&self.file)?,
            false => {
                let key = PrivateKey::generate(&Random::system());
                let created =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
                let written = created.and_then(|mut file| file.write_all(key.to_pem().as_ref()));
                written.map_err(|error| file_failure(&self.file, error))?;
                key
            }
        };
        let public = key.public();
        Ok(Report::new(json!({ "key": public.to_line() }), public.to_pem()))
    }
}

#[derive(Args)]
#[command(after_help = "\
An existing signature is replaced.

Example:
  tollhouse plugin sign acme.wasm --key acme.key")]
pub struct Sign {
    /// The component
    file: PathBuf,
    /// Private key file, created by `tollhouse plugin key`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Leave the component unchanged and write the 64-byte signature to FILE.sig
    #[arg(long)]
    detached: bool,
}

impl Sign {
    pub fn run(self) -> Result {
        let key = private_key(&self.key)?;
        let component = SignedComponent::parse(read_bytes(&self.file)?);
        Manifest::read(&component.wasm).map_err(|why| file_failure(&self.file, why))?;
        let signature = key.sign(&component.wasm);
        let (target, bytes) = match self.detached {
            true => (self.file.with_added_extension(SIGNATURE_EXTENSION), signature.to_vec()),
            false => (self.file, SignedComponent::embed_signature(&component.wasm, &signature)),
        };
        fs::write(&target, bytes).map_err(|error| file_failure(&target, error))?;
        let (target, digest) = (target.display().to_string(), component.digest());
        let message = format!("{target} is signed: sha256:{digest}");
        Ok(Report::new(json!({ "file": target, "digest": digest }), message))
    }
}

/// Extension of a detached signature, appended to the component's file name.
pub const SIGNATURE_EXTENSION: &str = "sig";

fn private_key(file: &Path) -> Result<PrivateKey> {
    PrivateKey::from_pem(&read_text(file)?).map_err(|why| file_failure(file, why))
}
