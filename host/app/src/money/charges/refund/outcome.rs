//! The outcome of a refund: its states and what a fact changes. Pure.

use super::{Cause, RETRY_SECONDS, Refund, lease};
use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

/// Age from which a refund that the provider has not accepted counts as stalled.
const STALLED_SECONDS: i64 = 6 * 3_600;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RefundState {
    /// Requested, but not yet accepted by the provider.
    Requested,
    /// Accepted by the provider and in progress.
    Pending,
    /// Not accepted by the provider within six hours. The host keeps requesting it.
    Stalled,
    Done,
    /// No refund was made: the provider rejected it, or no request had an effect.
    Refused,
    /// Accepted by the provider, but failed later.
    Failed,
}

text_columns!(RefundState);

/// The result of a request or a query of a refund.
#[derive(Clone, Debug)]
pub enum RefundFact {
    Seen(ProviderRefund),
    /// The request failed. `rejected`: the provider rejected the refund.
    Failed {
        certainty: Certainty,
        rejected: bool,
        error: String,
    },
    /// The host could not make the request, or a query failed.
    NotRequested {
        error: String,
    },
}

/// Decides the next state of a refund. `is_current`: no newer request has begun. A late acceptance
/// counts, a late rejection does not.
fn judge(refund: &Refund, is_current: bool, fact: &RefundFact) -> RefundState {
    use ProviderRefundStatus as Seen;
    let is_accepted = refund.state == RefundState::Pending;
    match fact {
        _ if !refund.is_open() => refund.state,
        RefundFact::Seen(seen) => match seen.status {
            Seen::Done => RefundState::Done,
            Seen::Pending => RefundState::Pending,
            Seen::Failed if is_accepted => RefundState::Failed,
            Seen::Failed if is_current => RefundState::Refused,
            Seen::Failed => refund.state,
        },
        RefundFact::Failed { certainty: Certainty::NotDone, rejected, .. } => {
            // An operator who received "not done" may try again; no
            // client waits for the refund of a verification charge.
            let is_certain = !refund.unsure && refund.cause == Cause::Operator;
            match !is_accepted && is_current && (*rejected || is_certain) {
                true => RefundState::Refused,
                false => refund.state,
            }
        }
        RefundFact::Failed { .. } | RefundFact::NotRequested { .. } => refund.state,
    }
}

impl RefundState {
    pub fn is_open(self) -> bool {
        matches!(self, RefundState::Requested | RefundState::Pending | RefundState::Stalled)
    }

    pub fn has_failed(self) -> bool {
        matches!(self, RefundState::Refused | RefundState::Failed)
    }
}

impl Refund {
    pub fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Returns the time until which no call for this refund may begin. A request waits for a minute
    /// after an earlier one with an unknown outcome. The provider may still be processing that one:
    /// it could make both refunds, and a rejection would not show that there is none. A call that
    /// only `queries` does not wait.
    pub fn busy_until(&self, queries: bool) -> Option<Timestamp> {
        if queries {
            return self.lease_until;
        }
        let responded = self.unsure.then(|| self.updated_at.plus_seconds(RETRY_SECONDS));
        // If its host has stopped, the lease was extended for the last time 20 s before its end.
        let lease = self.lease_until;
        let leased = lease.map(|until| until.plus_seconds(RETRY_SECONDS - lease::LEASE_SECONDS));
        responded.max(leased)
    }

    /// Begins a request under a new fence and lease.
    pub fn claim(&mut self, now: Timestamp) {
        // The former request ended with its lease.
        self.unsure |= self.lease_until.is_some();
        self.fence += 1;
        self.lease_until = Some(lease::end(now));
    }

    /// Records the result of a call.
    pub fn record(&mut self, is_current: bool, fact: RefundFact, now: Timestamp) {
        self.state = judge(self, is_current, &fact);
        match fact {
            RefundFact::Seen(seen) => {
                (self.provider_id, self.message) = (seen.provider_id, seen.message);
                self.last_error = None;
            }
            RefundFact::Failed { certainty, error, .. } => {
                self.unsure |= certainty == Certainty::Unknown && is_current;
                if !self.is_open() {
                    self.message.clone_from(&error);
                }
                self.last_error = Some(error);
            }
            RefundFact::NotRequested { error } => self.last_error = Some(error),
        }
        let age_ms = now.0 - self.created_at.0;
        if self.state == RefundState::Requested && age_ms >= STALLED_SECONDS * 1_000 {
            self.state = RefundState::Stalled;
        }
        if is_current {
            self.lease_until = None;
        }
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::config::FeeBearer;

    fn refund(state: RefundState, cause: Cause, unsure: bool) -> Refund {
        Refund {
            company_id: "company".into(),
            id: "r1".to_owned(),
            charge_id: "charge".into(),
            number: 1,
            amount: Minor(500),
            held: Minor(500),
            fee: Minor(0),
            fee_bearer: FeeBearer::Service,
            replaces: false,
            currency: "NGN".into(),
            cause,
            refund_ref: "r1".to_owned(),
            provider_id: String::new(),
            state,
            fence: 1,
            lease_until: Some(Timestamp(1)),
            unsure,
            message: String::new(),
            last_error: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    fn seen(status: ProviderRefundStatus) -> RefundFact {
        RefundFact::Seen(ProviderRefund {
            status,
            provider_id: "7".to_owned(),
            message: String::new(),
            state: None,
        })
    }

    fn failed(certainty: Certainty, rejected: bool) -> RefundFact {
        RefundFact::Failed { certainty, rejected, error: "Refused too-late".to_owned() }
    }

    fn not_requested() -> RefundFact {
        RefundFact::NotRequested { error: "Refused no".to_owned() }
    }

    #[test]
    fn the_money_is_released_only_if_there_certainly_is_no_refund() {
        use Cause::{Operator, Verification};
        use ProviderRefundStatus as Seen;
        use RefundState::{Done, Failed, Pending, Refused, Requested, Stalled};
        let not_done = Certainty::NotDone;
        // The last two: at the current fence, and at an earlier one.
        for (state, cause, unsure, fact, current, late) in [
            (Requested, Operator, false, seen(Seen::Pending), Pending, Pending),
            (Requested, Operator, false, seen(Seen::Done), Done, Done),
            (Requested, Operator, false, seen(Seen::Failed), Refused, Requested),
            (Stalled, Operator, true, seen(Seen::Done), Done, Done),
            (Pending, Operator, true, seen(Seen::Done), Done, Done),
            // Accepted before: the money stays with the provider.
            (Pending, Operator, false, seen(Seen::Failed), Failed, Failed),
            (Pending, Operator, false, failed(not_done, true), Pending, Pending),
            (Requested, Operator, false, failed(not_done, true), Refused, Requested),
            (Requested, Operator, false, failed(not_done, false), Refused, Requested),
            // After an unknown outcome only a refusal proves that there is none.
            (Requested, Operator, true, failed(not_done, false), Requested, Requested),
            (Requested, Operator, true, failed(not_done, true), Refused, Requested),
            (Stalled, Verification, true, failed(not_done, true), Refused, Stalled),
            // No client waits for it: it is requested again.
            (Requested, Verification, false, failed(not_done, false), Requested, Requested),
            (Requested, Operator, false, not_requested(), Requested, Requested),
            (Requested, Operator, true, not_requested(), Requested, Requested),
            (Pending, Operator, false, not_requested(), Pending, Pending),
            (Requested, Operator, false, failed(Certainty::Unknown, false), Requested, Requested),
            (Requested, Operator, false, failed(Certainty::Unknown, true), Requested, Requested),
            // Ended.
            (Done, Operator, false, seen(Seen::Failed), Done, Done),
            (Refused, Operator, false, seen(Seen::Done), Refused, Refused),
            (Failed, Operator, false, seen(Seen::Done), Failed, Failed),
        ] {
            for (is_current, expected) in [(true, current), (false, late)] {
                let refund = refund(state, cause, unsure);
                let judged = judge(&refund, is_current, &fact);
                let what = format!("{state:?} {cause:?} {unsure} {fact:?} {is_current}");
                assert_eq!(judged, expected, "{what}");
            }
        }
    }

    #[test]
    fn a_result_ends_its_own_lease_only_and_an_unknown_one_is_remembered() {
        let unknown = || failed(Certainty::Unknown, false);
        for (is_current, lease_until, unsure) in
            [(true, None, true), (false, Some(Timestamp(1)), false)]
        {
            let mut refund = refund(RefundState::Requested, Cause::Operator, false);
            refund.record(is_current, unknown(), Timestamp(2));
            assert_eq!((refund.lease_until, refund.unsure), (lease_until, unsure));
            assert_eq!(refund.last_error.as_deref(), Some("Refused too-late"));
        }
        // A host that stopped left its lease behind: the outcome of its request is unknown.
        let mut left = refund(RefundState::Requested, Cause::Operator, false);
        left.claim(Timestamp(60_000));
        assert!(left.unsure && left.fence == 2);
    }

    #[test]
    fn a_request_waits_a_minute_after_one_with_an_unknown_outcome_and_a_query_does_not() {
        let new = || Refund {
            lease_until: None,
            ..refund(RefundState::Requested, Cause::Operator, false)
        };
        let busy = |refund: &Refund| [false, true].map(|queries| refund.busy_until(queries));
        assert_eq!(busy(&new()), [None, None]);
        let mut running = new();
        running.claim(Timestamp(1_000));
        // The lease ends 20 s after the host stops.
        assert_eq!(busy(&running), [Some(Timestamp(61_000)), Some(Timestamp(21_000))]);
        for (certainty, expected) in
            [(Certainty::Unknown, Some(Timestamp(65_000))), (Certainty::NotDone, None)]
        {
            let mut refund = running.clone();
            refund.record(true, failed(certainty, false), Timestamp(5_000));
            assert_eq!(busy(&refund), [expected, None], "{certainty:?}");
        }
    }

    #[test]
    fn a_refund_stalls_after_six_hours_without_a_definite_response() {
        for (hours, state, expected) in [
            (5, RefundState::Requested, RefundState::Requested),
            (6, RefundState::Requested, RefundState::Stalled),
            (6, RefundState::Pending, RefundState::Pending),
        ] {
            let mut refund = refund(state, Cause::Verification, false);
            let error = "unavailable".to_owned();
            refund.record(true, RefundFact::NotRequested { error }, Timestamp(hours * 3_600_000));
            assert_eq!(refund.state, expected, "{state:?} after {hours} hours");
        }
    }
}
