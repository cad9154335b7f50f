//! Monnify's part of the hosted page: payments, challenges of saved cards, and the authorization of
//! mandates.

use super::{
    accounts::{Account, Page},
    cards::{self, CARDS},
    mandates::Mandate,
    transactions::{Origin, Status, Transaction},
};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError},
    env::Env,
};

const PROVIDER: &str = "Monnify";

impl Account {
    pub(super) fn page(&self, id: &str) -> Option<Checkout> {
        match self.pages.get(id)? {
            Page::Transaction(own) => Some(self.payment_page(self.transactions.get(own)?)),
            Page::Mandate(code) => Some(self.mandate_page(self.mandates.get(code)?)),
        }
    }

    pub(super) fn open_pages(&self) -> Vec<(u64, Checkout)> {
        let payments = self.transactions.values().filter(|t| t.page.is_some() && is_open(t));
        let payments = payments.map(|payment| (payment.number, self.payment_page(payment)));
        let mandates = self.mandates.values().filter(|mandate| mandate.is_open());
        payments.chain(mandates.map(|m| (m.number, self.mandate_page(m)))).collect()
    }

    pub(super) fn complete_page(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>> {
        Some(match self.pages.get(id)?.clone() {
            Page::Transaction(own) => self.complete_payment(env, &own, outcome, card),
            Page::Mandate(_) if card.is_some() => Err(CompletionError::CardNotAccepted),
            Page::Mandate(code) => self.complete_mandate(env, &code, outcome),
        })
    }

    fn payment_page(&self, transaction: &Transaction) -> Checkout {
        let cards = if transaction.accepts_cards() { &CARDS[..] } else { &[] };
        Checkout {
            id: transaction.page.clone().unwrap_or_default(),
            provider: PROVIDER,
            merchant: self.merchant(),
            payer: transaction.email.clone(),
            amount: Some((transaction.payable, transaction.currency.clone())),
            reference: transaction.payment_reference.clone(),
            open: is_open(transaction),
            cards: cards.iter().map(|card| (card.number, card.meaning)).collect(),
        }
    }

    fn mandate_page(&self, mandate: &Mandate) -> Checkout {
        Checkout {
            id: mandate.page.clone(),
            provider: PROVIDER,
            merchant: self.merchant(),
            payer: mandate.email.clone(),
            amount: None,
            reference: mandate.reference.clone(),
            open: mandate.is_open(),
            cards: Vec::new(),
        }
    }

    fn complete_payment(
        &mut self,
        env: &Env,
        own: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Result<Completion, CompletionError> {
        let Some(transaction) = self.transactions.get_mut(own).filter(|t| is_open(t)) else {
            return Err(CompletionError::AlreadyPaid);
        };
        let redirect_url = return_url(transaction.redirect_url.as_deref(), own);
        if transaction.accepts_cards() {
            let card = match card {
                Some(number) => cards::find(number).ok_or(CompletionError::UnknownCard)?,
                None => &CARDS[0],
            };
            let outcome = self.attempt(env, own, card, outcome);
            return Ok(Completion { outcome, redirect_url });
        }
        if card.is_some() {
            return Err(CompletionError::CardNotAccepted);
        }
        match outcome {
            Outcome::Success => self.record_full_payment(env, own),
            Outcome::Failed => transaction.status = Status::Failed,
            Outcome::Abandoned => {}
        }
        Ok(Completion { outcome, redirect_url })
    }

    fn complete_mandate(
        &mut self,
        env: &Env,
        code: &str,
        outcome: Outcome,
    ) -> Result<Completion, CompletionError> {
        let mandate = self.mandates.get(code).filter(|mandate| mandate.is_open());
        let mandate = mandate.ok_or(CompletionError::AlreadyPaid)?;
        let redirect_url = mandate.redirect_url.clone().filter(|_| outcome != Outcome::Abandoned);
        self.decide_mandate(env, code, outcome);
        Ok(Completion { outcome, redirect_url })
    }
}

/// A customer may retry after a failure on the page, but not after a success; a challenge is
/// completed once.
fn is_open(transaction: &Transaction) -> bool {
    match transaction.status {
        Status::Pending => true,
        Status::Failed => transaction.origin == Origin::Checkout,
        _ => false,
    }
}

/// Returns the redirect URL, which does not contain the outcome.
fn return_url(redirect_url: Option<&str>, payment_reference: &str) -> Option<String> {
    let mut url = url::Url::parse(redirect_url?).ok()?;
    url.query_pairs_mut().append_pair("paymentReference", payment_reference);
    Some(url.into())
}
