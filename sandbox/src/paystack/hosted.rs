//! Paystack's part of the hosted page.

use super::{
    accounts::{Account, Instrument, Page},
    cards::{self, CARDS, Card},
    mandates::Mandate,
    transactions::{Status, Transaction},
};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError},
    env::Env,
};

impl Account {
    pub(super) fn page(&self, id: &str) -> Option<Checkout> {
        match self.pages.get(id)? {
            Page::Transaction(id) => Some(self.payment_page(self.transactions.get(id)?)),
            Page::Mandate(name) => Some(self.mandate_page(self.mandates.get(name)?)),
        }
    }

    pub(super) fn complete_page(
        &mut self,
        env: &Env,
        id: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>> {
        Some(match self.pages.get(id)?.clone() {
            Page::Transaction(id) => self.complete_payment(env, id, outcome, card),
            Page::Mandate(_) if card.is_some() => Err(CompletionError::CardNotAccepted),
            Page::Mandate(name) => self.complete_mandate(env, &name, outcome),
        })
    }

    pub(super) fn open_pages(&self) -> Vec<(u64, Checkout)> {
        let payments = self.transactions.values().filter(|t| t.access_code.is_some() && is_open(t));
        let mandates = self.mandates.values().filter(|mandate| mandate.is_open());
        let payments = payments.map(|payment| (payment.id, self.payment_page(payment)));
        payments.chain(mandates.map(|mandate| (mandate.id, self.mandate_page(mandate)))).collect()
    }

    fn payment_page(&self, transaction: &Transaction) -> Checkout {
        let cards = if transaction.accepts_cards() { &CARDS[..] } else { &[] };
        Checkout {
            id: transaction.access_code.clone().unwrap_or_default(),
            provider: "Paystack",
            merchant: self.merchant(),
            payer: transaction.email.clone(),
            amount: Some((transaction.amount, transaction.currency.clone())),
            reference: transaction.reference.clone(),
            open: is_open(transaction),
            cards: cards.iter().map(|card| (card.number, card.meaning)).collect(),
        }
    }

    fn mandate_page(&self, mandate: &Mandate) -> Checkout {
        Checkout {
            id: mandate.access_code.clone(),
            provider: "Paystack",
            merchant: self.merchant(),
            payer: mandate.email.clone(),
            amount: None,
            reference: mandate.reference.clone(),
            open: mandate.is_open(),
            cards: Vec::new(),
        }
    }

    fn merchant(&self) -> String {
        format!("Merchant {}", self.integration)
    }

    fn complete_payment(
        &mut self,
        env: &Env,
        id: u64,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Result<Completion, CompletionError> {
        let Some(transaction) = self.transactions.get(&id).filter(|t| is_open(t)) else {
            return Err(CompletionError::AlreadyPaid);
        };
        let outcome = if transaction.accepts_cards() {
            let card = self.select_card(transaction, card)?;
            self.attempt(env, id, card, outcome)
        } else if card.is_some() {
            return Err(CompletionError::CardNotAccepted);
        } else {
            self.attempt_without_card(env, id, outcome);
            outcome
        };
        let redirect_url = self.transactions.get(&id).and_then(|transaction| match outcome {
            Outcome::Abandoned => cancel_url(transaction),
            _ => return_url(transaction.callback_url.as_deref(), &transaction.reference),
        });
        Ok(Completion { outcome, redirect_url })
    }

    /// Returns the chosen card, the saved card that is being charged, or the success card.
    fn select_card(
        &self,
        transaction: &Transaction,
        named: Option<&str>,
    ) -> Result<&'static Card, CompletionError> {
        if let Some(number) = named {
            return cards::find(number).ok_or(CompletionError::UnknownCard);
        }
        let saved =
            transaction.authorization.as_ref().filter(|_| transaction.status == Status::Ongoing);
        match saved.and_then(|code| self.authorizations.get(code)).map(|a| a.instrument) {
            Some(Instrument::Card(card)) => Ok(card),
            _ => Ok(&CARDS[0]),
        }
    }

    fn attempt_without_card(&mut self, env: &Env, id: u64, outcome: Outcome) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        if let Some(channel) = transaction.channels.first() {
            transaction.channel.clone_from(channel);
        }
        match outcome {
            Outcome::Success => self.succeed(env, id),
            Outcome::Failed => transaction.fail("Declined"),
            Outcome::Abandoned => {}
        }
    }

    fn complete_mandate(
        &mut self,
        env: &Env,
        reference: &str,
        outcome: Outcome,
    ) -> Result<Completion, CompletionError> {
        let mandate = self.mandates.get(reference).filter(|mandate| mandate.is_open());
        let Some(mandate) = mandate else { return Err(CompletionError::AlreadyPaid) };
        let redirect_url = return_url(mandate.callback_url.as_deref(), reference)
            .filter(|_| outcome != Outcome::Abandoned);
        self.decide_mandate(env, reference, outcome);
        Ok(Completion { outcome, redirect_url })
    }
}

/// A customer may retry after a failure, but not after a success.
fn is_open(transaction: &Transaction) -> bool {
    matches!(transaction.status, Status::Abandoned | Status::Failed | Status::Ongoing)
}

fn cancel_url(transaction: &Transaction) -> Option<String> {
    let url = transaction.metadata.as_ref()?.get("cancel_action")?.as_str()?;
    Some(url::Url::parse(url).ok()?.into())
}

fn return_url(callback_url: Option<&str>, reference: &str) -> Option<String> {
    let mut url = url::Url::parse(callback_url?).ok()?;
    url.query_pairs_mut().append_pair("trxref", reference).append_pair("reference", reference);
    Some(url.into())
}
