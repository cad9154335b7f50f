//! The source of a component: a file with an optional detached signature, or a registry.

use std::{fs, path::Path};

use clap::Args;
use tollhouse_plugins::SIGNATURE_BYTES;

use super::sign::{file_failure, signature_path};
use crate::{
    plugin::registry::{self, Registry},
    terminal::failure::Failure,
};

#[derive(Args)]
pub struct ComponentSource {
    /// The component: a file, or its `oci://` reference in a registry
    #[arg(value_name = "FILE|oci://…")]
    component: String,
    #[command(flatten)]
    registry: Registry,
}

/// A component and its detached signature.
pub struct ComponentFile {
    pub file: Vec<u8>,
    /// In hexadecimal.
    pub signature: Option<String>,
}

impl ComponentSource {
    pub async fn read(&self) -> Result<ComponentFile, Failure> {
        if self.component.starts_with(registry::SCHEME) {
            let file = self.registry.pull(&self.component).await?;
            return Ok(ComponentFile { file, signature: None });
        }
        let name = Path::new(&self.component);
        let file = fs::read(name).map_err(|error| file_failure(name, &error))?;
        Ok(ComponentFile { file, signature: read_detached_signature(name)? })
    }
}

fn read_detached_signature(name: &Path) -> Result<Option<String>, Failure> {
    let name = signature_path(name);
    if !name.exists() {
        return Ok(None);
    }
    let signature = fs::read(&name).map_err(|error| file_failure(&name, &error))?;
    match signature.len() {
        SIGNATURE_BYTES => Ok(Some(hex::encode(signature))),
        _ => Err(file_failure(&name, &format!("a signature must have {SIGNATURE_BYTES} bytes"))),
    }
}

impl ComponentFile {
    /// Appends the signature to the query of a request.
    pub fn query(&self, rest: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
        let signature = self.signature.iter().map(|signature| ("signature", signature.clone()));
        rest.iter().cloned().chain(signature).collect()
    }
}
