//! `tollhouse key`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Create another API key for a company; it is shown only once
    #[command(after_help = "\
Example:
  tollhouse key create 6b018eed9f8a1c2b3d4e5f60 --label 'second server' \\
    --expires-at 2027-01-01T00:00:00Z")]
    Create {
        /// The company's id
        company: String,
        /// Purpose of the key
        #[arg(long)]
        label: Option<String>,
        /// What the key may do, for example payments.read; may be repeated. Default: everything
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// IP address or network from which the key may be used; may be repeated. Default: all
        #[arg(long = "address", value_name = "NETWORK")]
        addresses: Vec<String>,
        /// Time of expiry, for example 2027-01-01T00:00:00Z. Default: never
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// List a company's keys
    List(CompanyArg),
    /// Rotate a key: create a new one, and let the former one expire after an overlap
    #[command(after_help = "\
Example:
  tollhouse key rotate 6b018eed9f8a1c2b3d4e5f60 6b018eed11aa22bb33cc44dd --overlap-hours 48")]
    Rotate {
        #[command(flatten)]
        named: KeyArgs,
        /// Hours during which both keys are valid
        #[arg(long, default_value_t = 24, value_name = "HOURS")]
        overlap_hours: u32,
    },
    /// Revoke a key: it is rejected from the next request on
    Revoke {
        #[command(flatten)]
        named: KeyArgs,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Args)]
#[group(skip)]
pub struct KeyArgs {
    /// The company's id
    company: String,
    /// The key's id, as `key list` shows it
    key: String,
}

const COLUMNS: &str = "key: id, prefix, label, scopes, addresses, last used: last_used_at, expires: expires_at, \
    revoked: revoked_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::Create { company, label, scopes, addresses, expires_at } => {
                let body = json!({
                    "label": label, "expires_at": expires_at, "scopes": given(scopes),
                    "addresses": given(addresses),
                });
                let path = ["companies", &company, "keys"];
                Ok(created(host.change(Method::POST, &path, &body).await?))
            }
            Action::List(CompanyArg { company }) => {
                host.list(&["companies", &company, "keys"], &(), COLUMNS).await
            }
            Action::Rotate { named: KeyArgs { company, key }, overlap_hours } => {
                let body = json!({ "overlap_seconds": u64::from(overlap_hours) * 3600 });
                let path = ["companies", &company, "keys", &key, "rotate"];
                let report = created(host.change(Method::POST, &path, &body).await?);
                let former = text(&report.json["replaces"]["expires_at"]);
                Ok(report.with_note(&format!("The former key is valid until {former}.")))
            }
            Action::Revoke { named: KeyArgs { company, key }, yes } => {
                yes.confirm(&format!(
                    "Revoke the key {key}? Requests that use it are rejected immediately."
                ))?;
                let revoked = host.delete(&["companies", &company, "keys", &key]).await?;
                Ok(Report::new(revoked, "revoked"))
            }
        }
    }
}

/// Returns a list that was given, or `None` for the default.
fn given(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}

fn created(key: Value) -> Report {
    Report::record(key, "key: id, API key: api_key, label, expires: expires_at")
        .with_note("The API key is not shown again.")
}
