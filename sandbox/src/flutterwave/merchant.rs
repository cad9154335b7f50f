//! What the sandbox asks of a Flutterwave account: what it does by itself as time passes, its pages, and its controls.

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
    /// The customer's transfer arrives, if nothing was decided on the page. By reference of the mandate.
    Consent(String),
    /// By reference of the mandate.
    Activation(String),
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
            Due::Refund(id) => self.finish_refund(id),
            Due::Consent(reference) => self.consent(env, &reference),
            Due::Activation(reference) => self.activate(env, &reference),
        }
    }

    fn open_checkouts(&self, env: &Env) -> Vec<(u64, Checkout)> {
        self.open_pages(env)
    }

    fn checkout(&self, env: &Env, id: &str) -> Option<Checkout> {
        self.page(env, id)
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

    /// Flutterwave has no status for it: the transaction is a failed one from now on.
    fn reverse(&mut self, reference: &str) -> bool {
        self.change(reference, |transaction| {
            transaction.status = Status::Failed;
            transaction.processor_response = Some("Transaction reversed".to_owned());
        })
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        self.finish_charge(env, reference, outcome)
    }
}

impl Account {
    fn change(&mut self, tx_ref: &str, change: impl FnOnce(&mut Transaction)) -> bool {
        self.by_reference_mut(tx_ref).map(change).is_some()
    }
}
