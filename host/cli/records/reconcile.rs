//! `tollhouse reconcile`.

use crate::{prelude::*, tenants::provider::Mode};

#[derive(Args)]
#[command(after_help = "\
The transactions of an account are listed daily. What differs from the records of the host is an
exception, until an operator resolves it or the provider's list agrees.

Examples:
  tollhouse reconcile provider_a --mode live --day 2026-11-27
  tollhouse reconcile provider_a --mode live --days
  tollhouse reconcile provider_a --mode live --day 2026-11-27 --close
  tollhouse reconcile provider_a --now")]
pub struct Reconcile {
    /// Name of the provider's plugin
    provider: String,
    /// Day to show, like 2026-11-27, in UTC [default: today]
    #[arg(long)]
    day: Option<String>,
    /// List the 31 days up to `--day`
    #[arg(long)]
    days: bool,
    /// Close the day
    #[arg(long, requires = "day", conflicts_with = "days")]
    close: bool,
    /// Start listing the account's transactions now, instead of at the daily time
    #[arg(long, conflicts_with_all = ["day", "days"])]
    now: bool,
    /// The company's id, for its own account; without it, the service account
    #[arg(long, value_name = "COMPANY")]
    company: Option<String>,
    /// Mode of the service account [default: the only one]
    #[arg(long)]
    mode: Option<Mode>,
    #[command(flatten)]
    yes: Confirmation,
    #[command(flatten)]
    access: HostAccess,
}

const DAYS: &str = "day, listed as number, matched as number, exceptions as number, \
    closed: closed_at";
const FIELDS: &str = "provider: payment_service, account, day, listed until: listed_until, \
    closed: closed/at, closed by: closed/by";
const TOTALS: &str = "kind, listed as number, matched as number, amount as money, fees as money";
const SETTLEMENTS: &str = "settlement: id, state, gross as money, fees as money, \
    deductions as money, paid out: amount as money";
const EXCEPTIONS: &str = "exception: id, kind, company, reference: service_ref, subject, \
    recorded: expected as money, at the provider: seen as money, suspense as money, owner";

impl Reconcile {
    pub async fn run(self) -> Result {
        let host = HostClient::new(&self.access)?;
        let account = self.account(&host).await?;
        if self.now {
            let path = ["accounts", &account, "reconcile"];
            let begun = host.change(Method::POST, &path, &json!({})).await?;
            return Ok(Report::new(begun, "the transactions are being listed"));
        }
        if self.days {
            let query: Vec<_> = self.day.iter().map(|day| ("until", day)).collect();
            let days = host.get(&["accounts", &account, "days"], &query).await?;
            return Ok(Report::list(days, DAYS));
        }
        let today = || Clock::system().now().to_datetime().format("%Y-%m-%d").to_string();
        let day = self.day.clone().unwrap_or_else(today);
        let mut path = vec!["accounts", &account, "days", &day];
        let shown = match self.close {
            true => {
                self.yes.confirm(&format!("Close the day {day}? It cannot be reopened."))?;
                path.push("close");
                host.change(Method::POST, &path, &json!({})).await?
            }
            false => host.get(&path, &()).await?,
        };
        Ok(report(shown))
    }

    /// Returns the id of the account.
    async fn account(&self, host: &HostClient) -> Result<String> {
        let listed = host.get(&scope(self.company.as_deref(), "providers"), &()).await?;
        let is_meant = |account: &&Value| {
            account["provider"] == *self.provider
                && self.mode.is_none_or(|mode| account["mode"] == json!(mode))
        };
        let mut found = listed.as_array().into_iter().flatten().filter(is_meant);
        match (found.next(), found.next()) {
            (Some(account), None) => Ok(text(&account["account"])),
            (Some(_), Some(_)) => Err(Failure::usage("--mode is required: there are two accounts")),
            (None, _) => Err(Failure::refused(format!("no account at {}", self.provider))),
        }
    }
}

fn report(day: Value) -> Report {
    let parts = [("totals", TOTALS), ("settlements", SETTLEMENTS), ("exceptions", EXCEPTIONS)];
    let parts = parts.map(|(name, columns)| match table(&day[name], columns) {
        table if table == "none" => format!("{name}: none"),
        table => table,
    });
    let report = Report::record(day, FIELDS);
    parts.iter().fold(report, |report, part| report.with_note(part))
}
