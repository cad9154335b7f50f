//! `tollhouse plugin replay`: replays recorded calls with another version.

pub mod difference;

use std::{fmt, sync::Arc};

use serde::Serialize;
use url::Url;

use crate::replay::difference::{Difference, differences};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{Egress, EgressError, EgressPolicy},
    random::Random,
};
use tollhouse_plugins::{
    Limits, PluginHandle, Plugins, SignedComponent,
    recording::{Recording, replay},
};

const SEED: u64 = 1;

/// A component in a new engine without egress.
pub struct Replayer(PluginHandle);

#[derive(Debug, Serialize)]
pub struct ReplayResult {
    /// Id or file name of the recording.
    pub call: String,
    pub function: &'static str,
    /// The recorded version: `name@version+digest`.
    pub recorded: String,
    /// The replayed version.
    pub tried: String,
    /// The recorded version had the same outcome with the masked call.
    pub faithful: bool,
    /// Empty: the effects were identical.
    pub differences: Vec<Difference>,
}

impl Replayer {
    /// Admits the component. `Err` is the reason against it.
    pub async fn load(
        file: Vec<u8>,
        limits: Limits,
        calls: &[Recording],
    ) -> Result<Replayer, String> {
        let hosts = calls.iter().flat_map(|call| call.settings.values());
        let hosts =
            hosts.filter_map(|setting| Some(Url::parse(setting).ok()?.host_str()?.to_owned()));
        let policy = EgressPolicy { allow_loopback: true, allow_private: hosts.collect() };
        let egress = Egress::new(policy)
            .map_err(|error| format!("the HTTP client cannot be created: {error}"))?;
        let nobody =
            Arc::new(|_: &_| Err(EgressError::Forbidden("replays send no requests".to_owned())));
        let (clock, random) = (Clock::system(), Random::seeded(SEED));
        let plugins = Plugins::new(limits, egress.with_script(nobody), clock, random);
        let plugins =
            plugins.map_err(|error| format!("the engine cannot be created: {error:#}"))?;
        plugins.admit_without_install(SignedComponent::strip_signature(file)).await.map(Replayer)
    }

    /// Returns the plugin's name, by which recordings are found.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.0.manifest().name
    }

    pub async fn replay(&self, name: &str, call: &Recording) -> ReplayResult {
        let did = replay::replay_candidate(&self.0, call).await;
        ReplayResult {
            call: name.to_owned(),
            function: call.call.function(),
            recorded: call.label(),
            tried: self.0.label().to_owned(),
            faithful: call.faithful,
            differences: differences(&call.did, &did),
        }
    }
}

impl fmt::Display for ReplayResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplayResult { call, function, recorded, tried, faithful, differences } = self;
        let said = if differences.is_empty() { "the same" } else { "DIFFERS" };
        write!(f, "{said:8}  {function}  {call}  ({recorded}, now {tried})")?;
        for difference in differences {
            write!(f, "\n    {difference}")?;
        }
        if !faithful {
            f.write_str("\n    (inexact: with the masked data, even the recorded version behaves differently)")?;
        }
        Ok(())
    }
}
