//! `tollhouse provider`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use super::{
    ask::Yes,
    failure::Failure,
    host::{Access, Host},
    input,
    output::{Report, left, text},
};

#[derive(Args)]
pub struct Provider {
    /// The account of this company, by its id, in place of the service's own
    #[arg(long, global = true, value_name = "COMPANY")]
    company: Option<String>,
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List accounts at providers
    List,
    /// Set up an account; what is not named stays as it is
    #[command(after_help = "\
`tollhouse plugin show PROVIDER` says which credentials a provider needs. They are a JSON object:
  {\"secret_key\": \"sk_live_…\"}

Examples:
  tollhouse provider set provider_a --credentials-file paystack.json
  tollhouse provider set provider_a --credentials-file - < paystack.json
  tollhouse provider set provider_a --active false --company 6b018eed9f8a1c2b3d4e5f60")]
    Set {
        /// The name of its plugin
        provider: String,
        /// Holds the credentials, all of them; `-` for standard input
        #[arg(long, value_name = "FILE", conflicts_with = "no_credentials")]
        credentials_file: Option<PathBuf>,
        /// Take the credentials away
        #[arg(long)]
        no_credentials: bool,
        /// Whether payments may be begun, or messages sent, through it
        #[arg(long, value_name = "BOOL")]
        active: Option<bool>,
        #[command(flatten)]
        yes: Yes,
    },
}

impl Provider {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = Host::new(&self.access)?;
        let mut path = match &self.company {
            Some(company) => vec!["companies", company, "providers"],
            None => vec!["providers"],
        };
        match &self.action {
            Action::List => list(&host, &path).await,
            Action::Set { provider, credentials_file, no_credentials, active, yes } => {
                let mut body = Map::new();
                if let Some(file) = credentials_file {
                    let credentials = input::object(file, "{\"secret_key\": \"…\"}")?;
                    body.insert("credentials".to_owned(), credentials);
                }
                if *no_credentials {
                    yes.ask("Take the credentials away? Payments that are pending on them stay unsettled.")?;
                    body.insert("credentials".to_owned(), Value::Null);
                }
                if let Some(active) = active {
                    body.insert("active".to_owned(), (*active).into());
                }
                path.push(provider);
                let set = host.send_json(Method::PUT, &path, &Value::Object(body)).await?;
                let sends = !set["notification_url"].is_null();
                let report = Report::record(
                    set,
                    &[
                        left("provider", |v| text(&v["provider"])),
                        left("active", |v| text(&v["active"])),
                        left("has credentials", |v| text(&v["has_credentials"])),
                        left("notification URL", |v| text(&v["notification_url"])),
                    ],
                );
                let url = "Enter the notification URL at the provider.";
                Ok(if sends { report.and(url) } else { report })
            }
        }
    }
}

async fn list(host: &Host, path: &[&str]) -> Result<Report, Failure> {
    let accounts = host.get(path, &[]).await?;
    let columns = [
        left("PROVIDER", |v| text(&v["provider"])),
        left("ACTIVE", |v| text(&v["active"])),
        left("CREDENTIALS", |v| text(&v["has_credentials"])),
        left("NOTIFICATION URL", |v| text(&v["notification_url"])),
    ];
    Ok(Report::table(accounts.clone(), &accounts, &columns))
}
