//! `tollhouse message`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List a company's e-mails and text messages without their content, newest first
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        filter: Filter,
    },
}

#[derive(Args, Serialize)]
#[group(skip)]
pub struct Filter {
    #[arg(long)]
    state: Option<State>,
    #[arg(long)]
    channel: Option<Channel>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

#[derive(Clone, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum State {
    Pending,
    /// Accepted by the mail server or a gateway
    Delivered,
    /// Abandoned and refunded, or rejected before the fee was charged
    Failed,
}

#[derive(Clone, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Channel {
    Email,
    Sms,
}

const COLUMNS: &str = "message: id, channel, for: purpose, to, state, attempts as number, via, \
    reason, created: created_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        let Action::List { company, filter } = self;
        host.list(&["companies", &company, "messages"], &filter, COLUMNS).await
    }
}
