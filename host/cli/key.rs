//! `tollhouse key`.

use clap::Subcommand;
use reqwest::Method;
use serde_json::json;
use tollhouse::config::Remote;

use super::{
    ask::Yes,
    failure::Failure,
    host::Host,
    output::{Report, left, text},
};

#[derive(Subcommand)]
pub enum Command {
    /// Make another API key for a company; it is shown once
    #[command(
        after_help = "Example:\n  tollhouse key create 6b018eed9f8a1c2b3d4e5f60 --label 'second server' --expires-at 2027-01-01T00:00:00Z"
    )]
    Create {
        /// The company's id
        company: String,
        /// What it is for
        #[arg(long)]
        label: Option<String>,
        /// When it ends, like 2027-01-01T00:00:00Z; without it, it does not
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// List a company's keys
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// End a key with the next request
    Revoke {
        /// The company's id
        company: String,
        /// The key's id, as `key list` shows it
        key: String,
        #[command(flatten)]
        yes: Yes,
        #[command(flatten)]
        remote: Remote,
    },
}

impl Command {
    pub async fn run(self) -> Result<Report, Failure> {
        match self {
            Command::Create { company, label, expires_at, remote } => {
                let body = json!({ "label": label, "expires_at": expires_at });
                let host = Host::new(&remote)?;
                let path = ["companies", &*company, "keys"];
                let key = host.send_json(Method::POST, &path, &body).await?;
                Ok(Report::record(
                    key,
                    &[
                        left("key", |v| text(&v["id"])),
                        left("API key", |v| format!("{} (shown this once)", text(&v["api_key"]))),
                        left("expires", |v| text(&v["expires_at"])),
                    ],
                ))
            }
            Command::List { company, remote } => list(&Host::new(&remote)?, &company).await,
            Command::Revoke { company, key, yes, remote } => {
                let host = Host::new(&remote)?;
                yes.ask(&format!(
                    "Revoke the key {key}? Whoever uses it is refused from then on."
                ))?;
                let revoked = host.delete(&["companies", &company, "keys", &key]).await?;
                Ok(Report::new(revoked, "revoked"))
            }
        }
    }
}

async fn list(host: &Host, company: &str) -> Result<Report, Failure> {
    let keys = host.get(&["companies", company, "keys"], &[]).await?;
    let columns = [
        left("KEY", |v| text(&v["id"])),
        left("BEGINS WITH", |v| text(&v["prefix"])),
        left("LABEL", |v| text(&v["label"])),
        left("LAST USED", |v| text(&v["last_used_at"])),
        left("EXPIRES", |v| text(&v["expires_at"])),
        left("REVOKED", |v| text(&v["revoked_at"])),
    ];
    Ok(Report::table(keys.clone(), &keys, &columns))
}
