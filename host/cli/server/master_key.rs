//! `tollhouse master-key`.

use std::{path::PathBuf, time::Duration};

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{crypto::seal, random::Random};

use super::init::write_new;
use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        failure::Failure,
        output::{Report, left, right, text},
    },
};

/// Delay before a request that was rate-limited is retried.
const RATE_LIMIT_DELAY: Duration = Duration::from_secs(1);

#[derive(Subcommand)]
pub enum Command {
    /// Create a master key
    #[command(after_help = "Example:\n  tollhouse master-key new --out new-master-key")]
    New {
        /// Write the key to this file, which must not exist, instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show the host's keys and the number of values sealed under each
    Status {
        #[command(flatten)]
        access: HostAccess,
    },
    /// Reseal values of former keys while hosts serve; may be repeated
    #[command(after_help = "\
To rotate the master key of all hosts:
  1. add the new key on a line after the current one in every host's master_key_file, and restart the hosts one by one
  2. move it before the current one everywhere, and restart the hosts one by one
  3. tollhouse master-key rotate
  4. when tollhouse master-key status shows no rows under the former key, remove that key everywhere")]
    Rotate {
        #[command(flatten)]
        access: HostAccess,
    },
}

impl Command {
    pub async fn run(self) -> Result<Report, Failure> {
        match self {
            Command::New { out } => new(out),
            Command::Status { access } => status(&HostClient::new(&access)?).await,
            Command::Rotate { access } => rotate(&HostClient::new(&access)?).await,
        }
    }
}

fn new(out: Option<PathBuf>) -> Result<Report, Failure> {
    let key = seal::new_master_key(&Random::system());
    match out {
        None => Ok(Report::new(json!({ "master_key": key }), key)),
        Some(file) => {
            write_new(&file, &key, 0o600)?;
            Ok(Report::new(json!({ "file": file }), format!("created {}", file.display())))
        }
    }
}

async fn status(host: &HostClient) -> Result<Report, Failure> {
    let standing = host.get(&["master-key"], &[]).await?;
    let role = |key: &Value| match key {
        key if *key == standing["key"] => "current",
        key if standing["former"].as_array().is_some_and(|former| former.contains(key)) => "former",
        _ => "unknown to this host",
    };
    let sealed = standing["sealed"].as_array().into_iter().flatten().map(|rows| {
        let mut rows = rows.clone();
        rows["role"] = role(&rows["key"]).into();
        rows
    });
    let columns = [
        left("COLUMN", |v| text(&v["column"])),
        right("ROWS", |v| text(&v["rows"])),
        left("KEY", |v| text(&v["key"])),
        left("ROLE", |v| text(&v["role"])),
    ];
    let sealed = Value::from_iter(sealed);
    let former = match text(&standing["former"]) {
        none if none.is_empty() => "there are no former keys".to_owned(),
        keys => format!("former keys: {keys}"),
    };
    let keys = format!("Current key: {}; {former}.", text(&standing["key"]));
    Ok(Report::table(standing.clone(), &sealed, &columns).with_note(&keys))
}

async fn rotate(host: &HostClient) -> Result<Report, Failure> {
    let (mut resealed, mut unreadable) = (0, 0);
    let mut cursor = Value::Null;
    loop {
        let body = json!({ "cursor": cursor });
        let step = match host.send_json(Method::POST, &["master-key", "rotate"], &body).await {
            // A long rotation exceeds the rate limit of operators.
            Err(Failure::Refused { status: Some(429), .. }) => {
                tokio::time::sleep(RATE_LIMIT_DELAY).await;
                continue;
            }
            step => step?,
        };
        resealed += step["resealed"].as_u64().unwrap_or(0);
        unreadable += step["unreadable"].as_u64().unwrap_or(0);
        cursor = step["cursor"].clone();
        match step["done"].as_bool() {
            Some(true) => break,
            Some(false) => {}
            None => {
                let what = "the host's response does not show whether the rotation is done: check the host's version";
                return Err(Failure::unreachable(what));
            }
        }
    }
    let all = json!({ "resealed": resealed, "unreadable": unreadable });
    let report = Report::new(all, format!("resealed rows: {resealed}"));
    Ok(match unreadable {
        0 => report,
        n => report.with_failure(Failure::refused(format!(
            "{n} rows cannot be opened with their key: see the host's log"
        ))),
    })
}
