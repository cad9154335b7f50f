//! What the sandbox asks of a Paystack account: what it does by itself as time passes, its pages, and its controls.

use super::{
    accounts::Account,
    transactions::{Status, Transaction},
};
use crate::{
    Outcome,
    agenda::Agenda,
    checkout::{Checkout, Completed, Refusal},
    env::Env,
    provider::Merchant,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// By id.
    Refund(u64),
    /// By reference.
    Mandate(String),
    /// By reference of the transaction.
    Debit(String),
}

impl Merchant for Account {
    type Due = Due;

    fn open(key: &str, env: &Env) -> Account {
        Account::new(key, env)
    }

    fn agenda(&mut self) -> &mut Agenda<Due> {
        &mut self.agenda
    }

    fn get_on(&mut self, env: &Env, due: Due) {
        match due {
            Due::Refund(id) => self.finish_refund(env, id),
            Due::Mandate(reference) => self.activate_mandate(env, &reference),
            Due::Debit(reference) => {
                let fails = self.by_reference(&reference).is_some_and(|debit| debit.debit_fails);
                let outcome = if fails { Outcome::Failed } else { Outcome::Success };
                self.finish_charge(env, &reference, outcome);
            }
        }
    }

    fn open_checkouts(&self, _: &Env) -> Vec<(u64, Checkout)> {
        self.open_pages()
    }

    fn checkout(&self, _: &Env, id: &str) -> Option<Checkout> {
        self.page(id)
    }

    fn complete(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completed, Refusal>> {
        self.complete_page(env, id, outcome, card)
    }

    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.change(reference, |transaction| {
            transaction.reported_amount = Some((amount_minor, currency.to_owned()));
        })
    }

    fn tamper_taken(&mut self, reference: &str, taken_minor: u64) -> bool {
        self.change(reference, |transaction| transaction.reported_taken = Some(taken_minor))
    }

    fn reverse(&mut self, reference: &str) -> bool {
        self.change(reference, |transaction| transaction.status = Status::Reversed)
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        self.finish_charge(env, reference, outcome)
    }
}

impl Account {
    fn change(&mut self, reference: &str, change: impl FnOnce(&mut Transaction)) -> bool {
        self.by_reference_mut(reference).map(change).is_some()
    }
}
