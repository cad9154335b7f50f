//! The state machine of a charge. Pure, and tested as tables.
//!
//! | Certainty | States |
//! |---|---|
//! | not done | `queued`, `failed`, `canceled` |
//! | unknown | `requested`, `open`, and `queued` after a request with an unknown outcome |
//! | done | `mismatched`, `succeeded`, `reversed` |
//!
//! A fact about money that moved counts whenever it arrives. Every other fact counts only for the
//! request with the current fence: a late rejection does not end a newer request.

#[cfg(test)]
mod checker;
#[cfg(test)]
mod tests;
mod transition;

use super::{Charge, METADATA_KEY, Method, ReferenceSource, State, lease};
use crate::money::prelude::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Time until a charge that the provider does not know is requested again.
pub const NOT_FOUND_SECONDS: i64 = MINUTE;
/// Time after the first request until a charge without a page fails if the provider has never
/// known it.
pub const RETRY_SECONDS: i64 = HOUR;
/// Time after which a charge that waits for its payer no longer holds up others of its lane.
pub const LANE_SECONDS: i64 = 72 * HOUR;

/// A fact about a charge.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The provider opened a session.
    Session(Box<CheckoutSession>),
    /// The request certainly had no effect. With the reason for clients, if there is one.
    Rejected(Rejection, Option<RejectionReason>),
    /// The request may have had an effect.
    Lost,
    Seen(Box<ProviderPayment>),
    /// The provider did not know the charge. The time of the query.
    NotFound(Timestamp),
}

/// The reason for a rejection, for clients.
#[derive(Clone, Debug)]
pub struct RejectionReason {
    pub message: String,
    /// Why the payer's bank or the provider declined the charge.
    pub decline: Option<Decline>,
}

/// Why a request had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The request is invalid.
    Invalid,
    Refused,
    /// The provider knows another charge with this reference.
    DuplicateReference,
    /// A retry may succeed.
    Temporary,
}

/// The effect of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No effect: stale, or already recorded.
    Ignore,
    Open,
    Requeue,
    /// The outcome of the request is unknown.
    Unsure,
    Fail,
    /// Nothing was done. Another charge under another reference follows.
    Replace,
    /// Another page follows, under another reference: no payer has this one.
    Supersede,
    /// The first request was invalid, and no client knows the owner: it is deleted.
    Forget,
    Succeed,
    /// A success after another charge settled the owner.
    Surplus,
    /// Money was taken, but not the requested amount.
    Mismatch(&'static str),
    /// The provider returned the money.
    Reverse,
    /// A success of another system's charge under the same reference.
    Foreign,
}

/// Decides the effect of a fact. `fence` is that of the request, or that before the query.
/// `is_settled`: another charge settled the owner.
pub fn decide(
    charge: &Charge,
    is_settled: bool,
    fence: i64,
    fact: &Fact,
    now: Timestamp,
) -> Decision {
    let is_current = fence == charge.fence;
    let is_requested = is_current && charge.state == State::Requested;
    match fact {
        Fact::Seen(seen) => decide_seen(charge, is_settled, is_current, seen),
        Fact::Session(_) if is_current && charge.session_url.is_none() => Decision::Open,
        Fact::Rejected(rejection, _) if is_requested => decide_rejected(charge, *rejection, now),
        Fact::Lost if is_requested => Decision::Unsure,
        Fact::NotFound(queried_at) if is_current => decide_not_found(charge, *queried_at, now),
        Fact::Session(_) | Fact::Rejected(..) | Fact::Lost | Fact::NotFound(_) => Decision::Ignore,
    }
}

fn decide_seen(
    charge: &Charge,
    is_settled: bool,
    is_current: bool,
    seen: &ProviderPayment,
) -> Decision {
    let is_success = seen.status == PaymentStatus::Success;
    if !is_ours(charge, seen) {
        // A canceled charge released its reference, which that payment uses.
        let is_expected = charge.state == State::Canceled;
        return if is_success && !is_expected { Decision::Foreign } else { Decision::Ignore };
    }
    match (charge.state, seen.status) {
        (State::Succeeded | State::Reversed, PaymentStatus::Success) => Decision::Ignore,
        (_, PaymentStatus::Success) => match mismatch(&charge.money(), charge.least(), seen) {
            _ if charge.state == State::Mismatched
                && (charge.refunded > Minor(0) || charge.disputed > Minor(0)) =>
            {
                Decision::Ignore
            }
            Some(_) if charge.state == State::Mismatched => Decision::Ignore,
            Some(what) => Decision::Mismatch(what),
            None if is_settled => Decision::Surplus,
            None => Decision::Succeed,
        },
        // The host's own refunds caused it.
        (State::Succeeded | State::Mismatched, PaymentStatus::Reversed)
            if charge.refunded > Minor(0) && Some(charge.refunded) >= charge.taken =>
        {
            Decision::Ignore
        }
        (State::Succeeded | State::Mismatched, PaymentStatus::Reversed) => Decision::Reverse,
        (State::Requested | State::Open, PaymentStatus::Pending) if is_current => Decision::Open,
        (State::Requested | State::Open, PaymentStatus::Failed | PaymentStatus::Reversed)
            if is_current =>
        {
            Decision::Fail
        }
        // A request with an unknown outcome has reached the provider.
        (State::Queued, PaymentStatus::Failed | PaymentStatus::Reversed)
            if is_current && charge.unsure && charge.method != Method::Checkout =>
        {
            Decision::Fail
        }
        _ => Decision::Ignore,
    }
}

fn decide_rejected(charge: &Charge, rejection: Rejection, now: Timestamp) -> Decision {
    use Rejection::{DuplicateReference, Invalid, Refused, Temporary};
    let has_page = charge.method == Method::Checkout;
    let is_first = charge.number == 1 && charge.fence == 1;
    match rejection {
        DuplicateReference if charge.unsure && has_page => Decision::Supersede,
        DuplicateReference
            if charge.reference_source == ReferenceSource::Caller && !charge.unsure =>
        {
            Decision::Replace
        }
        // The host generated the reference, so the provider's charge is this one.
        DuplicateReference => Decision::Unsure,
        // An earlier request may have had an effect.
        Invalid | Refused | Temporary if charge.unsure => Decision::Unsure,
        Invalid if has_page && is_first => Decision::Forget,
        Invalid | Refused if !has_page => Decision::Fail,
        Temporary if !has_page && has_passed(charge.begun_at, RETRY_SECONDS, now) => Decision::Fail,
        Invalid | Refused | Temporary => Decision::Requeue,
    }
}

fn has_passed(since: Option<Timestamp>, seconds: i64, now: Timestamp) -> bool {
    since.is_some_and(|since| since.plus_seconds(seconds) <= now)
}

fn decide_not_found(charge: &Charge, queried_at: Timestamp, now: Timestamp) -> Decision {
    let is_over =
        !charge.is_leased(now) && has_passed(charge.requested_at, NOT_FOUND_SECONDS, queried_at);
    let may_fail =
        charge.method != Method::Checkout && has_passed(charge.begun_at, RETRY_SECONDS, queried_at);
    match charge.state {
        // The provider has reported it, and there is nothing to request.
        _ if charge.is_received() => Decision::Ignore,
        State::Requested | State::Queued if is_over && may_fail => Decision::Fail,
        State::Requested if is_over => Decision::Requeue,
        _ => Decision::Ignore,
    }
}

/// Returns how the amounts that the provider reports as requested and as taken differ from the
/// requested one. The amount taken may be higher, because the payer may bear the fees, and lower
/// down to `at_least`.
pub(super) fn mismatch(
    expected: &Money,
    at_least: Option<Money>,
    seen: &ProviderPayment,
) -> Option<&'static str> {
    let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
    if requested.currency != expected.currency || seen.amount.currency != expected.currency {
        return Some("currency mismatch");
    }
    let is_requested = match (&seen.requested, &at_least) {
        // A partial debit, of which only the taken amount is known.
        (None, Some(_)) => seen.amount.minor <= expected.minor,
        _ => requested.minor == expected.minor,
    };
    let least = at_least.map_or(expected.minor, |least| least.minor);
    (!is_requested || seen.amount.minor < least).then_some("amount mismatch")
}

/// Returns whether the provider's charge is this one. Metadata decides. Without it, a caller's
/// reference may be another system's unless the provider opened a session under it; references that
/// the host or the provider generated are unique.
pub(super) fn is_ours(charge: &Charge, seen: &ProviderPayment) -> bool {
    let metadata = seen.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let named = metadata.as_ref().and_then(|metadata: &Value| metadata[METADATA_KEY].as_str());
    let is_unique = charge.reference_source != ReferenceSource::Caller;
    named.map_or(is_unique || charge.session_url.is_some(), |named| named == charge.owner_id)
}

/// Returns the part of the provider fee that the company bears: what the payer did not pay on top.
pub fn fees(seen: &ProviderPayment) -> Minor {
    let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
    let on_top = (seen.amount.minor.0 - requested.minor.0).max(0);
    Minor((seen.fees.unwrap_or_default().0 - on_top).max(0))
}

/// Returns whether the provider may know something about the charge that the host does not.
pub fn is_verifiable(charge: &Charge) -> bool {
    charge.fence > 0 && charge.state != State::Reversed
}

/// Returns the next scheduled check. An unknown outcome: 1, 5, 15 and 60 minutes after the request
/// that the payer acts on, then hourly for 72 hours; without a page, then daily for 30 days. A
/// failed or canceled charge, which may still be paid: after 1, 24 and 72 hours. Money taken, which
/// the provider may return: after 1, 7, 30 and 120 days; another amount, which the payer or the
/// provider may correct, also after 1 and 6 hours.
pub fn next_check(charge: &Charge, now: Timestamp) -> Option<Timestamp> {
    let hourly = (1..=72).map(|n| n * HOUR);
    let soon = [MINUTE, 5 * MINUTE, 15 * MINUTE].into_iter().chain(hourly);
    let daily = (4..=30).map(|n| n * DAY);
    let schedule: Vec<i64> = match charge.state {
        State::Reversed => vec![],
        State::Succeeded => vec![DAY, 7 * DAY, 30 * DAY, 120 * DAY],
        State::Mismatched => vec![HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 120 * DAY],
        State::Failed | State::Canceled => vec![HOUR, 24 * HOUR, 72 * HOUR],
        _ if charge.method == Method::Checkout && !charge.is_received() => soon.collect(),
        _ => soon.chain(daily).collect(),
    };
    let since = match charge.state {
        State::Succeeded | State::Mismatched => charge.settled_at,
        _ => charge.checks_start_at(),
    };
    let since = since.unwrap_or(charge.created_at);
    schedule.into_iter().map(|after| since.plus_seconds(after)).find(|at| *at > now)
}
