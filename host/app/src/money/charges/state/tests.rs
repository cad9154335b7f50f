//! The tables of `decide`.

use super::*;
use crate::money::charges::{FundsAccount, OwnerKind};

fn money(minor: i64, currency: &str) -> Money {
    Money { minor: Minor(minor), currency: currency.into() }
}

/// A charge whose first request began at 0.
pub fn charge(state: State) -> Charge {
    let has_taken = matches!(state, State::Mismatched | State::Succeeded | State::Reversed);
    Charge {
        company_id: "company".into(),
        id: "charge".into(),
        owner_kind: OwnerKind::Payment,
        owner_id: "p1".to_owned(),
        number: 1,
        method: Method::Checkout,
        provider: "provider_a".to_owned(),
        account_id: "account".into(),
        in_books: true,
        lane: None,
        amount: Minor(500),
        currency: "NGN".into(),
        at_least: None,
        taken: has_taken.then_some(Minor(500)),
        taken_currency: has_taken.then(|| "NGN".into()),
        fees: None,
        credited: Minor(0),
        credited_to: FundsAccount::Wallet,
        refunded: Minor(0),
        disputed: Minor(0),
        service_ref: "r".to_owned(),
        reference_source: ReferenceSource::Host,
        transaction_id: String::new(),
        state,
        counts: state == State::Succeeded,
        superseded: false,
        holds_lane: false,
        unsure: false,
        fence: 1,
        lease_until: None,
        begun_at: Some(Timestamp(0)),
        requested_at: Some(Timestamp(0)),
        settled_at: has_taken.then_some(Timestamp(0)),
        session_url: None,
        mismatch: None,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        choice: None,
    }
}

pub fn seen(status: PaymentStatus, amount: Money, requested: Option<Money>) -> ProviderPayment {
    ProviderPayment {
        status,
        service_ref: "r".into(),
        transaction_id: String::new(),
        amount,
        requested,
        fees: None,
        channel: String::new(),
        paid_at: None,
        message: String::new(),
        decline: None,
        instrument: None,
        challenge_url: None,
        metadata: None,
        raw: String::new(),
    }
}

fn fact(status: PaymentStatus) -> Fact {
    Fact::Seen(Box::new(seen(status, money(500, "NGN"), None)))
}

const STATES: [State; 8] = [
    State::Queued,
    State::Requested,
    State::Open,
    State::Mismatched,
    State::Succeeded,
    State::Failed,
    State::Canceled,
    State::Reversed,
];
const MINUTE_MS: i64 = 60_000;

#[test]
fn every_state_and_status() {
    use Decision::{Fail, Ignore, Open, Reverse, Succeed, Surplus};
    use PaymentStatus as Seen;
    // In the order of STATES: for the current fence, then for an earlier one.
    for (status, is_settled, current, earlier) in [
        (
            Seen::Success,
            false,
            [Succeed, Succeed, Succeed, Succeed, Ignore, Succeed, Succeed, Ignore],
            [Succeed, Succeed, Succeed, Succeed, Ignore, Succeed, Succeed, Ignore],
        ),
        (
            Seen::Success,
            true,
            [Surplus, Surplus, Surplus, Surplus, Ignore, Surplus, Surplus, Ignore],
            [Surplus, Surplus, Surplus, Surplus, Ignore, Surplus, Surplus, Ignore],
        ),
        (
            Seen::Pending,
            false,
            [Ignore, Open, Open, Ignore, Ignore, Ignore, Ignore, Ignore],
            [Ignore; 8],
        ),
        (
            Seen::Failed,
            false,
            [Ignore, Fail, Fail, Ignore, Ignore, Ignore, Ignore, Ignore],
            [Ignore; 8],
        ),
        (
            Seen::Reversed,
            false,
            [Ignore, Fail, Fail, Reverse, Reverse, Ignore, Ignore, Ignore],
            [Ignore, Ignore, Ignore, Reverse, Reverse, Ignore, Ignore, Ignore],
        ),
    ] {
        for (n, state) in STATES.into_iter().enumerate() {
            for (fence, expected) in [(1, current[n]), (0, earlier[n])] {
                let charge = charge(state);
                let decided = decide(&charge, is_settled, fence, &fact(status), Timestamp(0));
                assert_eq!(decided, expected, "{state:?} {status:?} {is_settled} {fence}");
            }
        }
    }
}

#[test]
fn a_card_charge_that_waits_for_its_repetition_ends_if_its_request_had_arrived() {
    for (method, unsure, fence, expected) in [
        (Method::Card, true, 1, Decision::Fail),
        (Method::Mandate, true, 1, Decision::Fail),
        (Method::Card, true, 0, Decision::Ignore),
        (Method::Card, false, 1, Decision::Ignore),
        (Method::Checkout, true, 1, Decision::Ignore),
    ] {
        let charge = Charge { method, unsure, ..charge(State::Queued) };
        let decided = decide(&charge, false, fence, &fact(PaymentStatus::Failed), Timestamp(0));
        assert_eq!(decided, expected, "{method:?} {unsure} {fence}");
    }
}

#[test]
fn only_refunds_of_everything_explain_a_reversal() {
    let taken = charge(State::Succeeded).taken.unwrap();
    for (refunded, disputed, expected) in [
        (Minor(0), Minor(0), Decision::Reverse),
        (taken, Minor(0), Decision::Ignore),
        (Minor(taken.0 - 1), Minor(0), Decision::Reverse),
        // A lost dispute took the rest.
        (Minor(taken.0 - 1), Minor(1), Decision::Reverse),
    ] {
        let refunded = Charge { refunded, disputed, ..charge(State::Succeeded) };
        let decided = decide(&refunded, false, 1, &fact(PaymentStatus::Reversed), Timestamp(0));
        assert_eq!(decided, expected, "{:?} {:?}", refunded.refunded, refunded.disputed);
    }
}

#[test]
fn a_rejected_request_ends_only_what_certainly_had_no_effect() {
    use Decision::{Fail, Forget, Replace, Requeue, Supersede, Unsure};
    use ReferenceSource::{Caller, Host};
    use Rejection::{DuplicateReference, Invalid, Refused, Temporary};
    for (method, source, unsure, rejection, expected) in [
        (Method::Checkout, Caller, false, Invalid, Forget),
        (Method::Checkout, Caller, false, Refused, Requeue),
        (Method::Checkout, Caller, false, Temporary, Requeue),
        (Method::Checkout, Caller, false, DuplicateReference, Replace),
        (Method::Checkout, Host, false, DuplicateReference, Unsure),
        (Method::Checkout, Caller, true, DuplicateReference, Supersede),
        (Method::Checkout, Caller, true, Invalid, Unsure),
        (Method::Checkout, Caller, true, Temporary, Unsure),
        (Method::Card, Host, false, Invalid, Fail),
        (Method::Card, Host, false, Refused, Fail),
        (Method::Card, Host, false, Temporary, Requeue),
        (Method::Card, Host, false, DuplicateReference, Unsure),
        (Method::Card, Host, true, Refused, Unsure),
        (Method::Mandate, Host, true, DuplicateReference, Unsure),
    ] {
        let charge =
            Charge { method, reference_source: source, unsure, ..charge(State::Requested) };
        let decided =
            |fence| decide(&charge, false, fence, &Fact::Rejected(rejection, None), Timestamp(0));
        assert_eq!(decided(1), expected, "{method:?} {source:?} {unsure} {rejection:?}");
        assert_eq!(decided(0), Decision::Ignore, "late: {rejection:?}");
    }
    let late = Timestamp(60 * MINUTE_MS);
    for (method, unsure, expected) in [
        (Method::Card, false, Fail),
        (Method::Card, true, Unsure),
        (Method::Checkout, false, Requeue),
    ] {
        let charge = Charge { method, unsure, ..charge(State::Requested) };
        let decided = decide(&charge, false, 1, &Fact::Rejected(Temporary, None), late);
        assert_eq!(decided, expected, "{method:?} {unsure} after an hour");
    }
    let resumed = Charge { fence: 2, ..charge(State::Requested) };
    let decided = decide(&resumed, false, 2, &Fact::Rejected(Invalid, None), Timestamp(0));
    assert_eq!(decided, Requeue, "a client knows the payment");
}

#[test]
fn a_session_and_a_lost_response_count_for_the_current_request_only() {
    let session = CheckoutSession {
        url: "https://provider.example/".into(),
        service_ref: "r".into(),
        raw: String::new(),
        ..CheckoutSession::default()
    };
    let session = Fact::Session(Box::new(session));
    for (state, fact, fence, expected) in [
        (State::Requested, &session, 1, Decision::Open),
        (State::Open, &session, 1, Decision::Open),
        (State::Requested, &session, 0, Decision::Ignore),
        (State::Requested, &Fact::Lost, 1, Decision::Unsure),
        (State::Requested, &Fact::Lost, 0, Decision::Ignore),
        (State::Succeeded, &Fact::Lost, 1, Decision::Ignore),
    ] {
        let charge = charge(state);
        let decided = decide(&charge, false, fence, fact, Timestamp(0));
        assert_eq!(decided, expected, "{state:?} {fact:?} {fence}");
    }
    let opened = Charge { session_url: Some("first".into()), ..charge(State::Open) };
    assert_eq!(decide(&opened, false, 1, &session, Timestamp(0)), Decision::Ignore);
}

#[test]
fn an_unknown_charge_is_requested_again_after_a_minute_and_fails_after_an_hour() {
    use Decision::{Fail, Ignore, Requeue};
    for (method, state, leased, minutes, expected) in [
        (Method::Card, State::Requested, false, 0, Ignore),
        (Method::Card, State::Requested, false, 1, Requeue),
        (Method::Card, State::Requested, true, 1, Ignore),
        (Method::Card, State::Requested, false, 60, Fail),
        (Method::Card, State::Requested, true, 60, Ignore),
        (Method::Card, State::Queued, false, 60, Fail),
        (Method::Card, State::Queued, false, 59, Ignore),
        // The provider knew it.
        (Method::Card, State::Open, false, 60, Ignore),
        (Method::Checkout, State::Requested, false, 1, Requeue),
        (Method::Checkout, State::Requested, false, 600, Requeue),
        (Method::Checkout, State::Open, false, 600, Ignore),
    ] {
        let now = Timestamp(minutes * MINUTE_MS);
        let lease_until = leased.then(|| now.plus_seconds(10));
        let charge = Charge { method, lease_until, ..charge(state) };
        let decided = decide(&charge, false, 1, &Fact::NotFound(now), now);
        assert_eq!(decided, expected, "{method:?} {state:?} {leased} after {minutes} minutes");
        assert_eq!(decide(&charge, false, 0, &Fact::NotFound(now), now), Ignore);
        // What matters is when the provider was asked.
        assert_eq!(decide(&charge, false, 1, &Fact::NotFound(Timestamp(0)), now), Ignore);
    }
}

#[test]
fn a_success_needs_the_requested_amount_and_currency() {
    const AMOUNT: Option<&str> = Some("amount mismatch");
    const CURRENCY: Option<&str> = Some("currency mismatch");
    for (amount, requested, expected) in [
        (money(500, "NGN"), None, None),
        (money(499, "NGN"), None, AMOUNT),
        (money(501, "NGN"), None, AMOUNT),
        (money(500, "USD"), None, CURRENCY),
        (money(600, "NGN"), Some(money(500, "NGN")), None),
        (money(500, "NGN"), Some(money(400, "NGN")), AMOUNT),
        (money(500, "NGN"), Some(money(500, "NGN")), None),
        // The amount taken must match too, whatever amount was requested.
        (money(499, "NGN"), Some(money(500, "NGN")), AMOUNT),
        (money(0, "NGN"), Some(money(500, "NGN")), AMOUNT),
        (money(499, "NGN"), Some(money(499, "NGN")), AMOUNT),
        (money(600, "NGN"), Some(money(501, "NGN")), AMOUNT),
        (money(600, "USD"), Some(money(500, "NGN")), CURRENCY),
        (money(600, "NGN"), Some(money(500, "USD")), CURRENCY),
        (money(500, "USD"), Some(money(500, "USD")), CURRENCY),
    ] {
        let seen = seen(PaymentStatus::Success, amount, requested);
        assert_eq!(mismatch(&money(500, "NGN"), None, &seen), expected, "{seen:?}");
    }
}

#[test]
fn a_partial_debit_takes_at_least_the_least_amount() {
    const AMOUNT: Option<&str> = Some("amount mismatch");
    for (amount, requested, expected) in [
        (500, Some(500), None),
        (300, Some(500), None),
        (200, Some(500), None),
        (199, Some(500), AMOUNT),
        (300, Some(300), AMOUNT),
        (600, Some(500), None),
        (300, None, None),
        (500, None, None),
        (199, None, AMOUNT),
        (501, None, AMOUNT),
    ] {
        let requested = requested.map(|minor| money(minor, "NGN"));
        let seen = seen(PaymentStatus::Success, money(amount, "NGN"), requested);
        let found = mismatch(&money(500, "NGN"), Some(money(200, "NGN")), &seen);
        assert_eq!(found, expected, "{seen:?}");
    }
}

#[test]
fn fees_paid_by_the_payer_are_not_borne_by_the_company() {
    for (amount, requested, fees, borne) in [
        (500, None, None, 0),
        (500, None, Some(8), 8),
        (500, Some(500), Some(8), 8),
        (508, Some(500), Some(8), 0),
        (505, Some(500), Some(8), 3),
        (600, Some(500), Some(8), 0),
    ] {
        let requested = requested.map(|minor| money(minor, "NGN"));
        let mut seen = seen(PaymentStatus::Success, money(amount, "NGN"), requested);
        seen.fees = fees.map(Minor);
        assert_eq!(super::fees(&seen), Minor(borne), "{seen:?}");
    }
}

#[test]
fn a_charge_is_matched_by_its_metadata_its_session_or_its_unique_reference() {
    use ReferenceSource::{Caller, Host, Provider};
    let named = |id: &str| Some(format!(r#"{{"tollhouse_payment":"{id}","order":1}}"#));
    for (metadata, source, has_session, ours) in [
        (named("p1"), Caller, false, true),
        (named("p1"), Caller, true, true),
        (named("p2"), Caller, true, false),
        (named("p2"), Host, true, false),
        (Some(r#"{"order":1}"#.to_owned()), Caller, true, true),
        (Some(r#"{"order":1}"#.to_owned()), Caller, false, false),
        (Some("no JSON".to_owned()), Caller, false, false),
        (None, Caller, true, true),
        (None, Caller, false, false),
        (None, Host, false, true),
        (None, Provider, false, true),
    ] {
        let session_url = has_session.then(|| "https://provider.example/".to_owned());
        let charge = Charge { reference_source: source, session_url, ..charge(State::Requested) };
        let mut seen = seen(PaymentStatus::Success, money(500, "NGN"), None);
        seen.metadata = metadata;
        let what = format!("{:?} {source:?} {has_session}", seen.metadata);
        assert_eq!(is_ours(&charge, &seen), ours, "{what}");
        let expected = if ours { Decision::Succeed } else { Decision::Foreign };
        let seen = Fact::Seen(Box::new(seen));
        assert_eq!(decide(&charge, false, 1, &seen, Timestamp(0)), expected, "{what}");
    }
}

proptest::proptest! {
    /// In any order of statuses, a charge succeeds and is reversed at most once.
    #[test]
    fn nothing_moves_back(statuses in proptest::collection::vec(0..4_usize, 0..30)) {
        use PaymentStatus as Seen;
        let (mut state, mut succeeded, mut reversed) = (State::Requested, 0, 0);
        for index in statuses {
            let status = [Seen::Pending, Seen::Success, Seen::Failed, Seen::Reversed][index];
            let before = state;
            state = match decide(&charge(state), false, 1, &fact(status), Timestamp(0)) {
                Decision::Succeed => { succeeded += 1; State::Succeeded }
                Decision::Open => State::Open,
                Decision::Fail => State::Failed,
                Decision::Reverse => { reversed += 1; State::Reversed }
                _ => state,
            };
            let legal = before == state || matches!(
                (before, state),
                (State::Requested, State::Open)
                    | (State::Requested | State::Open, State::Succeeded | State::Failed)
                    | (State::Failed, State::Succeeded)
                    | (State::Succeeded, State::Reversed)
            );
            proptest::prop_assert!(legal, "{:?} -> {:?}", before, state);
        }
        proptest::prop_assert!(succeeded <= 1 && reversed <= succeeded);
    }
}

#[test]
fn checks_become_rarer_and_end() {
    let minutes = |state, method, now: i64| {
        let charge = Charge { method, ..charge(state) };
        let next = next_check(&charge, Timestamp(now * MINUTE_MS));
        next.map(|at| at.unix_seconds() / 60)
    };
    const DAY_MINUTES: i64 = 24 * 60;
    for (state, method, now, next) in [
        (State::Open, Method::Checkout, 0, Some(1)),
        (State::Requested, Method::Checkout, 0, Some(1)),
        (State::Open, Method::Checkout, 1, Some(5)),
        (State::Open, Method::Checkout, 5, Some(15)),
        (State::Open, Method::Checkout, 15, Some(60)),
        (State::Open, Method::Checkout, 60, Some(120)),
        (State::Open, Method::Checkout, 61, Some(120)),
        (State::Open, Method::Checkout, 71 * 60, Some(72 * 60)),
        (State::Open, Method::Checkout, 72 * 60, None),
        (State::Open, Method::Card, 72 * 60, Some(4 * DAY_MINUTES)),
        (State::Open, Method::Mandate, 29 * DAY_MINUTES, Some(30 * DAY_MINUTES)),
        (State::Open, Method::Mandate, 30 * DAY_MINUTES, None),
        (State::Failed, Method::Checkout, 5, Some(60)),
        (State::Failed, Method::Checkout, 60, Some(DAY_MINUTES)),
        (State::Failed, Method::Checkout, DAY_MINUTES, Some(72 * 60)),
        (State::Failed, Method::Checkout, 72 * 60, None),
        (State::Succeeded, Method::Checkout, 0, Some(DAY_MINUTES)),
        (State::Succeeded, Method::Card, DAY_MINUTES, Some(7 * DAY_MINUTES)),
        (State::Succeeded, Method::Card, 7 * DAY_MINUTES, Some(30 * DAY_MINUTES)),
        (State::Succeeded, Method::Card, 30 * DAY_MINUTES, Some(120 * DAY_MINUTES)),
        (State::Succeeded, Method::Card, 120 * DAY_MINUTES, None),
        (State::Mismatched, Method::Checkout, 0, Some(60)),
        (State::Mismatched, Method::Checkout, 6 * 60, Some(DAY_MINUTES)),
        (State::Mismatched, Method::Card, 120 * DAY_MINUTES, None),
        (State::Canceled, Method::Checkout, 0, Some(60)),
        (State::Reversed, Method::Checkout, 0, None),
    ] {
        assert_eq!(minutes(state, method, now), next, "{state:?} {method:?} after {now}");
    }
}

#[test]
fn money_that_arrived_without_a_request_is_not_requested_and_is_verified_for_a_month() {
    let received =
        Charge { reference_source: ReferenceSource::Provider, ..charge(State::Requested) };
    assert!(received.is_received());
    assert!(
        !Charge { session_url: Some("https://p".to_owned()), ..received.clone() }.is_received()
    );
    let day_20 = Timestamp(20 * 24 * 60 * MINUTE_MS);
    assert_eq!(decide(&received, false, 1, &Fact::NotFound(day_20), day_20), Decision::Ignore);
    for (status, decision) in [
        (PaymentStatus::Success, Decision::Succeed),
        (PaymentStatus::Pending, Decision::Open),
        (PaymentStatus::Failed, Decision::Fail),
        (PaymentStatus::Reversed, Decision::Fail),
    ] {
        assert_eq!(decide(&received, false, 1, &fact(status), day_20), decision, "{status:?}");
    }
    assert!(next_check(&received, day_20).is_some());
    assert!(next_check(&charge(State::Requested), day_20).is_none());
}
