//! Common imports of commands: `use crate::prelude::*`.

pub use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

pub use clap::{Args, Subcommand, ValueEnum};
pub use reqwest::Method;
pub use serde::Serialize;
pub use serde_json::{Value, json};
pub use tollhouse_platform::{clock::Clock, random::Random};
pub use tollhouse_plugins::{Manifest, limits::settings::PluginSettings};

pub use crate::{
    client::{
        arguments::{CompanyArg, CursorArgs, HostAccess, HostAction, OnHost, PageArgs, scope},
        host::HostClient,
    },
    terminal::{
        confirmation::Confirmation,
        failure::{Failure, Result, chain},
        format::{money, text},
        input::{Input, file_failure, read_bytes, read_object, read_text},
        output::{Report, table},
    },
};
