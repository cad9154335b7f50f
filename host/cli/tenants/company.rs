//! `tollhouse company`.

use std::convert::Infallible;

use super::price::amount;
use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Create a company with its first API key; the key and the event secret are shown only once
    #[command(after_help = "\
Example:
  tollhouse company create 'Acme Lending' --server live \\
    --event-url https://acme.example/events")]
    Create(NewCompany),
    /// List companies, newest first
    List(PageArgs),
    /// Show a company
    Show(CompanyArg),
    /// Change the given fields of a company; others are unchanged
    #[command(after_help = "\
An empty value clears an optional field:
  tollhouse company edit 6b018eed9f8a1c2b3d4e5f60 --logo ''")]
    Edit {
        /// The company's id
        company: String,
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Suspend a company: its requests are rejected, but pending payments are still settled
    Suspend {
        /// The company's id
        company: String,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// Resume a suspended company
    Resume(CompanyArg),
    /// Change the features and the expiry of a company's subscription
    #[command(after_help = "\
Examples:
  tollhouse company subscription 6b018eed9f8a1c2b3d4e5f60 --expires-at 2027-06-30T00:00:00Z
  tollhouse company subscription 6b018eed9f8a1c2b3d4e5f60 --features payments")]
    Subscription {
        /// The company's id
        company: String,
        #[command(flatten)]
        terms: SubscriptionChanges,
    },
    /// Rotate a company's event secret; for a day, events are also signed with the previous one
    RotateEventSecret {
        /// The company's id
        company: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Args, Serialize)]
#[group(skip)]
pub struct NewCompany {
    /// Name shown to the company's customers
    name: String,
    /// Mode: live with real money, or test
    #[arg(long)]
    server: Server,
    /// Webhook endpoint for its events
    #[arg(long, value_name = "URL")]
    event_url: Option<String>,
    /// URL of its logo
    #[arg(long, value_name = "URL")]
    logo: Option<String>,
    /// Default provider for requests that do not name one
    #[arg(long, value_name = "PROVIDER")]
    payment_service: Option<String>,
    /// Countries to which the company may send text messages, as comma-separated ISO 3166 codes,
    /// for example NG,GH. Default: the countries of the service
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    countries: Option<Vec<String>>,
}

#[derive(Clone, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Server {
    Live,
    Test,
}

#[derive(Args, Serialize)]
#[group(required = true, multiple = true)]
pub struct Changes {
    /// Name shown to the company's customers
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Webhook endpoint for its events; setting it also enables it if it was disabled
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    event_url: Option<String>,
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    logo: Option<String>,
    /// Default provider for requests that do not name one
    #[arg(long, value_name = "PROVIDER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_service: Option<String>,
    /// Wallet balance below which a fee triggers an operator event; 0: never, empty: default
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    #[serde(skip_serializing_if = "Option::is_none")]
    low_balance: Option<Value>,
    /// Countries to which the company may send text messages, as comma-separated ISO 3166 codes,
    /// for example NG,GH. Empty: the countries of the service
    #[arg(long, value_name = "CODES", value_parser = |text: &str| list(text, ""))]
    #[serde(skip_serializing_if = "Option::is_none")]
    countries: Option<Value>,
    /// Gateway that is tried first for its text messages
    #[arg(long, value_name = "GATEWAY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    sms_gateway: Option<String>,
    /// Sender of its text messages
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    sms_sender: Option<String>,
    /// Prefixes of the phone numbers that receive its text messages, instead of the rule by
    /// country: comma-separated, for example +234, or `all`. Empty: the rule by country
    #[arg(long, value_name = "PREFIXES", value_parser = prefixes)]
    #[serde(skip_serializing_if = "Option::is_none")]
    sms_prefixes: Option<Value>,
    /// Fixed one-time password of a test company
    #[arg(long, value_name = "CODE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_otp: Option<String>,
}

#[derive(Args, Serialize)]
#[group(required = true, multiple = true)]
pub struct SubscriptionChanges {
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<bool>,
    /// Time of expiry, for example 2027-06-30T00:00:00Z, or `never`
    #[arg(long, value_name = "TIME", value_parser = time_or_never)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Value>,
    /// Comma-separated features: cards, identity, otp, payments, recollections and users, or `all`
    #[arg(long, value_parser = |text: &str| list(text, "all"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<Value>,
}

/// Parses a comma-separated list; a text equal to `null_text` gives `null`.
fn list(text: &str, null_text: &str) -> Result<Value, Infallible> {
    let parts = text.split(',').map(str::trim);
    Ok(if text == null_text { Value::Null } else { Value::from_iter(parts) })
}

/// Parses a list of prefixes; `all` gives `+`, with which every number begins.
fn prefixes(text: &str) -> Result<Value, Infallible> {
    list(if text == "all" { "+" } else { text }, "")
}

fn time_or_never(text: &str) -> Result<Value, Infallible> {
    Ok(if text == "never" { Value::Null } else { text.into() })
}

const COLUMNS: &str = "company: id, name, server, active, subscription as subscription, \
    created: created_at";
const FIELDS: &str = "company: id, name, server, active, subscription as subscription, \
    features: subscription/features as or_all, event URL: event_url, logo, \
    payment service: payment_service, low balance: low_balance, SMS gateway: sms_gateway, \
    SMS sender: sms_sender, countries, SMS prefixes: sms_prefixes, fixed OTP: fixed_otp, \
    created: created_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        let company = match self {
            Action::Create(new) => {
                let created = host.change(Method::POST, &["companies"], &new).await?;
                let secrets = "API key: api_key, event secret: event_secret";
                return Ok(Report::record(created, &format!("{FIELDS}, {secrets}"))
                    .with_note("The key and the secret are not shown again."));
            }
            Action::List(page) => return host.list(&["companies"], &page, COLUMNS).await,
            Action::RotateEventSecret { company, yes } => {
                yes.confirm(
                    "Rotate the event secret? If it was already rotated within the last day, \
                     the oldest secret stops signing immediately.",
                )?;
                let path = ["companies", &company, "event-secret", "rotate"];
                let rotated = host.change(Method::POST, &path, &json!({})).await?;
                return Ok(Report::record(rotated, "event secret: event_secret").with_note(
                    "It is not shown again. \
                     Events are also signed with the previous one for a day.",
                ));
            }
            Action::Show(CompanyArg { company }) => host.get(&["companies", &company], &()).await?,
            Action::Edit { company, changes } => {
                host.change(Method::PATCH, &["companies", &company], &changes).await?
            }
            Action::Suspend { company, yes } => {
                yes.confirm(&format!(
                    "Suspend the company {company}? All its requests are rejected."
                ))?;
                let body = json!({ "active": false });
                host.change(Method::PATCH, &["companies", &company], &body).await?
            }
            Action::Resume(CompanyArg { company }) => {
                let body = json!({ "active": true });
                host.change(Method::PATCH, &["companies", &company], &body).await?
            }
            Action::Subscription { company, terms } => {
                host.change(Method::PUT, &["companies", &company, "subscription"], &terms).await?
            }
        };
        Ok(Report::record(company, FIELDS))
    }
}
