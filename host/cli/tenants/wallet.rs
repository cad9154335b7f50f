//! `tollhouse wallet`.

use serde_json::Number;

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Show a company's available and pending balances
    Show(CompanyArg),
    /// Credit a wallet
    #[command(after_help = "\
Example:
  tollhouse wallet credit 6b018eed9f8a1c2b3d4e5f60 100000 --key top-up-2026-11")]
    Credit(PostingArgs),
    /// Debit a wallet; fails if the balance is insufficient
    #[command(after_help = "\
Example:
  tollhouse wallet debit 6b018eed9f8a1c2b3d4e5f60 250.50 --key correction-7 --yes")]
    Debit {
        #[command(flatten)]
        posting: PostingArgs,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// List ledger entries of a company, newest first
    #[command(after_help = "\
Example:
  tollhouse wallet entries 6b018eed9f8a1c2b3d4e5f60 --account wallet \\
    --created 01-11-2026/30-11-2026")]
    Entries {
        /// The company's id
        company: String,
        #[command(flatten)]
        filter: EntryFilter,
    },
}

#[derive(Args, Serialize)]
pub struct PostingArgs {
    /// The company's id
    #[serde(skip)]
    company: String,
    /// Amount in the major unit, with at most two decimals, for example 250.50
    amount: Number,
    /// Idempotency key of this ledger transaction: repeating it has no further effect
    #[arg(long)]
    key: String,
    /// Currency code of three capital letters
    #[arg(long, default_value = "NGN")]
    currency: String,
}

#[derive(Args, Serialize)]
pub struct EntryFilter {
    /// Ledger account: wallet, pending, billing, operator, verification, disputed, fees, suspense
    /// or provider:NAME
    #[arg(long)]
    account: Option<String>,
    /// Date of posting in UTC, DD-MM-YYYY, or a range DD-MM-YYYY/DD-MM-YYYY
    #[arg(long, value_name = "DATES")]
    #[serde(rename = "created_at")]
    created: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

const BALANCES: &str = "currency, balance as money, pending as money";
const ENTRIES: &str = "at: created_at, kind, account, amount as money, reference, key";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::Show(CompanyArg { company }) => {
                let wallet = host.get(&["companies", &company, "wallet"], &()).await?;
                let balances = wallet["balances"].as_object().into_iter().flatten();
                let balances = balances.map(|(currency, held)| {
                    let (balance, pending) = (&held["balance"], &held["pending"]);
                    json!({ "currency": currency, "balance": balance, "pending": pending })
                });
                let text = table(&Value::from_iter(balances), BALANCES);
                Ok(Report::new(wallet, text))
            }
            Action::Credit(posting) => posting.post(host, "credit").await,
            Action::Debit { posting, yes } => {
                let PostingArgs { company, amount, currency, .. } = &posting;
                yes.confirm(&format!("Debit {amount} {currency} from the wallet of {company}?"))?;
                posting.post(host, "debit").await
            }
            Action::Entries { company, filter } => {
                host.list(&["companies", &company, "wallet", "entries"], &filter, ENTRIES).await
            }
        }
    }
}

impl PostingArgs {
    async fn post(self, host: &HostClient, direction: &str) -> Result {
        let path = ["companies", &self.company, "wallet", direction];
        let posted = host.change(Method::POST, &path, &self).await?;
        let balance = money(&posted["balance"], &posted["currency"]);
        Ok(Report::new(posted, format!("the balance is {balance}")))
    }
}
