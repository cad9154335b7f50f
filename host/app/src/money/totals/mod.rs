//! Totals for finance: money that was taken, and outcomes of payments, by day, company or provider.

mod overview;
mod store;

pub use self::overview::overview;
use self::store::{Dimension, PaymentTotals, TakenTotals};
use crate::money::prelude::*;
use tollhouse_platform::values::listing::Period;

/// Maximum number of days of a period, and length of the default period, which ends today.
const MAX_DAYS: i64 = 92;
const DEFAULT_DAYS: i64 = 30;

choices! {
    By = &["day", "provider", "company"];
}

fields! {
    /// Period and grouping of totals.
    Query TotalsFilter {
        /// A day in UTC, or the first and last day of a range of at most 92 days. Default: the last
        /// 30 days.
        days: Days,
        /// Default: `day`.
        by: OneOf<By>,
    }
}

/// Totals of a period.
#[derive(Serialize, JsonSchema)]
pub struct Totals {
    /// The first and last day of the period, `DD-MM-YYYY`, in UTC.
    first_day: String,
    last_day: String,
    /// Money that was taken in the period, with the amounts refunded of it until now.
    taken: Vec<TakenTotals>,
    /// Payments that were created in the period, by their current status.
    payments: Vec<PaymentTotals>,
}

pub async fn of_service(
    State(app): State<App>,
    query: Query<TotalsFilter>,
) -> Result<DataResponse<Totals>> {
    totals(&app, None, &query.read()?).await
}

pub async fn of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<TotalsFilter>,
) -> Result<DataResponse<Totals>> {
    companies::find(&app, &company).await?;
    totals(&app, Some(&company), &query.read()?).await
}

async fn totals(
    app: &App,
    company: Option<&CompanyId>,
    filter: &TotalsFilter,
) -> Result<DataResponse<Totals>> {
    let period = filter.days.unwrap_or_else(|| last_days(app.clock.now()));
    if period.before.0 - period.from.0 > MAX_DAYS * DAY_MS {
        return Err(Error::Invalid(format!("the days field must be at most {MAX_DAYS} days")));
    }
    let dimension = Dimension::named(filter.by.as_deref().unwrap_or_default());
    let read = async |tx: &mut Tx| -> Result<_> {
        let taken = store::taken(tx, dimension, period, company).await?;
        Ok((taken, store::payments(tx, dimension, period, company).await?))
    };
    let (taken, payments) = app.store.read(read).await?;
    let day = |at: i64| Timestamp(at).to_datetime().format("%d-%m-%Y").to_string();
    let (first_day, last_day) = (day(period.from.0), day(period.before.0 - 1));
    let totals = Totals { first_day, last_day, taken, payments };
    DataResponse::data(totals, "Totals fetched successfully")
}

fn last_days(now: Timestamp) -> Period {
    let tomorrow = (now.0.div_euclid(DAY_MS) + 1) * DAY_MS;
    Period { from: Timestamp(tomorrow - DEFAULT_DAYS * DAY_MS), before: Timestamp(tomorrow) }
}
