//! The transitions of a charge. Pure: the model checker runs them.

use super::{Charge, Decision, Fact, State, fees, lease};
use crate::money::prelude::*;

impl Charge {
    /// Begins a request under a new fence and lease.
    pub fn claim(&mut self, now: Timestamp) {
        // Unless the charge is queued, the outcome of an earlier request is unknown.
        self.unsure |= self.state != State::Queued;
        self.state = State::Requested;
        self.fence += 1;
        self.lease_until = Some(lease::end(now));
        self.begun_at = self.begun_at.or(Some(now));
        self.requested_at = Some(now);
        self.updated_at = now;
        self.holds_lane = self.lane.is_some();
    }

    /// Ends a charge that was never requested, or whose requests certainly had no effect.
    pub fn cancel(&mut self, now: Timestamp) {
        (self.state, self.lease_until, self.holds_lane) = (State::Canceled, None, false);
        self.updated_at = now;
    }

    /// Marks a page that no payer has as replaced by another charge.
    pub fn supersede(&mut self, now: Timestamp) {
        (self.superseded, self.lease_until, self.updated_at) = (true, None, now);
    }

    /// Returns whether no request of the charge can have had an effect.
    pub fn is_certain(&self) -> bool {
        self.state == State::Queued && !self.unsure
    }

    /// Ends a charge that another one replaces, and whose requests certainly had no effect.
    pub fn replace(&mut self, now: Timestamp) {
        self.superseded = true;
        self.cancel(now);
    }

    /// Records the decision about a fact.
    pub fn record(&mut self, decision: Decision, fact: &Fact, now: Timestamp) {
        match (decision, fact) {
            (Decision::Ignore | Decision::Foreign | Decision::Forget, _) => return,
            (Decision::Replace, _) => return self.replace(now),
            (Decision::Supersede, _) => return self.supersede(now),
            (Decision::Open, Fact::Session(session)) => {
                self.session_url = Some(session.url.clone());
            }
            // A request that the provider does not know may still arrive.
            (Decision::Unsure, _) | (Decision::Requeue, Fact::NotFound(_)) => self.unsure = true,
            (_, Fact::Seen(seen)) => self.copy(decision, seen, now),
            _ => {}
        }
        self.state = match decision {
            // A webhook may have settled the charge before the response with its session.
            Decision::Open if matches!(self.state, State::Requested | State::Queued) => State::Open,
            Decision::Requeue => State::Queued,
            Decision::Fail => State::Failed,
            Decision::Succeed | Decision::Surplus => State::Succeeded,
            Decision::Mismatch(_) => State::Mismatched,
            Decision::Reverse => State::Reversed,
            _ => self.state,
        };
        self.lease_until = None;
        self.holds_lane &= self.is_undecided();
        self.updated_at = now;
    }

    fn copy(&mut self, decision: Decision, seen: &ProviderPayment, now: Timestamp) {
        if self.session_url.is_none() && !self.superseded && !self.is_received() {
            self.session_url.clone_from(&seen.challenge_url);
        }
        if !seen.transaction_id.is_empty() {
            self.transaction_id.clone_from(&seen.transaction_id);
        }
        self.mismatch = match decision {
            Decision::Succeed | Decision::Surplus => None,
            Decision::Mismatch(what) => Some(what.to_owned()),
            _ => return,
        };
        let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
        self.taken = Some(requested.minor.min(seen.amount.minor));
        self.taken_currency = Some(seen.amount.currency.clone());
        self.fees = seen.fees.map(|_| fees(seen));
        self.counts = decision == Decision::Succeed;
        self.settled_at = Some(now);
    }
}
