//! `tollhouse provider`.

use crate::prelude::*;

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
#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
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
        /// Whether new payments, messages and lookups may use the account
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
Fails if the provider refuses the credentials or cannot be reached, or if its response does not show
whether they are valid. SMS gateways and registers are not called, because each call costs money:
their outcome is `not_testable`, exit code 0.

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

const COLUMNS: &str = "provider, mode, active, credentials: has_credentials, \
    notification URL: notification_url";
const FIELDS: &str = "provider, mode, active, has credentials: has_credentials, \
    notification URL: notification_url";

impl Provider {
    pub async fn run(self) -> Result {
        let host = HostClient::new(&self.access)?;
        let mut path = scope(self.company.as_deref(), "providers");
        let body_with =
            |mode: &Option<Mode>| mode.map_or_else(|| json!({}), |mode| json!({ "mode": mode }));
        match &self.action {
            Action::List { mode } => {
                let mut accounts = host.get(&path, &()).await?;
                if let (Some(mode), Some(all)) = (mode, accounts.as_array_mut()) {
                    all.retain(|account| account["mode"] == json!(mode));
                }
                Ok(Report::list(accounts, COLUMNS))
            }
            Action::Test { provider, mode } => {
                path.extend([provider, "test"]);
                let tested = host.change(Method::POST, &path, &body_with(mode)).await?;
                let accepted = ["accepted", "not_testable"].contains(&&*text(&tested["outcome"]));
                let detail = text(&tested["detail"]);
                let report = Report::record(tested, "provider, mode, outcome, code, detail");
                Ok(report.refused_if(!accepted, detail))
            }
            Action::Set { provider, credentials_file, no_credentials, active, mode, yes } => {
                let mut body = body_with(mode);
                if let Some(file) = credentials_file {
                    body["credentials"] = read_object(file, "{\"secret_key\": \"…\"}")?;
                }
                if *no_credentials {
                    yes.confirm(
                        "Remove the credentials? Pending payments of the account remain unsettled.",
                    )?;
                    body["credentials"] = Value::Null;
                }
                if let Some(active) = active {
                    body["active"] = json!(active);
                }
                path.push(provider);
                let set = host.change(Method::PUT, &path, &body).await?;
                let sends = !set["notification_url"].is_null();
                let report = Report::record(set, FIELDS);
                let url = "Configure the notification URL at the provider.";
                Ok(if sends { report.with_note(url) } else { report })
            }
        }
    }
}
