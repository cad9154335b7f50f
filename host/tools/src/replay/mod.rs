//! `tollhouse plugin replay`: replays recorded calls with another version.

pub mod difference;

use url::Url;

use self::difference::{Difference, differences};
use crate::prelude::*;
use tollhouse_platform::outbound::egress::EgressPolicy;
use tollhouse_plugins::{
    SignedComponent,
    recording::{
        Recording,
        replay::{self, ResponseOrder},
    },
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
        let reject_all =
            Arc::new(|_: &_| Err(EgressError::Forbidden("replays send no requests".to_owned())));
        let egress = egress.with_script(reject_all);
        let plugins = engine(limits, egress, Clock::system(), Random::seeded(SEED))?;
        plugins.admit_without_install(SignedComponent::strip_signature(file)).await.map(Replayer)
    }

    pub async fn replay(&self, name: &str, call: &Recording) -> ReplayResult {
        let did = replay::replay(&self.0, call, ResponseOrder::ByAddress).await;
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
        let verdict = if differences.is_empty() { "the same" } else { "DIFFERS" };
        write!(f, "{verdict:8}  {function}  {call}  ({recorded}, now {tried})")?;
        for difference in differences {
            write!(f, "\n    {difference}")?;
        }
        if !faithful {
            f.write_str("\n    (inexact: with the masked data, even the recorded version behaves differently)")?;
        }
        Ok(())
    }
}
