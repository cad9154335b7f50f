//! The implementation of `MerchantAccount`: scheduled changes, pages, and controls.

use super::{
    accounts::Account,
    pushes::{Answer, Push},
};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError, check_prompt},
    env::Env,
    provider::MerchantAccount,
    timer_queue::TimerQueue,
};

pub(super) const CURRENCY: &str = "KES";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerEvent {
    /// The reference of a push, and its answer.
    Answer(String, Answer),
}

impl Account {
    fn page(&self, push: &Push) -> Checkout {
        Checkout {
            id: push.reference.clone(),
            provider: "Jenga",
            merchant: self.credentials.merchant_name.clone(),
            payer: push.phone.clone(),
            amount: Some((push.amount, CURRENCY.to_owned())),
            reference: push.reference.clone(),
            open: push.is_open(),
            cards: Vec::new(),
        }
    }
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
        let TimerEvent::Answer(reference, answer) = due;
        self.settle(env, &reference, answer);
    }

    fn open_checkouts(&self, _: &Env) -> Vec<(u64, Checkout)> {
        let open = self.pushes.values().filter(|push| push.is_open());
        open.map(|push| (push.number, self.page(push))).collect()
    }

    fn checkout(&self, _: &Env, id: &str) -> Option<Checkout> {
        self.pushes.get(id).map(|push| self.page(push))
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
            self.settle(env, id, outcome.into());
            Completion { outcome, redirect_url: None }
        }))
    }

    /// The query reports no currency, so only the amount can be another.
    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        currency == CURRENCY && self.tamper_charged_amount(reference, amount_minor)
    }

    fn tamper_charged_amount(&mut self, reference: &str, taken_minor: u64) -> bool {
        let mut found = false;
        for push in self.pushes.values_mut().filter(|push| push.has_reference(reference)) {
            push.reported_amount = Some(taken_minor);
            found = true;
        }
        found
    }

    /// Returns false: Jenga reports no reversals.
    fn reverse(&mut self, _: &Env, _: &str) -> bool {
        false
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        let open = self.pushes.values().find(|p| p.has_reference(reference) && p.is_open());
        let Some(reference) = open.map(|push| push.reference.clone()) else { return false };
        self.answer(env, &reference, outcome.into()).is_some()
    }
}
