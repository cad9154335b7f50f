//! The monthly statement of a wallet, computed from the ledger.

use chrono::{Months, NaiveDate};

use super::store;
use crate::{state::storage::FromRow, tenants::prelude::*};
use tollhouse_platform::values::listing::Period;

fields! {
    /// The month and currency of a statement.
    Query StatementFilter {
        /// `YYYY-MM`, in UTC. Default: the current month.
        #[schemars(extend("pattern" = "^([0-9]{4}-[0-9]{2})?$", "examples" = ["2026-11"]))]
        month: Exactly,
        /// Default: the billing currency.
        currency: Exactly,
    }
}

/// A statement. `opening_balance` plus the amounts of `lines` is `closing_balance`.
#[derive(Serialize, JsonSchema)]
pub struct Statement {
    /// `YYYY-MM`.
    month: String,
    currency: Currency,
    opening_balance: Minor,
    /// The balance at the end of the month or, in the current month, now.
    closing_balance: Minor,
    lines: Vec<StatementLine>,
}

/// The transactions of one kind.
#[derive(Debug, FromRow, Serialize, JsonSchema)]
pub struct StatementLine {
    /// Kind of ledger transaction, for example `payment.success`.
    pub kind: String,
    /// Number of transactions.
    pub number: i64,
    /// Positive if the wallet was credited.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub currency: Currency,
}

/// Returns the statement of a wallet.
pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<StatementFilter>,
) -> Result<DataResponse<Statement>> {
    companies::find(&app, &company).await?;
    let StatementFilter { month, currency } = query.read()?;
    let month = month.unwrap_or_else(|| app.clock.now().to_datetime().format("%Y-%m").to_string());
    let period = period_of(&month)
        .ok_or_else(|| Error::invalid("the month field must be a month like 2026-11"))?;
    let currency = Currency::from(currency.unwrap_or_else(|| BILLING_CURRENCY.to_owned()));
    let read = async |tx: &mut Tx| -> Result<_> {
        let balance = store::balances(tx, &company).await?.get(&currency).copied();
        let later = store::sum_since(tx, &company, &currency, period.before).await?;
        let lines = store::statement_lines(tx, &company, &currency, period).await?;
        Ok((balance.unwrap_or_default().balance, later, lines))
    };
    let (balance, later, lines) = app.store.read(read).await?;
    let closing_balance = Minor(balance.0 - later.0);
    let change: i64 = lines.iter().map(|line| line.amount.0).sum();
    let opening_balance = Minor(closing_balance.0 - change);
    let statement = Statement { month, currency, opening_balance, closing_balance, lines };
    DataResponse::data(statement, "Statement fetched successfully")
}

fn period_of(month: &str) -> Option<Period> {
    let first = NaiveDate::parse_from_str(&format!("{month}-01"), "%Y-%m-%d").ok()?;
    let last = first.checked_add_months(Months::new(1))?.pred_opt()?;
    Period::of_days(first, last).filter(|_| month.len() == "2026-11".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_read_strictly() {
        let period = period_of("2026-12").expect("a month");
        assert_eq!(period.before.0 - period.from.0, 31 * 24 * 3600 * 1000);
        for wrong in ["2026-13", "2026", "2026-1", "26-11", "2026-11-01", "November", ""] {
            assert_eq!(period_of(wrong), None, "{wrong}");
        }
    }
}
