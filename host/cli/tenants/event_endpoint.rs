//! `tollhouse event-endpoint`.

use std::convert::Infallible;

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List a company's event endpoints
    List(CompanyArg),
    /// Create an event endpoint; its secret is shown only once
    #[command(after_help = "\
Example:
  tollhouse event-endpoint create 6b018eed9f8a1c2b3d4e5f60 https://books.acme.example/events \\
    --types payment.success,payment.refunded --description 'accounting'")]
    Create {
        /// The company's id
        company: String,
        /// HTTPS URL that receives events
        url: String,
        #[command(flatten)]
        fields: Fields,
    },
    /// Change the given fields of an event endpoint; others are unchanged
    #[command(after_help = "\
An empty value of --types selects all types, one of --description clears it:
  tollhouse event-endpoint edit 6b018eed9f8a1c2b3d4e5f60 6b018eed11aa22bb33cc44dd --types ''")]
    Edit {
        #[command(flatten)]
        named: EndpointArgs,
        #[command(flatten)]
        changes: Changes,
    },
    /// Delete an event endpoint; its pending deliveries are cancelled
    Delete {
        #[command(flatten)]
        named: EndpointArgs,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// Rotate an event endpoint's secret; for a day, events are also signed with the previous one
    RotateSecret {
        #[command(flatten)]
        named: EndpointArgs,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Args)]
#[group(skip)]
pub struct EndpointArgs {
    /// The company's id
    company: String,
    /// The endpoint's id, as `event-endpoint list` shows it
    endpoint: String,
}

#[derive(Args, Serialize)]
#[group(skip)]
pub struct Fields {
    /// Comma-separated types of events, for example payment.success. Default: all
    #[arg(long, value_parser = types)]
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<Value>,
    /// Purpose of the endpoint
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether it receives events. Default for a new endpoint: true
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<bool>,
}

#[derive(Args, Serialize)]
#[group(required = true, multiple = true, args = ["new_url", "types", "description", "active"])]
pub struct Changes {
    /// HTTPS URL that receives events; setting it also enables it if it was disabled
    #[arg(id = "new_url", long = "url", value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    fields: Fields,
}

/// Parses a comma-separated list, which may be empty.
fn types(text: &str) -> Result<Value, Infallible> {
    let types = text.split(',').map(str::trim).filter(|kind| !kind.is_empty());
    Ok(Value::from_iter(types))
}

const COLUMNS: &str = "endpoint: id, url, types as or_all, active, description";
const FIELDS: &str =
    "endpoint: id, URL: url, types as or_all, active, description, created: created_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List(CompanyArg { company }) => {
                host.list(&["companies", &company, "event-endpoints"], &(), COLUMNS).await
            }
            Action::Create { company, url, fields } => {
                let mut body = json!(fields);
                body["url"] = url.into();
                let path = ["companies", &company, "event-endpoints"];
                let created = host.change(Method::POST, &path, &body).await?;
                Ok(Report::record(created, &format!("{FIELDS}, secret"))
                    .with_note("The secret is not shown again."))
            }
            Action::Edit { named: EndpointArgs { company, endpoint }, changes } => {
                let path = ["companies", &company, "event-endpoints", &endpoint];
                let edited = host.change(Method::PATCH, &path, &changes).await?;
                Ok(Report::record(edited, FIELDS))
            }
            Action::Delete { named: EndpointArgs { company, endpoint }, yes } => {
                yes.confirm(&format!(
                    "Delete the event endpoint {endpoint}? Its pending deliveries are cancelled."
                ))?;
                let path = ["companies", &company, "event-endpoints", &endpoint];
                Ok(Report::new(host.delete(&path).await?, "deleted"))
            }
            Action::RotateSecret { named: EndpointArgs { company, endpoint }, yes } => {
                yes.confirm(
                    "Rotate the secret? If it was already rotated within the last day, \
                     the oldest secret stops signing immediately.",
                )?;
                let path =
                    ["companies", &company, "event-endpoints", &endpoint, "secret", "rotate"];
                let rotated = host.change(Method::POST, &path, &json!({})).await?;
                Ok(Report::record(rotated, "secret").with_note(
                    "It is not shown again. \
                     Events are also signed with the previous one for a day.",
                ))
            }
        }
    }
}
