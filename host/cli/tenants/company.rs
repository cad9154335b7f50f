//! `tollhouse company`.

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::price::amount;
use crate::{
    client::host::{HostAccess, HostClient, PageArgs},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Column, Report, left, text},
    },
};

#[derive(Args)]
pub struct Company {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create a company with its first API key; the key and the event secret are shown only once
    #[command(
        after_help = "Example:\n  tollhouse company create 'Acme Lending' --server live --event-url https://acme.example/events"
    )]
    Create {
        /// Name, which the company's customers see
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
        /// Countries whose phone numbers receive its text messages, as comma-separated ISO 3166
        /// codes, for example NG,GH. Default: the countries of the service
        #[arg(long, value_name = "CODES", value_delimiter = ',')]
        countries: Option<Vec<String>>,
    },
    /// List companies, newest first
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a company
    Show {
        /// The company's id
        company: String,
    },
    /// Change the named fields of a company
    #[command(
        after_help = "An empty value clears an optional field:\n  tollhouse company edit 6b018eed9f8a1c2b3d4e5f60 --logo ''"
    )]
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
    Resume {
        /// The company's id
        company: String,
    },
    /// Change the features and the expiry of a company's subscription
    #[command(
        after_help = "Examples:\n  tollhouse company subscription 6b018eed9f8a1c2b3d4e5f60 --expires-at 2027-06-30T00:00:00Z\n  tollhouse company subscription 6b018eed9f8a1c2b3d4e5f60 --features payments"
    )]
    Subscription {
        /// The company's id
        company: String,
        #[command(flatten)]
        terms: SubscriptionChanges,
    },
    /// Rotate a company's event secret; for a day, the former one signs too
    RotateEventSecret {
        /// The company's id
        company: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Clone, ValueEnum)]
enum Server {
    Live,
    Test,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Changes {
    #[arg(long)]
    name: Option<String>,
    /// Webhook endpoint for its events; setting it also enables it if it was disabled
    #[arg(long, value_name = "URL")]
    event_url: Option<String>,
    #[arg(long, value_name = "URL")]
    logo: Option<String>,
    /// Provider if a request names none
    #[arg(long, value_name = "PROVIDER")]
    payment_service: Option<String>,
    /// Wallet balance below which a fee triggers an operator event; 0: never, empty: default
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    low_balance: Option<Value>,
    /// Countries whose phone numbers receive its text messages, as comma-separated ISO 3166 codes,
    /// for example NG,GH. Empty: the countries of the service
    #[arg(long, value_name = "CODES")]
    countries: Option<String>,
    /// Gateway that is tried first for its text messages
    #[arg(long, value_name = "GATEWAY")]
    sms_gateway: Option<String>,
    /// Sender of its text messages
    #[arg(long, value_name = "NAME")]
    sms_sender: Option<String>,
    /// Prefixes of the phone numbers that receive its text messages, instead of the rule by
    /// country: comma-separated, for example +234, or `all`. Empty: the rule by country
    #[arg(long, value_name = "PREFIXES")]
    sms_prefixes: Option<String>,
    /// Fixed one-time password of a test company
    #[arg(long, value_name = "CODE")]
    fixed_otp: Option<String>,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct SubscriptionChanges {
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
    /// Time of expiry, for example 2027-06-30T00:00:00Z, or `never`
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Comma-separated features: cards, identity, otp, payments, recollections and users, or `all`
    #[arg(long)]
    features: Option<String>,
}

impl Company {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::Create { name, server, event_url, logo, countries } => {
                let server = server.to_possible_value().map(|value| value.get_name().to_owned());
                let body = json!({
                    "name": name, "server": server, "event_url": event_url, "logo": logo,
                    "countries": countries,
                });
                let made = host.send_json(Method::POST, &["companies"], &body).await?;
                let shown = [
                    left("API key", |v| text(&v["api_key"])),
                    left("event secret", |v| text(&v["event_secret"])),
                ];
                Ok(Report::record(made, &[&FIELDS[..], &shown].concat())
                    .with_note("The key and the secret are not shown again."))
            }
            Action::List { page } => list_all(&host, &page).await,
            Action::Show { company } => {
                let shown = host.get(&["companies", &company], &[]).await?;
                Ok(Report::record(shown, &FIELDS))
            }
            Action::Edit { company, changes } => edit(&host, &company, changes.body()).await,
            Action::Suspend { company, yes } => {
                yes.confirm(&format!(
                    "Suspend the company {company}? All its requests are rejected."
                ))?;
                edit(&host, &company, json!({ "active": false })).await
            }
            Action::Resume { company } => edit(&host, &company, json!({ "active": true })).await,
            Action::Subscription { company, terms } => {
                let path = ["companies", &company, "subscription"];
                Ok(Report::record(
                    host.send_json(Method::PUT, &path, &terms.body()).await?,
                    &FIELDS,
                ))
            }
            Action::RotateEventSecret { company, yes } => {
                yes.confirm("Rotate the event secret? If it was rotated within the last day, the secret before it stops signing now.")?;
                let path = ["companies", &company, "event-secret", "rotate"];
                let made = host.send_json(Method::POST, &path, &json!({})).await?;
                let fields = [left("event secret", |v| text(&v["event_secret"]))];
                Ok(Report::record(made, &fields).with_note(
                    "It is not shown again. Events are also signed with the former one for a day.",
                ))
            }
        }
    }
}

const FIELDS: [Column; 16] = [
    left("company", |v| text(&v["id"])),
    left("name", |v| text(&v["name"])),
    left("server", |v| text(&v["server"])),
    left("active", |v| text(&v["active"])),
    left("subscription", |v| subscription(&v["subscription"])),
    left("features", |v| list_or_all_features(&v["subscription"]["features"])),
    left("event URL", |v| text(&v["event_url"])),
    left("logo", |v| text(&v["logo"])),
    left("payment service", |v| text(&v["payment_service"])),
    left("low balance", |v| text(&v["low_balance"])),
    left("SMS gateway", |v| text(&v["sms_gateway"])),
    left("SMS sender", |v| text(&v["sms_sender"])),
    left("countries", |v| text(&v["countries"])),
    left("SMS prefixes", |v| text(&v["sms_prefixes"])),
    left("fixed OTP", |v| text(&v["fixed_otp"])),
    left("created", |v| text(&v["created_at"])),
];

fn subscription(subscription: &Value) -> String {
    match (&subscription["active"], &subscription["expires_at"]) {
        (Value::Bool(true), Value::Null) => "active".to_owned(),
        (Value::Bool(true), until) => format!("until {}", text(until)),
        _ => "ended".to_owned(),
    }
}

fn list_or_all_features(some: &Value) -> String {
    match some {
        Value::Null => "all".to_owned(),
        some => text(some),
    }
}

fn list(text: &str) -> Value {
    Value::from_iter(text.split(',').map(str::trim))
}

/// Like `list`; `all` gives `null`.
fn list_or_all(text: &str) -> Value {
    if text == "all" { Value::Null } else { list(text) }
}

/// Like `list`; an empty text gives `null`.
fn list_or_none(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { list(text) }
}

/// Like `list_or_none`; `all` gives `+`, with which every number begins.
fn prefixes(text: &str) -> Value {
    list_or_none(if text == "all" { "+" } else { text })
}

impl Changes {
    fn body(self) -> Value {
        let named = [
            ("name", self.name.map(Value::from)),
            ("event_url", self.event_url.map(Value::from)),
            ("logo", self.logo.map(Value::from)),
            ("payment_service", self.payment_service.map(Value::from)),
            ("low_balance", self.low_balance),
            ("countries", self.countries.as_deref().map(list_or_none)),
            ("sms_gateway", self.sms_gateway.map(Value::from)),
            ("sms_sender", self.sms_sender.map(Value::from)),
            ("sms_prefixes", self.sms_prefixes.as_deref().map(prefixes)),
            ("fixed_otp", self.fixed_otp.map(Value::from)),
        ];
        let named = named.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        Value::Object(named.collect())
    }
}

impl SubscriptionChanges {
    fn body(self) -> Value {
        let mut body = Map::new();
        if let Some(active) = self.active {
            body.insert("active".to_owned(), active.into());
        }
        if let Some(at) = self.expires_at {
            body.insert(
                "expires_at".to_owned(),
                if at == "never" { Value::Null } else { at.into() },
            );
        }
        if let Some(features) = self.features {
            body.insert("features".to_owned(), list_or_all(&features));
        }
        Value::Object(body)
    }
}

async fn edit(host: &HostClient, company: &str, changes: Value) -> Result<Report, Failure> {
    let edited = host.send_json(Method::PATCH, &["companies", company], &changes).await?;
    Ok(Report::record(edited, &FIELDS))
}

async fn list_all(host: &HostClient, page: &PageArgs) -> Result<Report, Failure> {
    let companies = host.get(&["companies"], &page.query()).await?;
    let columns = [
        left("COMPANY", |v| text(&v["id"])),
        left("NAME", |v| text(&v["name"])),
        left("SERVER", |v| text(&v["server"])),
        left("ACTIVE", |v| text(&v["active"])),
        left("SUBSCRIPTION", |v| subscription(&v["subscription"])),
        left("CREATED", |v| text(&v["created_at"])),
    ];
    Ok(Report::page(companies, &columns))
}
