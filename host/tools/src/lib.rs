//! Tools for plugin authors: check, bench and replay. They never use the application or a database.

pub mod bench;
pub mod check;
mod excerpt;
pub mod new;
pub mod replay;

/// Names that several tools use.
mod prelude {
    pub use std::{
        collections::BTreeMap,
        fmt,
        sync::{Arc, Mutex, PoisonError},
        time::{Duration, Instant},
    };

    pub use serde::Serialize;
    pub use serde_json::{Value, json};
    pub use tokio::sync::watch;

    pub(crate) use crate::{engine, watch_usage};
    pub use tollhouse_platform::{
        clock::{Clock, Timestamp},
        outbound::egress::{Egress, EgressError, EgressRequest, EgressResponse},
        random::Random,
    };
    pub use tollhouse_plugins::{
        AdmissionCheck, Call, CallError, Credentials, Limits, Manifest, PluginHandle, PluginReply,
        Usage,
    };
}

use self::prelude::*;
use tollhouse_plugins::Plugins;

/// Creates an engine that has loaded nothing.
fn engine(limits: Limits, egress: Egress, clock: Clock, random: Random) -> Result<Plugins, String> {
    let plugins = Plugins::new(limits, egress, clock, random);
    plugins.map_err(|error| format!("the engine cannot be created: {error:#}"))
}

/// Returns the plugin and the usage of its latest call.
#[must_use]
pub fn watch_usage(plugin: PluginHandle) -> (PluginHandle, watch::Receiver<Usage>) {
    let (latest, usage) = watch::channel(Usage::default());
    let report = move |usage| latest.send_modify(|latest| *latest = usage);
    (plugin.with_observer(Arc::new(report)), usage)
}
