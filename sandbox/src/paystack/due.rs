//! What Paystack does by itself as time passes.

use super::{Paystack, accounts::Account};
use crate::{Outcome, env::Env, locked};

/// Seconds until a refund, a mandate or a direct debit gets on.
pub(super) const STEP_SECONDS: i64 = 10;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// By id.
    Refund(u64),
    /// By reference.
    Mandate(String),
    /// By reference of the transaction.
    Debit(String),
}

impl Paystack {
    /// Does all that is due by now.
    pub(crate) fn advance(&self) {
        let env = &self.0.env;
        for account in locked(&self.0.book).accounts.values_mut() {
            while account.is_due(env) {
                if let Some((_, due)) = account.due.pop_first() {
                    account.get_on(env, &due);
                    env.outbox.count();
                }
            }
        }
    }

    pub(crate) fn has_due(&self) -> bool {
        locked(&self.0.book).accounts.values().any(|account| account.is_due(&self.0.env))
    }
}

impl Account {
    fn is_due(&self, env: &Env) -> bool {
        self.due.first().is_some_and(|(at, _)| *at <= env.clock.now())
    }

    pub(super) fn schedule(&mut self, env: &Env, due: Due) {
        self.due.insert((env.clock.now().plus_seconds(STEP_SECONDS), due));
    }

    fn get_on(&mut self, env: &Env, due: &Due) {
        match due {
            Due::Refund(id) => self.finish_refund(env, *id),
            Due::Mandate(reference) => self.activate_mandate(env, reference),
            Due::Debit(reference) => {
                let fails = self.by_reference(reference).is_some_and(|debit| debit.debit_fails);
                let outcome = if fails { Outcome::Failed } else { Outcome::Success };
                self.finish_charge(env, reference, outcome);
            }
        }
    }
}
