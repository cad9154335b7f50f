//! Names that most modules of this crate use.

pub(crate) use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub(crate) use schemars::JsonSchema;
pub(crate) use serde::{Deserialize, Serialize};

pub(crate) use crate::{
    Call, CallError, Credentials, Fault, FaultCategory, Manifest, Plugin, PluginHandle, PluginKind,
    Plugins,
};
pub(crate) use tollhouse_platform::{
    clock::{Clock, Timestamp},
    error::Error,
    outbound::egress::{EgressError, EgressRequest, EgressResponse},
    random::Random,
    store::{Json, Store, Tx},
};
