//! `tollhouse event`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List events of a company, newest first
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List the delivery attempts of an event
    Attempts(EventArgs),
    /// List operator events, oldest first
    #[command(
        alias = "stream",
        after_help = "\
Events are listed about one minute after they are recorded, so that a reader resuming from its
cursor misses none.

Example:
  tollhouse event feed --kind wallet.low_balance"
    )]
    Feed(FeedArgs),
    /// Redeliver an event, including to disabled endpoints
    Redeliver(EventArgs),
}

#[derive(Args)]
#[group(skip)]
pub struct EventArgs {
    /// The company's id
    company: String,
    /// The event's id, as `event list` shows it
    event: String,
}

#[derive(Args, Serialize)]
pub struct FeedArgs {
    /// Kind of event, for example wallet.low_balance
    #[arg(long)]
    kind: Option<String>,
    /// The company's id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    part: CursorArgs,
}

const COLUMNS: &str = "event: id, kind: event, subject, at: created_at, deliveries as deliveries";
const ATTEMPTS: &str = "at: created_at, number as number, status as number, \
    duration: duration_ms as ms, url, error";
const FEED: &str = "at: created_at, kind, company: company_id, data as json";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List { company, page } => {
                host.list(&["companies", &company, "events"], &page, COLUMNS).await
            }
            Action::Attempts(EventArgs { company, event }) => {
                let path = ["companies", &company, "events", &event, "attempts"];
                host.list(&path, &(), ATTEMPTS).await
            }
            Action::Feed(feed) => host.list(&["events"], &feed, FEED).await,
            Action::Redeliver(EventArgs { company, event }) => {
                let path = ["companies", &company, "events", &event, "redeliver"];
                let queued = host.change(Method::POST, &path, &json!({})).await?;
                let message = format!("queued deliveries: {}", queued["deliveries"]);
                Ok(Report::new(queued, message))
            }
        }
    }
}
