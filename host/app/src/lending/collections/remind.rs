//! Events about unpaid installments, for companies that remind their borrowers. Each is sent once
//! per installment.

use super::{
    policy::Reminders,
    store::{self, PolicyVersion},
};
use crate::{
    lending::{
        loans::{self, Installment, Loan, LoanId},
        recollections::key_of,
    },
    money::prelude::*,
};

const UPCOMING: &str = "installment.upcoming";
const DUE: &str = "installment.due";
const OVERDUE: &str = "installment.overdue";

/// An installment in events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "InstallmentOfLoan")]
pub struct EventData {
    loan: LoanId,
    /// The borrower.
    user: Option<users::View>,
    user_id: String,
    due_date: Timestamp,
    amount: Minor,
    /// The unpaid part of `amount`.
    amount_remaining: Minor,
    currency: Currency,
}

/// An event, with the period in which it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    kind: &'static str,
    from: Timestamp,
    until: Timestamp,
}

/// Returns the moments of an installment in chronological order. Omits those more than a day before
/// `since`, the time at which the company requested the events.
fn moments(events: Reminders, due_at: Timestamp, since: Timestamp) -> impl Iterator<Item = Moment> {
    let days = |days: i64| Timestamp(due_at.0 + days * DAY_MS);
    let upcoming = events.upcoming_days.map(|before| (UPCOMING, days(-before), due_at));
    let due = events.due.then(|| (DUE, due_at, days(1)));
    let overdue = events.overdue_days.map(|after| (OVERDUE, days(after), Timestamp(i64::MAX)));
    let all = [upcoming, due, overdue].into_iter().flatten();
    let all = all.map(|(kind, from, until)| Moment { kind, from, until });
    all.filter(move |moment| match moment.kind {
        // The installment may be recorded, or the event requested, in the days before the due date.
        UPCOMING => true,
        _ => moment.from.0 >= since.0 - DAY_MS,
    })
}

/// Emits the events about a loan that the caller has locked. Returns when the next one is to be
/// sent.
pub async fn remind(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    version: &PolicyVersion,
) -> Result<Option<Timestamp>> {
    let events = version.policy.events;
    if events == Reminders::default() {
        return Ok(None);
    }
    let now = app.clock.now();
    let since = store::events_since(tx, &loan.company_id, version).await?;
    let sent = store::list_reports(tx, &loan.company_id, &loan.id).await?;
    let entries = loans::list_installments(tx, &loan.company_id, &loan.id).await?;
    let mut next: Option<Timestamp> = None;
    for entry in entries.iter().filter(|entry| entry.automatic && entry.remaining > Minor(0)) {
        let key = key_of(&entries, entry);
        for Moment { kind, from, until } in moments(events, entry.due_at, since) {
            let is_sent = sent.iter().any(|(number, due, of)| (*number, *due) == key && of == kind);
            if is_sent || until <= now {
                continue;
            }
            if from > now {
                next = Some(next.map_or(from, |next| next.min(from)));
            } else if store::insert_report(tx, loan, key, kind, now).await? {
                emit(tx, app, loan, entry, kind).await?;
            }
        }
    }
    Ok(next)
}

async fn emit(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    entry: &Installment,
    kind: &'static str,
) -> Result<()> {
    let user = users::find_by_id(tx, &loan.company_id, &loan.user_key).await?;
    let data = EventData {
        loan: loan.id.clone(),
        user: user.map(|user| user.view(app.clock.now())),
        user_id: loan.user_id.clone(),
        due_date: entry.due_at,
        amount: entry.amount,
        amount_remaining: entry.remaining,
        currency: loan.currency.clone(),
    };
    let event = events::Event {
        kind,
        subject_id: loan.id.to_string(),
        data: json!(data),
        callback_url: None,
    };
    events::emit(tx, app, &loan.company_id, event).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE_AT: Timestamp = Timestamp(20_000 * DAY_MS);

    fn day(days: i64) -> Timestamp {
        Timestamp(DUE_AT.0 + days * DAY_MS)
    }

    #[test]
    fn each_event_has_its_time_and_none_is_of_before_it_was_wanted() {
        let all = Reminders { upcoming_days: Some(3), due: true, overdue_days: Some(5) };
        let never = Timestamp(i64::MAX);
        let (upcoming, due, overdue) = (
            Moment { kind: UPCOMING, from: day(-3), until: day(0) },
            Moment { kind: DUE, from: day(0), until: day(1) },
            Moment { kind: OVERDUE, from: day(5), until: never },
        );
        for (events, since, expected) in [
            (Reminders::default(), -10, vec![]),
            (all, -10, vec![upcoming, due, overdue]),
            (Reminders { due: false, ..all }, -10, vec![upcoming, overdue]),
            (all, 2, vec![upcoming, overdue]),
            (all, 6, vec![upcoming, overdue]),
            (all, 7, vec![upcoming]),
        ] {
            let found: Vec<Moment> = moments(events, DUE_AT, day(since)).collect();
            assert_eq!(found, expected, "{events:?} since {since}");
        }
    }
}
