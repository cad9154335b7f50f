//! `tollhouse plugin replay`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tollhouse_plugins::{Manifest, recording::Recording, settings::PluginSettings};
use tollhouse_tools::replay::Replayer;

use super::sign::file_failure;
use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{failure::Failure, output::Report},
};

#[derive(Args)]
pub struct Replay {
    /// The component
    file: PathBuf,
    /// Recorded calls: ids from `plugin recordings`, or files with the output of `plugin recording`
    #[arg(required_unless_present = "last")]
    calls: Vec<String>,
    /// Number of the plugin's latest recorded calls to replay in addition
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    last: Option<u32>,
    #[command(flatten)]
    plugins: PluginSettings,
}

/// A recorded call and its name in the report.
type NamedRecording = (String, Recording);

impl Replay {
    pub async fn run(self, access: &HostAccess) -> Result<Report, Failure> {
        let file = fs::read(&self.file).map_err(|error| file_failure(&self.file, &error))?;
        let name = Manifest::read(&file).map_err(|error| file_failure(&self.file, &error))?.name;
        let (names, calls): (Vec<_>, Vec<_>) = self.read(access, &name).await?.into_iter().unzip();
        let replayer = Replayer::load(file, self.plugins.limits(), &calls).await;
        let replayer = replayer.map_err(|error| file_failure(&self.file, &error))?;
        let mut replayed = Vec::new();
        for (name, call) in names.iter().zip(&calls) {
            replayed.push(replayer.replay(name, call).await);
        }
        let text: Vec<String> = replayed.iter().map(ToString::to_string).collect();
        let report = Report::new(json!(replayed), text.join("\n"));
        let differ = replayed.iter().filter(|one| !one.differences.is_empty()).count();
        Ok(match differ {
            0 => report,
            _ => {
                let all = replayed.len();
                report.with_failure(Failure::refused(format!("{differ} of {all} calls differ")))
            }
        })
    }

    /// Reads the calls from files and, only if necessary, from the host.
    async fn read(
        &self,
        access: &HostAccess,
        plugin: &str,
    ) -> Result<Vec<NamedRecording>, Failure> {
        let mut calls = Vec::new();
        let is_file = |call: &String| call.contains(['/', '.']);
        let (files, mut ids): (Vec<String>, Vec<String>) =
            self.calls.iter().cloned().partition(is_file);
        for file in files {
            calls.push((file.clone(), from_file(Path::new(&file), plugin)?));
        }
        if ids.is_empty() && self.last.is_none() {
            return Ok(calls);
        }
        let host = HostClient::new(access)?;
        if let Some(last) = self.last {
            let latest = latest(&host, plugin, last).await?;
            ids.extend(latest.into_iter().filter(|id| !self.calls.contains(id)));
        }
        for id in ids {
            let call = host.get(&["plugins", plugin, "recordings", &id], &[]).await?;
            let call = serde_json::from_value(call).map_err(|error| {
                Failure::refused(format!("{id} has a format of another version: {error}"))
            })?;
            calls.push((id, call));
        }
        Ok(calls)
    }
}

fn from_file(file: &Path, plugin: &str) -> Result<Recording, Failure> {
    let text = fs::read(file).map_err(|error| file_failure(file, &error))?;
    let call: Recording = serde_json::from_slice(&text)
        .map_err(|error| file_failure(file, &format!("not a recorded call: {error}")))?;
    match call.plugin == plugin {
        true => Ok(call),
        false => Err(file_failure(
            file,
            &format!("a call of {}, but the component is {plugin}", call.plugin),
        )),
    }
}

async fn latest(host: &HostClient, plugin: &str, count: u32) -> Result<Vec<String>, Failure> {
    let query = [("limit", count.to_string())];
    let listed = host.get(&["plugins", plugin, "recordings"], &query).await?;
    let docs = listed["docs"].as_array().into_iter().flatten();
    let ids: Vec<String> = docs.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect();
    match ids.is_empty() {
        true => Err(Failure::refused(format!(
            "no recorded calls of {plugin}: run the host with --plugin-recording-retention-hours"
        ))),
        false => Ok(ids),
    }
}
