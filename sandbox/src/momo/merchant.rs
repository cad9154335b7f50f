//! The implementation of `MerchantAccount`: scheduled changes, pages, and controls.

use super::{
    accounts::Account,
    requests::{Answer, PaymentRequest},
};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError, check_prompt},
    env::Env,
    provider::MerchantAccount,
    timer_queue::TimerQueue,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerEvent {
    /// The `X-Reference-Id` of a request to pay, and its answer.
    Answer(String, Answer),
    /// The `X-Reference-Id` of a refund.
    Refund(String),
}

impl Account {
    fn page(&self, payment: &PaymentRequest) -> Checkout {
        Checkout {
            id: payment.reference.clone(),
            provider: "MTN MoMo",
            merchant: self.merchant(),
            payer: payment.payer.clone(),
            amount: Some((payment.amount, payment.currency.clone())),
            reference: payment.external_id.clone(),
            open: payment.is_open(),
            cards: Vec::new(),
        }
    }

    /// Reports another amount, and another currency if one is given.
    fn report(&mut self, reference: &str, amount: u64, currency: Option<&str>) -> bool {
        let mut found = false;
        for payment in self.payments.values_mut().filter(|p| p.has_reference(reference)) {
            let currency = currency.unwrap_or(&payment.currency).to_owned();
            payment.reported = Some((amount, currency));
            found = true;
        }
        found
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
        match due {
            TimerEvent::Answer(reference, answer) => self.settle(env, &reference, answer.status()),
            TimerEvent::Refund(reference) => self.finish_refund(env, &reference),
        }
    }

    fn open_checkouts(&self, _: &Env) -> Vec<(u64, Checkout)> {
        let open = self.payments.values().filter(|payment| payment.is_open());
        open.map(|payment| (payment.number, self.page(payment))).collect()
    }

    fn checkout(&self, _: &Env, id: &str) -> Option<Checkout> {
        self.payments.get(id).map(|payment| self.page(payment))
    }

    fn complete(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>> {
        let is_open = self.payments.get(id)?.is_open();
        Some(check_prompt(is_open, card).map(|()| {
            self.settle(env, id, Answer::from(outcome).status());
            Completion { outcome, redirect_url: None }
        }))
    }

    fn tamper(&mut self, reference: &str, amount_minor: u64, currency: &str) -> bool {
        self.report(reference, amount_minor, Some(currency))
    }

    fn tamper_charged_amount(&mut self, reference: &str, taken_minor: u64) -> bool {
        self.report(reference, taken_minor, None)
    }

    /// Returns false: MoMo reports no reversals.
    fn reverse(&mut self, _: &Env, _: &str) -> bool {
        false
    }

    fn resolve(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        let open = self.payments.values().find(|p| p.has_reference(reference) && p.is_open());
        let Some(id) = open.map(|payment| payment.reference.clone()) else { return false };
        self.answer(env, &id, outcome.into()).is_some()
    }
}
