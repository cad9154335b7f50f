//! What the sandbox asks of a Monnify account: what it does by itself as time passes, its pages, and its controls.

use super::{
    accounts::Account,
    transactions::{Origin, Status, Transaction},
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
    /// By the merchant's reference.
    Refund(String),
    /// By payment reference.
    Debit(String),
    /// These are by code.
    MandateActivation(String),
    MandateAuthorizationEnd(String),
    MandateEnd(String),
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
            Due::Refund(reference) => self.finish_refund(env, &reference),
            Due::Debit(reference) => {
                let fails = self.by_reference(&reference).is_some_and(|debit| debit.debit_fails);
                self.finish(env, &reference, !fails);
            }
            Due::MandateActivation(code) => self.activate_mandate(env, &code),
            Due::MandateAuthorizationEnd(code) => self.end_authorization(env, &code),
            Due::MandateEnd(code) => self.end_mandate(env, &code),
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
        let pending = self.by_reference(reference).filter(|t| t.status == Status::Pending);
        let Some(is_checkout) = pending.map(|t| t.origin == Origin::Checkout) else {
            return false;
        };
        match (outcome, is_checkout) {
            (Outcome::Abandoned, true) => self.change(reference, |t| t.status = Status::Expired),
            (Outcome::Abandoned, false) => self.change(reference, |t| t.status = Status::Cancelled),
            (_, true) => false,
            (outcome, false) => self.finish(env, reference, outcome == Outcome::Success),
        }
    }
}

impl Account {
    fn change(&mut self, reference: &str, change: impl FnOnce(&mut Transaction)) -> bool {
        self.by_reference_mut(reference).map(change).is_some()
    }
}
