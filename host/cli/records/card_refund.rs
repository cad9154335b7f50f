//! `tollhouse card-refund`.

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::json;

use crate::{
    client::host::{CursorArgs, HostAccess, HostClient, choice_name},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Report, left, money, right, text},
    },
};

#[derive(Args)]
pub struct CardRefund {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List refunds of card verification charges, oldest first
    #[command(after_help = "Example:\n  tollhouse card-refund list --status failed")]
    List {
        #[arg(long)]
        status: Option<Status>,
        #[command(flatten)]
        part: CursorArgs,
    },
    /// Request a failed refund again
    #[command(after_help = "\
Do not retry if the customer was refunded by other means: they would be refunded twice.

Example:
  tollhouse card-refund retry 6b018eed9f8a1c2b3d4e5f60 6920280a1f2e3d4c5b6a7980")]
    Retry {
        /// The company's id
        company: String,
        /// The refund's id, as `card-refund list` shows it
        refund: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

#[derive(Clone, ValueEnum)]
enum Status {
    /// Requested, but not yet confirmed by the provider
    Requested,
    /// Accepted by the provider and in progress
    Pending,
    Done,
    /// Failed; `retry` requests it again
    Failed,
}

impl CardRefund {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::List { status, part } => {
                let mut query = part.query();
                query.extend(status.map(|status| ("status", choice_name(&status))));
                list(&host, &query).await
            }
            Action::Retry { company, refund, yes } => {
                yes.confirm(&format!("Request the refund {refund} from the provider again?"))?;
                let path = ["companies", &*company, "card-refunds", &*refund, "retry"];
                let refund = host.send_json(Method::POST, &path, &json!({})).await?;
                let amount = money(&refund["amount"], &refund["currency"]);
                let provider = text(&refund["payment_service"]);
                let said = format!("a refund of {amount} is requested from {provider}");
                Ok(Report::new(refund, said))
            }
        }
    }
}

async fn list(host: &HostClient, query: &[(&str, String)]) -> Result<Report, Failure> {
    let refunds = host.get(&["card-refunds"], query).await?;
    let columns = [
        left("REFUND", |v| text(&v["id"])),
        left("COMPANY", |v| text(&v["company"])),
        left("CARD", |v| text(&v["card"])),
        left("STATUS", |v| text(&v["status"])),
        right("AMOUNT", |v| money(&v["amount"], &v["currency"])),
        left("PROVIDER", |v| text(&v["payment_service"])),
        left("PROVIDER'S REFERENCE", |v| text(&v["service_ref"])),
        right("ATTEMPTS", |v| text(&v["tries"])),
        left("MESSAGE", |v| text(&v["message"])),
        left("CREATED", |v| text(&v["created_at"])),
    ];
    Ok(Report::feed_page(refunds, "refunds", &columns))
}
