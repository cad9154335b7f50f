//! `tollhouse plugin publish`: uploads a component to a registry.

use super::registry::Registry;
use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "\
Sign the component first: its signature is published with it. The artifact uses the standard Wasm
OCI layout, which other WebAssembly tools read.

Example:
  tollhouse plugin publish acme.wasm oci://registry.acme.example/plugins/acme:1.0.0")]
pub struct Publish {
    /// The component
    file: PathBuf,
    /// Target reference in the registry
    #[arg(value_name = "oci://…")]
    name: String,
    #[command(flatten)]
    registry: Registry,
}

impl Publish {
    pub async fn run(self) -> Result {
        let component = read_bytes(&self.file)?;
        // Rejects files that no host would install.
        let manifest = Manifest::read(&component).map_err(|why| file_failure(&self.file, why))?;
        let pinned = self.registry.push(&self.name, component, &manifest).await?;
        let message = format!("{} {} is published: {pinned}", manifest.name, manifest.version);
        Ok(Report::new(json!({ "published": pinned }), message))
    }
}
