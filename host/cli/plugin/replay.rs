//! `tollhouse plugin replay`.

use tollhouse_plugins::recording::Recording;
use tollhouse_tools::replay::Replayer;

use crate::prelude::*;

#[derive(Args)]
pub struct Replay {
    /// The component
    file: PathBuf,
    /// Recorded calls: ids from `plugin recordings`, or files with the output of `plugin recording`
    #[arg(required_unless_present = "last")]
    calls: Vec<String>,
    /// Also replay this many of the plugin's latest recorded calls
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    last: Option<u32>,
    #[command(flatten)]
    plugins: PluginSettings,
}

impl Replay {
    pub async fn run(self, access: &HostAccess) -> Result {
        let file = read_bytes(&self.file)?;
        let wrong = |why: String| file_failure(&self.file, why);
        let plugin = Manifest::read(&file).map_err(wrong)?.name;
        let calls = self.read(access, &plugin).await?;
        let (names, calls): (Vec<String>, Vec<Recording>) = calls.into_iter().unzip();
        let replayer = Replayer::load(file, self.plugins.limits(), &calls).await.map_err(wrong)?;
        let mut replayed = Vec::new();
        for (name, call) in names.iter().zip(&calls) {
            replayed.push(replayer.replay(name, call).await);
        }
        let text: Vec<String> = replayed.iter().map(ToString::to_string).collect();
        let differ = replayed.iter().filter(|one| !one.differences.is_empty()).count();
        let refusal = format!("calls that differ: {differ} of {}", replayed.len());
        Ok(Report::new(json!(replayed), text.join("\n")).refused_if(differ > 0, refusal))
    }

    /// Reads the calls from files and, only if necessary, from the host, each with its name.
    async fn read(&self, access: &HostAccess, plugin: &str) -> Result<Vec<(String, Recording)>> {
        let mut calls = Vec::new();
        let is_file = |call: &&String| call.contains(['/', '.']);
        let (files, ids): (Vec<&String>, Vec<&String>) = self.calls.iter().partition(is_file);
        for file in files {
            calls.push((file.clone(), from_file(Path::new(file), plugin)?));
        }
        if ids.is_empty() && self.last.is_none() {
            return Ok(calls);
        }
        let host = HostClient::new(access)?;
        let mut ids: Vec<String> = ids.into_iter().cloned().collect();
        if let Some(last) = self.last {
            let latest = latest(&host, plugin, last).await?;
            ids.extend(latest.into_iter().filter(|id| !self.calls.contains(id)));
        }
        for id in ids {
            let call = host.get(&["plugins", plugin, "recordings", &id], &()).await?;
            let call = serde_json::from_value(call).map_err(|error| {
                Failure::refused(format!(
                    "recording {id} was written by another version of Tollhouse: {error}"
                ))
            })?;
            calls.push((id, call));
        }
        Ok(calls)
    }
}

fn from_file(file: &Path, plugin: &str) -> Result<Recording> {
    let call: Recording = serde_json::from_slice(&read_bytes(file)?)
        .map_err(|error| file_failure(file, format!("not a recorded call: {error}")))?;
    if call.plugin != plugin {
        let what = format!("a call of {}, but the component is {plugin}", call.plugin);
        return Err(file_failure(file, what));
    }
    Ok(call)
}

async fn latest(host: &HostClient, plugin: &str, count: u32) -> Result<Vec<String>> {
    let listed = host.get(&["plugins", plugin, "recordings"], &[("limit", count)]).await?;
    let docs = listed["docs"].as_array().into_iter().flatten();
    let ids: Vec<String> = docs.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect();
    if ids.is_empty() {
        return Err(Failure::refused(format!(
            "no calls of {plugin} are recorded: \
             enable recording on the host with --plugin-recording-retention-hours"
        )));
    }
    Ok(ids)
}
