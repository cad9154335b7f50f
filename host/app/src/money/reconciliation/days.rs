//! The days of a provider account: their totals, and closing them.

use super::{
    DAY_MS, TransactionKind,
    store::{self, GRACE_SECONDS, Listing, Settlement, Step},
};
use crate::money::{
    charges::{self, Exception},
    prelude::*,
};
use chrono::NaiveDate;
use serde::Deserialize;
use tollhouse_platform::{clock::parse_date, store::FromRow};

/// A day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(pub Timestamp);

impl Day {
    /// Parses a date like 2026-11-27. 404 if the text is not one.
    pub fn parse(text: &str) -> Result<Day> {
        let date = parse_date(text, "%Y-%m-%d").filter(|date| text == date.to_string());
        let date: NaiveDate = date.ok_or_else(|| Error::not_found("day not found"))?;
        let midnight = date.and_time(chrono::NaiveTime::MIN).and_utc();
        Ok(Day(Timestamp(midnight.timestamp_millis())))
    }

    pub fn period(self) -> (Timestamp, Timestamp) {
        (self.0, self.0.plus_ms(DAY_MS))
    }

    pub fn name(self) -> String {
        self.0.to_datetime().format("%Y-%m-%d").to_string()
    }
}

/// Totals of the listed transactions of a day, of one kind and currency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow, JsonSchema)]
#[schemars(rename = "DayTotal")]
pub struct Total {
    pub kind: TransactionKind,
    pub currency: Currency,
    /// Number of listed transactions.
    pub listed: i64,
    /// Number of those that match their records.
    pub matched: i64,
    /// Sum of the amounts of the listed transactions.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// Sum of their fees, where the provider lists them.
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
}

/// The reconciliation of a provider account for one day.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AccountDay")]
pub struct Report {
    account: AccountId,
    #[serde(rename = "payment_service")]
    provider: String,
    /// The date, in UTC.
    day: String,
    /// Transactions before this time have been listed; `null` until a list is complete.
    listed_until: Option<Timestamp>,
    totals: Vec<Total>,
    /// The payouts of the day.
    settlements: Vec<Settlement>,
    /// The open exceptions of the day, oldest first.
    exceptions: Vec<Exception>,
    /// The closing of the day; `null` while the day is open.
    closed: Option<Closed>,
}

impl Report {
    /// Returns what an actor may see: members do not see the names and notes of operators.
    pub fn visible_to(mut self, actor: &Actor) -> Report {
        if actor.member_of.is_some() {
            for exception in &mut self.exceptions {
                exception.handler = None;
                exception.notes.0.clear();
            }
            if let Some(closed) = &mut self.closed {
                closed.by.clear();
            }
        }
        self
    }
}

/// The closing of a day.
#[derive(Clone, Debug, Serialize, FromRow, JsonSchema)]
#[schemars(rename = "ClosedDay")]
pub struct Closed {
    #[serde(skip)]
    pub day: Timestamp,
    #[sqlx(rename = "closed_at")]
    pub at: Timestamp,
    /// The name of the operator; empty for members.
    #[sqlx(rename = "closed_by")]
    pub by: String,
    /// The totals at that time.
    #[schemars(with = "Vec<Total>")]
    pub totals: Json<Vec<Total>>,
}

pub async fn report(tx: &mut Tx, account: &Account, day: Day) -> Result<Report> {
    let listing = store::find_listing(tx, &account.id).await?;
    let id = &account.id;
    Ok(Report {
        account: account.id.clone(),
        provider: account.provider.clone(),
        day: day.name(),
        listed_until: listing.and_then(|listing| listing.listed_at),
        totals: store::totals(tx, id, day.period()).await?,
        settlements: store::list_settlements(tx, id, day.period()).await?,
        exceptions: charges::list_open_differences(tx, id, day.0).await?,
        closed: store::find_closed(tx, id, day.0).await?,
    })
}

/// Closes a day. 400 if it is already closed, if it has not been listed, while a list is in
/// progress, while it has open exceptions, or while its transactions are being verified.
pub async fn close(
    tx: &mut Tx,
    app: &App,
    actor: &Actor,
    account: &Account,
    day: Day,
) -> Result<()> {
    // Serializes with the listing job.
    let listing = store::lock_listing(tx, &account.id).await?;
    let report = report(tx, account, day).await?;
    let (from, before) = day.period();
    if report.closed.is_some() {
        return Err(Error::invalid("the day is already closed"));
    }
    let is_listed = |listing: &Listing| {
        // The records that the list lacks are known a day later.
        let known = before.plus_seconds(GRACE_SECONDS);
        listing.listed_at.is_some_and(|until| until >= known) && from >= listing.first_since()
    };
    let Some(listing) = listing.filter(is_listed) else {
        let message = "the transactions of the day have not been listed: a day can be closed one \
             day after it ends";
        return Err(Error::invalid(message));
    };
    if listing.step != Step::Done {
        return Err(Error::invalid("the transactions are being listed: try again in a minute"));
    }
    if !report.exceptions.is_empty() {
        let open = report.exceptions.len();
        return Err(Error::Invalid(format!(
            "resolve the open exceptions of the day first: {open}"
        )));
    }
    let unresolved = store::count_unresolved(tx, account, day.period()).await?;
    if unresolved > 0 {
        let message = format!("transactions of the day are still being verified: {unresolved}");
        return Err(Error::Invalid(message));
    }
    let closed = Closed {
        day: day.0,
        at: app.clock.now(),
        by: actor.name.clone(),
        totals: Json(report.totals),
    };
    Ok(store::insert_closed(tx, &account.id, &closed).await?)
}

/// A summary of one day of a provider account.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AccountDaySummary")]
pub struct Summary {
    day: String,
    /// Number of listed transactions.
    listed: i64,
    /// Number of those that match their records.
    matched: i64,
    /// Number of open exceptions.
    exceptions: i64,
    closed_at: Option<Timestamp>,
}

/// Number of days in a list.
pub const LISTED_DAYS: i64 = 31;

/// Returns the [`LISTED_DAYS`] days that end with `last`, newest first.
pub async fn list(tx: &mut Tx, account: &Account, last: Day) -> Result<Vec<Summary>> {
    let (_, before) = last.period();
    let from = before.plus_ms(-LISTED_DAYS * DAY_MS);
    let counts = store::count_by_day(tx, &account.id, (from, before)).await?;
    let closed = store::list_closed(tx, &account.id, (from, before)).await?;
    let exceptions = store::count_open_by_day(tx, &account.id, (from, before)).await?;
    let days = (1..=LISTED_DAYS).map(|n| Day(before.plus_ms(-n * DAY_MS)));
    let summary = |day: Day| {
        let count = counts.iter().find(|count| count.day == day.0);
        Summary {
            day: day.name(),
            listed: count.map_or(0, |count| count.listed),
            matched: count.map_or(0, |count| count.matched),
            exceptions: exceptions.iter().find(|one| one.day == day.0).map_or(0, |one| one.open),
            closed_at: closed.iter().find(|one| one.day == day.0).map(|one| one.at),
        }
    };
    Ok(days.map(summary).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_strictly() {
        let day = Day::parse("2026-11-27").expect("a day");
        assert_eq!(day.name(), "2026-11-27");
        assert_eq!(super::super::day_of(day.0.plus_ms(DAY_MS - 1)), day.0);
        for wrong in ["2026-11-31", "2026-11", "27-11-2026", "2026-1-1", "2026-11-27 ", ""] {
            assert!(Day::parse(wrong).is_err(), "{wrong}");
        }
    }
}
