//! `tollhouse plugin check`.

use tollhouse_plugins::SignedComponent;
use tollhouse_tools::check;

use crate::prelude::*;

#[derive(Args)]
pub struct Check {
    /// The component
    file: PathBuf,
    #[command(flatten)]
    plugins: PluginSettings,
}

impl Check {
    pub async fn run(self) -> Result {
        let wasm = SignedComponent::strip_signature(read_bytes(&self.file)?);
        let found = check::check(wasm, self.plugins.limits()).await.map_err(Failure::refused)?;
        let (failed, all) = found.count();
        let refusal = format!("{}: {failed} of {all} cases failed", self.file.display());
        Ok(Report::new(json!(found), found.to_string()).refused_if(failed > 0, refusal))
    }
}
