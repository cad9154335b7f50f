//! `tollhouse trigger`.

use super::access::ApiAccess;
use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "\
The record in the event's data does not exist: its id begins with test-.

Example:
  tollhouse trigger payment.success --set amount=5000 --set reference=order-7")]
pub struct Trigger {
    /// Type of the event, for example payment.success
    #[arg(value_name = "TYPE")]
    kind: String,
    /// A field of the event's data and its value; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,
    #[command(flatten)]
    access: ApiAccess,
}

/// Fields whose values are JSON. All others are texts.
const JSON_FIELDS: [&str; 3] = ["amount", "fees", "metadata"];

fn assignment(text: &str) -> Result<(String, Value), String> {
    let (field, value) = text.split_once('=').ok_or("it must be FIELD=VALUE")?;
    let value = match JSON_FIELDS.contains(&field) {
        true => serde_json::from_str(value).map_err(|error| format!("{field}: {error}"))?,
        false => value.into(),
    };
    Ok((field.to_owned(), value))
}

impl Trigger {
    pub async fn run(self) -> Result {
        let data: serde_json::Map<String, Value> = self.set.into_iter().collect();
        let body = json!({ "type": self.kind, "data": data });
        let host = self.access.client()?;
        let event = host.change(Method::POST, &["event", "trigger"], &body).await?;
        Ok(Report::record(event, "event: id, type: event, at: created_at, data: body/data as json"))
    }
}
