//! `tollhouse loan`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use crate::{
    client::host::{CursorArgs, HostAccess, HostClient},
    terminal::{
        failure::Failure,
        input::Input,
        output::{Report, left, money, right, text},
    },
};

#[derive(Args)]
pub struct Loan {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show a loan and its schedule
    Show(LoanArgs),
    /// Create a loan of another system, or replace it and keep its repayments
    #[command(after_help = "\
A loan is a JSON object. Its amount is the sum of its schedule:
  {\"user_id\": \"ada\", \"amount\": 300, \"currency\": \"NGN\", \"disbursed\": true,
   \"schedule\": [{\"due_date\": \"2026-12-01\", \"amount\": 100}, {\"due_date\": \"2027-01-01\", \"amount\": 200}]}

Example:
  tollhouse loan put 6b018eed9f8a1c2b3d4e5f60 loan-1 --file loan-1.json")]
    Put {
        #[command(flatten)]
        named: LoanArgs,
        #[command(flatten)]
        input: Input,
    },
    /// List repayments, oldest first
    #[command(after_help = AFTER_A_MINUTE)]
    Transactions(FeedArgs),
    /// List credit-score events, oldest first
    #[command(after_help = AFTER_A_MINUTE)]
    CreditEvents(FeedArgs),
}

const AFTER_A_MINUTE: &str = "Repayments appear after a minute, so that none is missed.";

#[derive(Args)]
struct LoanArgs {
    /// The company's id
    company: String,
    /// The loan's id
    loan: String,
}

#[derive(Args)]
struct FeedArgs {
    /// The company's id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    part: CursorArgs,
}

impl Loan {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::Show(named) => Ok(report(host.get(&named.path(), &[]).await?)),
            Action::Put { named, input } => {
                let loan = input.read("{\"user_id\": \"…\", \"schedule\": […], …}")?;
                Ok(report(host.send_json(Method::PUT, &named.path(), &loan).await?))
            }
            Action::Transactions(reading) => transactions(&host, reading).await,
            Action::CreditEvents(reading) => credit_events(&host, reading).await,
        }
    }
}

impl LoanArgs {
    fn path(&self) -> [&str; 4] {
        ["companies", &self.company, "loans", &self.loan]
    }
}

fn report(loan: Value) -> Report {
    let fields = [
        left("loan", |v| text(&v["id"])),
        left("user", |v| text(&v["user_id"])),
        left("amount", |v| money(&v["amount"], &v["currency"])),
        left("repaid", |v| money(&v["amount_paid"], &v["currency"])),
        left("remaining", |v| money(&v["amount_remaining_to_pay"], &v["currency"])),
        left("disbursed", |v| text(&v["disbursed"])),
        left("paid", |v| text(&v["paid"])),
        left("last repayment", |v| text(&v["last_pay_date"])),
        left("next due", |v| text(&v["next_pay_date"])),
        left("created", |v| text(&v["created_at"])),
    ];
    let mut schedule = loan["schedule"].clone();
    for installment in schedule.as_array_mut().into_iter().flatten() {
        installment["currency"] = loan["currency"].clone();
    }
    let columns = [
        left("DUE", |v| text(&v["due_date"])),
        right("AMOUNT", |v| money(&v["amount"], &v["currency"])),
        right("REMAINING", |v| money(&v["amount_remaining"], &v["currency"])),
    ];
    Report::record(loan, &fields).with_table(&schedule, &columns)
}

impl FeedArgs {
    async fn read(self, host: &HostClient, stream: &str) -> Result<Value, Failure> {
        let mut query = self.part.query();
        query.extend(self.company.map(|company| ("company", company)));
        host.get(&[stream], &query).await
    }
}

async fn transactions(host: &HostClient, reading: FeedArgs) -> Result<Report, Failure> {
    let read = reading.read(host, "transactions").await?;
    let columns = [
        left("REPAID", |v| text(&v["data"]["repaid_at"])),
        left("COMPANY", |v| text(&v["company_id"])),
        left("LOAN", |v| text(&v["data"]["loan"])),
        left("RECOLLECTION", |v| text(&v["data"]["recollection"])),
        left("CHANNEL", |v| text(&v["data"]["payment_channel"])),
        right("AMOUNT", |v| money(&v["data"]["amount"], &v["data"]["currency"])),
        right("APPLIED", |v| money(&v["data"]["applied"], &v["data"]["currency"])),
    ];
    Ok(Report::feed_page(read, "entries", &columns))
}

async fn credit_events(host: &HostClient, reading: FeedArgs) -> Result<Report, Failure> {
    let read = reading.read(host, "credit-events").await?;
    let columns = [
        left("REPAID", |v| text(&v["data"]["repaid_at"])),
        left("COMPANY", |v| text(&v["company_id"])),
        left("LOAN", |v| text(&v["data"]["loan"])),
        left("USER", |v| text(&v["data"]["user_id"])),
        right("AMOUNT", |v| money(&v["data"]["amount"], &v["data"]["currency"])),
        right("DAYS LATE", |v| text(&v["data"]["days_late"])),
        left("PAID", |v| text(&v["data"]["paid"])),
    ];
    Ok(Report::feed_page(read, "entries", &columns))
}
