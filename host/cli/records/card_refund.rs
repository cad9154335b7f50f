//! `tollhouse card-refund`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List refunds of card verification charges, oldest first
    #[command(after_help = "Example:\n  tollhouse card-refund list --status failed")]
    List(Filter),
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

#[derive(Args, Serialize)]
#[group(skip)]
pub struct Filter {
    #[arg(long)]
    status: Option<Status>,
    #[command(flatten)]
    #[serde(flatten)]
    part: CursorArgs,
}

#[derive(Clone, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// Requested, but not yet confirmed by the provider
    Requested,
    /// Accepted by the provider and in progress
    Pending,
    Done,
    /// Failed; `retry` requests it again
    Failed,
}

const COLUMNS: &str = "refund: id, company, card, status, amount as money, \
    provider: payment_service, provider's reference: service_ref, attempts: tries as number, \
    message, created: created_at";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List(filter) => host.list(&["card-refunds"], &filter, COLUMNS).await,
            Action::Retry { company, refund, yes } => {
                yes.confirm(&format!("Request the refund {refund} from the provider again?"))?;
                let path = ["companies", &company, "card-refunds", &refund, "retry"];
                let refund = host.change(Method::POST, &path, &json!({})).await?;
                let amount = money(&refund["amount"], &refund["currency"]);
                let provider = text(&refund["payment_service"]);
                let message = format!("a refund of {amount} is requested from {provider}");
                Ok(Report::new(refund, message))
            }
        }
    }
}
