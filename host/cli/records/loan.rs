//! `tollhouse loan`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Show a loan and its schedule
    Show(LoanArgs),
    /// Create or replace a loan originated by another system; repayments are kept
    #[command(after_help = "\
A loan is a JSON object. Its amount is the sum of its schedule:
  {\"user_id\": \"ada\", \"amount\": 300, \"currency\": \"NGN\", \"disbursed\": true,
   \"schedule\": [{\"due_date\": \"2026-12-01\", \"amount\": 100},
                {\"due_date\": \"2027-01-01\", \"amount\": 200}]}

Example:
  tollhouse loan put 6b018eed9f8a1c2b3d4e5f60 loan-1 --file loan-1.json")]
    Put {
        #[command(flatten)]
        named: LoanArgs,
        #[command(flatten)]
        input: Input,
    },
    /// List repayments, oldest first
    #[command(after_help = DELAY)]
    Transactions(FeedArgs),
    /// List credit-score events, oldest first
    #[command(after_help = DELAY)]
    CreditEvents(FeedArgs),
}

const DELAY: &str = "\
Entries are listed about one minute after they are recorded, so that no reader misses one.";

#[derive(Args)]
pub struct LoanArgs {
    /// The company's id
    company: String,
    /// The loan's id
    loan: String,
}

#[derive(Args, Serialize)]
pub struct FeedArgs {
    /// The company's id
    #[arg(long)]
    company: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    part: CursorArgs,
}

const FIELDS: &str = "loan: id, user: user_id, amount as money, repaid: amount_paid as money, \
    remaining: amount_remaining_to_pay as money, disbursed, paid, last repayment: last_pay_date, \
    next due: next_pay_date, created: created_at";
const SCHEDULE: &str = "due: due_date, amount as money, remaining: amount_remaining as money";
const TRANSACTIONS: &str = "repaid: data/repaid_at, company: company_id, loan: data/loan, \
    recollection: data/recollection, channel: data/payment_channel, \
    amount: data/amount as money, applied: data/applied as money";
const CREDIT_EVENTS: &str = "repaid: data/repaid_at, company: company_id, loan: data/loan, \
    user: data/user_id, amount: data/amount as money, days late: data/days_late as number, \
    paid: data/paid";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::Show(named) => Ok(report(host.get(&named.path(), &()).await?)),
            Action::Put { named, input } => {
                let example = "{\"user_id\": \"…\", \"schedule\": […], …}";
                let loan = read_object(&input.file, example)?;
                Ok(report(host.change(Method::PUT, &named.path(), &loan).await?))
            }
            Action::Transactions(feed) => host.list(&["transactions"], &feed, TRANSACTIONS).await,
            Action::CreditEvents(feed) => host.list(&["credit-events"], &feed, CREDIT_EVENTS).await,
        }
    }
}

impl LoanArgs {
    fn path(&self) -> [&str; 4] {
        ["companies", &self.company, "loans", &self.loan]
    }
}

fn report(loan: Value) -> Report {
    let mut schedule = loan["schedule"].clone();
    for installment in schedule.as_array_mut().into_iter().flatten() {
        installment["currency"] = loan["currency"].clone();
    }
    Report::record(loan, FIELDS).with_note(&table(&schedule, SCHEDULE))
}
