//! The source of a component: a file with an optional detached signature, or a registry.

use tollhouse_plugins::SIGNATURE_BYTES;

use super::{
    registry::{self, Registry},
    sign::SIGNATURE_EXTENSION,
};
use crate::prelude::*;

#[derive(Args)]
pub struct ComponentSource {
    /// The component: a file, or its `oci://` reference in a registry
    #[arg(value_name = "FILE|oci://…")]
    component: String,
    #[command(flatten)]
    registry: Registry,
}

impl ComponentSource {
    /// Reads the component and its detached signature, in hexadecimal.
    pub async fn read(&self) -> Result<(Vec<u8>, Option<String>)> {
        if self.component.starts_with(registry::SCHEME) {
            return Ok((self.registry.pull(&self.component).await?, None));
        }
        let file = Path::new(&self.component);
        let component = read_bytes(file)?;
        let signature = file.with_added_extension(SIGNATURE_EXTENSION);
        if !signature.exists() {
            return Ok((component, None));
        }
        let bytes = read_bytes(&signature)?;
        match bytes.len() {
            SIGNATURE_BYTES => Ok((component, Some(hex::encode(bytes)))),
            _ => {
                let what = format!("a signature must have {SIGNATURE_BYTES} bytes");
                Err(file_failure(&signature, what))
            }
        }
    }
}
