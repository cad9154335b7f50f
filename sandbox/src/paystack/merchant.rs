//! The implementation of `Merchant` for Paystack accounts: scheduled changes, pages, and controls.

use super::{
    accounts::Account,
    transactions::{Status, Transaction},
};
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
    /// The id of the dispute.
    DisputeReminder(u64),
    /// The id of the dispute.
    DisputeDue(u64),
    /// The reference of the mandate.
    Mandate(String),
    /// The reference of the transaction.
    Debit(String),
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
            TimerEvent::Refund(id) => self.finish_refund(env, id),
            TimerEvent::DisputeReminder(id) => self.remind_of_dispute(env, id),
            TimerEvent::DisputeDue(id) => self.expire_dispute(env, id),
            TimerEvent::Mandate(reference) => self.activate_mandate(env, &reference),
            TimerEvent::Debit(reference) => {
                self.finish_debit(env, &reference);
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

    fn reverse(&mut self, _: &Env, reference: &str) -> bool {
        self.edit_transaction(reference, |transaction| transaction.status = Status::Reversed)
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        self.finish_charge(env, reference, outcome)
    }
}

impl Account {
    fn edit_transaction(&mut self, reference: &str, change: impl FnOnce(&mut Transaction)) -> bool {
        self.by_reference_mut(reference).map(change).is_some()
    }
}
