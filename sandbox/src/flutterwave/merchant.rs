//! The implementation of `Merchant` for Flutterwave accounts: scheduled changes, pages, and
//! controls.

use super::{accounts::Account, chargebacks::ChargebackStatus, transactions::Transaction};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError},
    env::Env,
    provider::MerchantAccount,
    timer_queue::TimerQueue,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerEvent {
    /// The id of the refund.
    Refund(u64),
    /// The reference of the mandate. The customer's transfer arrives, unless the customer chose
    /// otherwise on the page.
    Consent(String),
    /// The reference of the mandate.
    Activation(String),
}

impl MerchantAccount for Account {
    type TimerEvent = TimerEvent;

    fn open(key: &str, env: &Env) -> Account {
        Account::new(key, env)
    }

    fn timers(&mut self) -> &mut TimerQueue<TimerEvent> {
        &mut self.timers
    }

    fn handle_timer(&mut self, env: &Env, due: TimerEvent) {
        match due {
            TimerEvent::Refund(id) => self.finish_refund(id),
            TimerEvent::Consent(reference) => self.consent(env, &reference),
            TimerEvent::Activation(reference) => self.activate(env, &reference),
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
    ) -> Option<Result<Completion, CompletionError>> {
        self.complete_page(env, id, outcome, card)
    }

    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.edit_transaction(reference, |transaction| {
            transaction.reported_amount = Some((amount_minor, currency.to_owned()));
        })
    }

    fn tamper_charged_amount(&mut self, reference: &str, taken_minor: u64) -> bool {
        self.edit_transaction(reference, |transaction| {
            transaction.reported_charged_minor = Some(taken_minor)
        })
    }

    /// Flutterwave has no status for a reversal: the transaction stays successful, and has a lost
    /// chargeback.
    fn reverse(&mut self, env: &Env, reference: &str) -> bool {
        self.charge_back(env, reference, None, ChargebackStatus::Lost)
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        self.finish_charge(env, reference, outcome)
    }
}

impl Account {
    fn edit_transaction(&mut self, tx_ref: &str, change: impl FnOnce(&mut Transaction)) -> bool {
        self.by_reference_mut(tx_ref).map(change).is_some()
    }
}
