//! `tollhouse wallet`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Number, Value, json};

use crate::{
    client::host::{HostAccess, HostClient, PageArgs},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Report, left, money, right, text},
    },
};

#[derive(Args)]
pub struct Wallet {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show a company's available and pending balances
    Show {
        /// The company's id
        company: String,
    },
    /// Credit a wallet
    #[command(
        after_help = "Example:\n  tollhouse wallet credit 6b018eed9f8a1c2b3d4e5f60 100000 --key top-up-2026-11"
    )]
    Credit {
        #[command(flatten)]
        movement: PostingArgs,
    },
    /// Debit a wallet; fails if the balance is insufficient
    #[command(
        after_help = "Example:\n  tollhouse wallet debit 6b018eed9f8a1c2b3d4e5f60 250.50 --key correction-7 --yes"
    )]
    Debit {
        #[command(flatten)]
        movement: PostingArgs,
        #[command(flatten)]
        yes: Confirmation,
    },
    /// List ledger entries of a company, newest first
    #[command(
        after_help = "Example:\n  tollhouse wallet entries 6b018eed9f8a1c2b3d4e5f60 --account wallet --created 01-11-2026/30-11-2026"
    )]
    Entries {
        /// The company's id
        company: String,
        #[command(flatten)]
        filter: EntryFilter,
        #[command(flatten)]
        page: PageArgs,
    },
}

#[derive(Args)]
struct PostingArgs {
    /// The company's id
    company: String,
    /// Amount in the major unit, with at most two decimals, for example 250.50
    amount: Number,
    /// Unique key of this ledger transaction: a repeated request has no further effect
    #[arg(long)]
    key: String,
    /// Currency code of three capital letters
    #[arg(long, default_value = "NGN")]
    currency: String,
}

#[derive(Args)]
struct EntryFilter {
    /// Ledger account: wallet, pending, billing, operator or provider:NAME
    #[arg(long)]
    account: Option<String>,
    /// Day of posting in UTC, DD-MM-YYYY, or first and last day with a slash between
    #[arg(long, value_name = "DAYS")]
    created: Option<String>,
}

impl Wallet {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::Show { company } => show(&host, &company).await,
            Action::Credit { movement } => movement.post(&host, "credit").await,
            Action::Debit { movement, yes } => {
                let PostingArgs { company, amount, currency, .. } = &movement;
                yes.confirm(&format!("Debit {amount} {currency} from the wallet of {company}?"))?;
                movement.post(&host, "debit").await
            }
            Action::Entries { company, filter, page } => {
                entries(&host, &company, filter, &page).await
            }
        }
    }
}

async fn show(host: &HostClient, company: &str) -> Result<Report, Failure> {
    let wallet = host.get(&["companies", company, "wallet"], &[]).await?;
    let balances = wallet["balances"].as_object().into_iter().flatten();
    let balances = balances.map(|(currency, held)| {
        json!({ "currency": currency, "balance": held["balance"], "pending": held["pending"] })
    });
    let columns = [
        left("CURRENCY", |v| text(&v["currency"])),
        right("BALANCE", |v| money(&v["balance"], &v["currency"])),
        right("PENDING", |v| money(&v["pending"], &v["currency"])),
    ];
    Ok(Report::table(wallet.clone(), &Value::from_iter(balances), &columns))
}

impl PostingArgs {
    async fn post(self, host: &HostClient, direction: &str) -> Result<Report, Failure> {
        let body = json!({ "amount": self.amount, "key": self.key, "currency": self.currency });
        let path = ["companies", &self.company, "wallet", direction];
        let moved = host.send_json(Method::POST, &path, &body).await?;
        let balance = money(&moved["balance"], &moved["currency"]);
        Ok(Report::new(moved, format!("the balance is {balance}")))
    }
}

async fn entries(
    host: &HostClient,
    company: &str,
    filter: EntryFilter,
    page: &PageArgs,
) -> Result<Report, Failure> {
    let mut query = page.query();
    let filter = [("account", filter.account), ("created_at", filter.created)];
    query.extend(filter.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let entries = host.get(&["companies", company, "wallet", "entries"], &query).await?;
    let columns = [
        left("AT", |v| text(&v["created_at"])),
        left("KIND", |v| text(&v["kind"])),
        left("ACCOUNT", |v| text(&v["account"])),
        right("AMOUNT", |v| money(&v["amount"], &v["currency"])),
        left("REFERENCE", |v| text(&v["reference"])),
        left("KEY", |v| text(&v["key"])),
    ];
    Ok(Report::page(entries, &columns))
}
