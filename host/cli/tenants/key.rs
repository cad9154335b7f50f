//! `tollhouse key`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Report, left, text},
    },
};

#[derive(Args)]
pub struct Key {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create another API key for a company; it is shown only once
    #[command(
        after_help = "Example:\n  tollhouse key create 6b018eed9f8a1c2b3d4e5f60 --label 'second server' --expires-at 2027-01-01T00:00:00Z"
    )]
    Create {
        /// The company's id
        company: String,
        /// Purpose of the key
        #[arg(long)]
        label: Option<String>,
        /// Time of expiry, for example 2027-01-01T00:00:00Z. Default: never
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// List a company's keys
    List {
        /// The company's id
        company: String,
    },
    /// Rotate a key: create a new one, and let the former one expire after an overlap
    #[command(
        after_help = "Example:\n  tollhouse key rotate 6b018eed9f8a1c2b3d4e5f60 6b018eed11aa22bb33cc44dd --overlap-hours 48"
    )]
    Rotate {
        /// The company's id
        company: String,
        /// The key's id, as `key list` shows it
        key: String,
        /// Hours during which both keys are valid
        #[arg(long, default_value_t = 24, value_name = "HOURS")]
        overlap_hours: u32,
    },
    /// Revoke a key: it is rejected from the next request
    Revoke {
        /// The company's id
        company: String,
        /// The key's id, as `key list` shows it
        key: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

impl Key {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::Create { company, label, expires_at } => {
                let body = json!({ "label": label, "expires_at": expires_at });
                let path = ["companies", &*company, "keys"];
                Ok(made(host.send_json(Method::POST, &path, &body).await?))
            }
            Action::List { company } => list(&host, &company).await,
            Action::Rotate { company, key, overlap_hours } => {
                let body = json!({ "overlap_seconds": u64::from(overlap_hours) * 3600 });
                let path = ["companies", &*company, "keys", &key, "rotate"];
                let report = made(host.send_json(Method::POST, &path, &body).await?);
                let former = text(&report.json["replaces"]["expires_at"]);
                Ok(report.with_note(&format!("The former key is valid until {former}.")))
            }
            Action::Revoke { company, key, yes } => {
                yes.confirm(&format!(
                    "Revoke the key {key}? Requests with it are rejected from then on."
                ))?;
                let revoked = host.delete(&["companies", &company, "keys", &key]).await?;
                Ok(Report::new(revoked, "revoked"))
            }
        }
    }
}

fn made(key: Value) -> Report {
    let fields = [
        left("key", |v| text(&v["id"])),
        left("API key", |v| text(&v["api_key"])),
        left("label", |v| text(&v["label"])),
        left("expires", |v| text(&v["expires_at"])),
    ];
    Report::record(key, &fields).with_note("The API key is not shown again.")
}

async fn list(host: &HostClient, company: &str) -> Result<Report, Failure> {
    let keys = host.get(&["companies", company, "keys"], &[]).await?;
    let columns = [
        left("KEY", |v| text(&v["id"])),
        left("PREFIX", |v| text(&v["prefix"])),
        left("LABEL", |v| text(&v["label"])),
        left("LAST USED", |v| text(&v["last_used_at"])),
        left("EXPIRES", |v| text(&v["expires_at"])),
        left("REVOKED", |v| text(&v["revoked_at"])),
    ];
    Ok(Report::table(keys.clone(), &keys, &columns))
}
