//! The implementation of `MerchantAccount`: scheduled changes, pages, and controls.

use super::{MINOR_UNITS, accounts::Account, push::TIMED_OUT};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError, check_prompt},
    env::Env,
    provider::MerchantAccount,
    timer_queue::TimerQueue,
};

const CURRENCY: &str = "KES";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerEvent {
    /// The `CheckoutRequestID`, and the result code of the answer.
    AutomaticAnswer(String, u16),
    /// The `CheckoutRequestID`.
    PromptExpiry(String),
    /// The `ConversationID`.
    Command(String),
}

impl MerchantAccount for Account {
    type TimerEvent = TimerEvent;

    fn open(key: &str, _: &Env) -> Account {
        Account::new(key)
    }

    fn timers(&mut self) -> &mut TimerQueue<TimerEvent> {
        &mut self.timers
    }

    fn handle_timer(&mut self, env: &Env, due: TimerEvent) {
        match due {
            TimerEvent::AutomaticAnswer(id, code) => self.settle(env, &id, code),
            TimerEvent::PromptExpiry(id) => self.settle(env, &id, TIMED_OUT),
            TimerEvent::Command(id) => self.run_command(env, &id),
        }
    }

    /// Returns none: the front page lists prompts by phone.
    fn open_checkouts(&self, _: &Env) -> Vec<(u64, Checkout)> {
        Vec::new()
    }

    fn checkout(&self, _: &Env, id: &str) -> Option<Checkout> {
        self.pushes.get(id).map(|push| Checkout {
            id: push.checkout_request_id.clone(),
            provider: "M-Pesa",
            merchant: self.merchant(),
            payer: push.phone.clone(),
            amount: Some((push.amount * MINOR_UNITS, CURRENCY.to_owned())),
            reference: push.account_reference.clone(),
            open: push.is_open(),
            cards: Vec::new(),
        })
    }

    fn complete(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>> {
        let is_open = self.pushes.get(id)?.is_open();
        Some(check_prompt(is_open, card).map(|()| {
            self.answer(env, id, outcome.into());
            Completion { outcome, redirect_url: None }
        }))
    }

    /// M-Pesa reports no currency, so only the amount can be another.
    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        currency == CURRENCY && self.tamper_charged_amount(reference, amount_minor)
    }

    fn tamper_charged_amount(&mut self, reference: &str, taken_minor: u64) -> bool {
        let mut found = false;
        for push in self.pushes.values_mut().filter(|push| push.has_reference(reference)) {
            push.reported_amount = Some(taken_minor / MINOR_UNITS);
            found = true;
        }
        found
    }

    fn reverse(&mut self, _: &Env, reference: &str) -> bool {
        let payment = self
            .pushes
            .values_mut()
            .find(|push| push.has_reference(reference) && push.is_paid() && !push.reversed);
        let Some(payment) = payment else { return false };
        payment.reversed = true;
        self.balance = self.balance.saturating_sub(payment.amount);
        true
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        let push =
            self.pushes.values().find(|push| push.has_reference(reference) && push.is_open());
        let Some(id) = push.map(|push| push.checkout_request_id.clone()) else { return false };
        self.answer(env, &id, outcome.into()).is_some()
    }
}
