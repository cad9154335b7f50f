//! `tollhouse plugin check`.

use std::{fs, path::PathBuf};

use clap::Args;
use serde_json::json;
use tollhouse_plugins::{SignedComponent, settings::PluginSettings};
use tollhouse_tools::check;

use crate::terminal::{failure::Failure, output::Report};

#[derive(Args)]
pub struct Check {
    /// The component
    file: PathBuf,
    #[command(flatten)]
    plugins: PluginSettings,
}

impl Check {
    pub async fn run(self) -> Result<Report, Failure> {
        let name = self.file.display();
        let wasm =
            fs::read(&self.file).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        let found =
            check::check(SignedComponent::strip_signature(wasm), self.plugins.limits()).await;
        let found = found.map_err(Failure::refused)?;
        let (failed, all) = found.count();
        let report = Report::new(json!(found), found.to_string());
        Ok(match failed {
            0 => report,
            _ => report
                .with_failure(Failure::refused(format!("{name}: {failed} of {all} cases failed"))),
        })
    }
}
