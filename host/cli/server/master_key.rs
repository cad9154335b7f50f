//! `tollhouse master-key`.

use tollhouse_platform::crypto::seal;

use super::init::write_new;
use crate::prelude::*;

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
    Status(HostAccess),
    /// Reseal values sealed under former keys. Hosts keep serving; safe to run again
    #[command(after_help = "\
To rotate the master key of all hosts:
  1. add the new key on a line after the current one in every host's master_key_file, and restart
     the hosts one by one
  2. move it before the current one everywhere, and restart the hosts one by one
  3. tollhouse master-key rotate
  4. when tollhouse master-key status shows no rows under the former key, remove that key
     everywhere")]
    Rotate(HostAccess),
}

impl Command {
    pub async fn run(self) -> Result {
        match self {
            Command::New { out } => new(out),
            Command::Status(access) => status(&HostClient::new(&access)?).await,
            Command::Rotate(access) => rotate(&HostClient::new(&access)?).await,
        }
    }
}

fn new(out: Option<PathBuf>) -> Result {
    let key = seal::new_master_key(&Random::system());
    match out {
        None => Ok(Report::new(json!({ "master_key": key }), key)),
        Some(file) => {
            write_new(&file, &key, 0o600)?;
            Ok(Report::new(json!({ "file": file }), format!("created {}", file.display())))
        }
    }
}

async fn status(host: &HostClient) -> Result {
    let keys = host.get(&["master-key"], &()).await?;
    let role = |key: &Value| match key {
        key if *key == keys["key"] => "current",
        key if keys["former"].as_array().is_some_and(|former| former.contains(key)) => "former",
        _ => "unknown to this host",
    };
    let mut sealed = keys["sealed"].clone();
    for rows in sealed.as_array_mut().into_iter().flatten() {
        rows["role"] = role(&rows["key"]).into();
    }
    let former = match text(&keys["former"]) {
        none if none.is_empty() => "there are no former keys".to_owned(),
        former => format!("former keys: {former}"),
    };
    let note = format!("Current key: {}; {former}.", text(&keys["key"]));
    let text = table(&sealed, "column, rows as number, key, role");
    Ok(Report::new(keys, text).with_note(&note))
}

async fn rotate(host: &HostClient) -> Result {
    let (mut resealed, mut unreadable) = (0, 0);
    let mut cursor = Value::Null;
    loop {
        let body = json!({ "cursor": cursor });
        let step = match host.change(Method::POST, &["master-key", "rotate"], &body).await {
            // A long rotation exceeds the rate limit of operators.
            Err(failure) if failure.status == Some(429) => {
                tokio::time::sleep(RATE_LIMIT_DELAY).await;
                continue;
            }
            step => step?,
        };
        resealed += step["resealed"].as_u64().unwrap_or(0);
        unreadable += step["unreadable"].as_u64().unwrap_or(0);
        cursor = step["cursor"].clone();
        let is_done = step["done"].as_bool().ok_or_else(|| {
            Failure::unreachable(
                "the host's response has no field `done`: \
                 the host may run another version of Tollhouse",
            )
        })?;
        if is_done {
            break;
        }
    }
    let all = json!({ "resealed": resealed, "unreadable": unreadable });
    let refusal =
        format!("rows that cannot be opened with their key: {unreadable}; see the host's log");
    let report = Report::new(all, format!("resealed rows: {resealed}"));
    Ok(report.refused_if(unreadable > 0, refusal))
}
