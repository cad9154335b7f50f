//! `tollhouse event`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::host::{CursorArgs, HostAccess, HostClient, PageArgs},
    terminal::{
        failure::Failure,
        output::{Report, left, right, text},
    },
};

#[derive(Args)]
pub struct Event {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List events of a company, newest first
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List the delivery attempts of an event
    Attempts {
        /// The company's id
        company: String,
        /// The event's id, as `event list` shows it
        event: String,
    },
    /// List operator events, oldest first
    #[command(
        after_help = "Events appear after a minute, so that none is missed.\n\nExample:\n  tollhouse event stream --kind wallet.low_balance"
    )]
    Stream(StreamArgs),
    /// Redeliver an event, also to disabled endpoints
    Redeliver {
        /// The company's id
        company: String,
        /// The event's id, as `event list` shows it
        event: String,
    },
}

#[derive(Args)]
struct StreamArgs {
    /// Kind of event, for example wallet.low_balance
    #[arg(long)]
    kind: Option<String>,
    /// The company's id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    part: CursorArgs,
}

impl Event {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::List { company, page } => list(&host, &company, &page).await,
            Action::Attempts { company, event } => attempts(&host, &company, &event).await,
            Action::Stream(reading) => stream(&host, reading).await,
            Action::Redeliver { company, event } => {
                let path = ["companies", &*company, "events", &event, "redeliver"];
                let queued = host.send_json(Method::POST, &path, &json!({})).await?;
                let said = format!("queued deliveries: {}", queued["deliveries"]);
                Ok(Report::new(queued, said))
            }
        }
    }
}

async fn list(host: &HostClient, company: &str, page: &PageArgs) -> Result<Report, Failure> {
    let events = host.get(&["companies", company, "events"], &page.query()).await?;
    let columns = [
        left("EVENT", |v| text(&v["id"])),
        left("KIND", |v| text(&v["event"])),
        left("SUBJECT", |v| text(&v["subject"])),
        left("AT", |v| text(&v["created_at"])),
        left("DELIVERIES", |v| deliveries(&v["deliveries"])),
    ];
    Ok(Report::page(events, &columns))
}

fn deliveries(deliveries: &Value) -> String {
    let each = deliveries.as_array().into_iter().flatten();
    let said: Vec<String> =
        each.map(|one| format!("{} ({})", text(&one["state"]), one["attempts"])).collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}

async fn attempts(host: &HostClient, company: &str, event: &str) -> Result<Report, Failure> {
    let attempts = host.get(&["companies", company, "events", event, "attempts"], &[]).await?;
    let columns = [
        left("AT", |v| text(&v["created_at"])),
        right("NUMBER", |v| text(&v["number"])),
        right("STATUS", |v| text(&v["status"])),
        right("DURATION", |v| format!("{} ms", text(&v["duration_ms"]))),
        left("URL", |v| text(&v["url"])),
        left("ERROR", |v| text(&v["error"])),
    ];
    Ok(Report::table(attempts.clone(), &attempts, &columns))
}

async fn stream(host: &HostClient, reading: StreamArgs) -> Result<Report, Failure> {
    let StreamArgs { kind, company, part } = reading;
    let mut query = part.query();
    let named = [("kind", kind), ("company", company)];
    query.extend(named.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let read = host.get(&["events"], &query).await?;
    let columns = [
        left("AT", |v| text(&v["created_at"])),
        left("KIND", |v| text(&v["kind"])),
        left("COMPANY", |v| text(&v["company_id"])),
        left("DATA", |v| v["data"].to_string()),
    ];
    Ok(Report::feed_page(read, "events", &columns))
}
