//! `tollhouse provider`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::{
    client::host::{HostAccess, HostClient, choice_name},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        input,
        output::{Report, left, text},
    },
};

#[derive(Args)]
pub struct Provider {
    /// The company's id, for its own account; without it, the service account
    #[arg(long, global = true, value_name = "COMPANY")]
    company: Option<String>,
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

/// The mode of the companies that a service account serves.
#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Test,
    Live,
}

#[derive(Subcommand)]
enum Action {
    /// List provider accounts
    List {
        /// Mode of the accounts to list
        #[arg(long)]
        mode: Option<Mode>,
    },
    /// Configure an account; other fields are unchanged
    #[command(after_help = "\
`tollhouse plugin show PROVIDER` shows which credentials a provider needs. They are a JSON object:
  {\"secret_key\": \"sk_live_…\"}

Examples:
  tollhouse provider set provider_a --mode live --credentials-file paystack.json
  tollhouse provider set provider_a --mode test --credentials-file - < paystack-test.json
  tollhouse provider set provider_a --active false --company 6b018eed9f8a1c2b3d4e5f60")]
    Set {
        /// Name of the provider's plugin
        provider: String,
        /// File with the complete credentials; `-` for standard input
        #[arg(long, value_name = "FILE", conflicts_with = "no_credentials")]
        credentials_file: Option<PathBuf>,
        /// Remove the credentials
        #[arg(long)]
        no_credentials: bool,
        /// `true` lets new payments or messages use it
        #[arg(long, value_name = "BOOL")]
        active: Option<bool>,
        /// Mode of the service account [default: test in development mode, else live]
        #[arg(long)]
        mode: Option<Mode>,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// Test an account: verify a payment that does not exist, which has no cost and no effect
    #[command(after_help = "\
The command fails unless the provider accepts the credentials. SMS gateways and registers are not called, because each call of
them costs money.

Examples:
  tollhouse provider test provider_a --mode live
  tollhouse provider test provider_a --company 6b018eed9f8a1c2b3d4e5f60")]
    Test {
        /// Name of the provider's plugin
        provider: String,
        /// Mode of the service account [default: test in development mode, else live]
        #[arg(long)]
        mode: Option<Mode>,
    },
}

impl Provider {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let mut path = match &self.company {
            Some(company) => vec!["companies", company, "providers"],
            None => vec!["providers"],
        };
        match &self.action {
            Action::List { mode } => list(&host, &path, mode.as_ref()).await,
            Action::Test { provider, mode } => {
                path.extend([&**provider, "test"]);
                test(&host, &path, mode.as_ref()).await
            }
            Action::Set { provider, credentials_file, no_credentials, active, mode, yes } => {
                let mut body = Map::new();
                if let Some(file) = credentials_file {
                    let credentials = input::object(file, "{\"secret_key\": \"…\"}")?;
                    body.insert("credentials".to_owned(), credentials);
                }
                if *no_credentials {
                    yes.confirm(
                        "Remove the credentials? Pending payments of the account stay unsettled.",
                    )?;
                    body.insert("credentials".to_owned(), Value::Null);
                }
                if let Some(active) = active {
                    body.insert("active".to_owned(), (*active).into());
                }
                if let Some(mode) = mode {
                    body.insert("mode".to_owned(), choice_name(mode).into());
                }
                path.push(provider);
                let set = host.send_json(Method::PUT, &path, &Value::Object(body)).await?;
                let sends = !set["notification_url"].is_null();
                let report = Report::record(
                    set,
                    &[
                        left("provider", |v| text(&v["provider"])),
                        left("mode", |v| text(&v["mode"])),
                        left("active", |v| text(&v["active"])),
                        left("has credentials", |v| text(&v["has_credentials"])),
                        left("notification URL", |v| text(&v["notification_url"])),
                    ],
                );
                let url = "Configure the notification URL at the provider.";
                Ok(if sends { report.with_note(url) } else { report })
            }
        }
    }
}

async fn test(host: &HostClient, path: &[&str], mode: Option<&Mode>) -> Result<Report, Failure> {
    let body = mode.map_or_else(|| json!({}), |mode| json!({ "mode": choice_name(mode) }));
    let tested = host.send_json(Method::POST, path, &body).await?;
    let (outcome, detail) = (text(&tested["outcome"]), text(&tested["detail"]));
    let report = Report::record(
        tested,
        &[
            left("provider", |v| text(&v["provider"])),
            left("mode", |v| text(&v["mode"])),
            left("outcome", |v| text(&v["outcome"])),
            left("code", |v| text(&v["code"])),
            left("detail", |v| text(&v["detail"])),
        ],
    );
    Ok(match &*outcome {
        "accepted" | "not_testable" => report,
        _ => report.with_failure(Failure::refused(detail)),
    })
}

async fn list(host: &HostClient, path: &[&str], mode: Option<&Mode>) -> Result<Report, Failure> {
    let mut accounts = host.get(path, &[]).await?;
    if let (Some(mode), Some(all)) = (mode, accounts.as_array_mut()) {
        all.retain(|account| account["mode"] == choice_name(mode));
    }
    let columns = [
        left("PROVIDER", |v| text(&v["provider"])),
        left("MODE", |v| text(&v["mode"])),
        left("ACTIVE", |v| text(&v["active"])),
        left("CREDENTIALS", |v| text(&v["has_credentials"])),
        left("NOTIFICATION URL", |v| text(&v["notification_url"])),
    ];
    Ok(Report::table(accounts.clone(), &accounts, &columns))
}
