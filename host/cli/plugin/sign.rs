//! `tollhouse plugin key` and `tollhouse plugin sign`: create keys and sign components.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tollhouse_platform::random::Random;
use tollhouse_plugins::{Manifest, PrivateKey, SignedComponent};

use crate::terminal::{failure::Failure, output::Report};

#[derive(Args)]
#[command(after_help = "\
Writes the private key (PKCS #8 in PEM) to a file that only its owner may read, and prints the public key, which operators trust under
the author's name.

Example:
  tollhouse plugin key acme.key > acme.pub")]
pub struct Key {
    /// File of the private key; if it exists, it is unchanged and its public key is printed
    file: PathBuf,
}

impl Key {
    pub fn run(self) -> Result<Report, Failure> {
        let public = match self.file.exists() {
            true => private_key(&self.file)?.public(),
            false => {
                let key = PrivateKey::generate(&Random::system());
                let created =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
                let written = created.and_then(|mut file| file.write_all(key.to_pem().as_ref()));
                written.map_err(|error| file_failure(&self.file, &error))?;
                key.public()
            }
        };
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
    /// File of the private key, created by `tollhouse plugin key`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Leave the component unchanged and write the 64-byte signature to FILE.sig
    #[arg(long)]
    detached: bool,
}

impl Sign {
    pub fn run(self) -> Result<Report, Failure> {
        let key = private_key(&self.key)?;
        let file = fs::read(&self.file).map_err(|error| file_failure(&self.file, &error))?;
        let component = SignedComponent::parse(file);
        Manifest::read(&component.wasm).map_err(|why| file_failure(&self.file, &why))?;
        let signature = key.sign(&component.wasm);
        let (target, bytes) = match self.detached {
            true => (signature_path(&self.file), signature.to_vec()),
            false => (self.file, SignedComponent::embed_signature(&component.wasm, &signature)),
        };
        fs::write(&target, bytes).map_err(|error| file_failure(&target, &error))?;
        let (target, digest) = (target.display().to_string(), component.digest());
        let said = format!("{target} is signed: sha256:{digest}");
        Ok(Report::new(json!({ "file": target, "digest": digest }), said))
    }
}

/// Returns the path of a component's detached signature.
pub fn signature_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

fn private_key(file: &Path) -> Result<PrivateKey, Failure> {
    let pem = fs::read_to_string(file).map_err(|error| file_failure(file, &error))?;
    PrivateKey::from_pem(&pem).map_err(|why| file_failure(file, &why))
}

pub fn file_failure(file: &Path, why: &impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {why}", file.display()))
}
