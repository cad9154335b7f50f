//! Flutterwave's part of the hosted page: payments, challenges of saved cards, and consent to
//! mandates.

use super::{
    accounts::Account,
    cards::{self, CARDS},
    transactions::{Status, Transaction},
};
use crate::{
    Outcome,
    checkout::{Checkout, Completion, CompletionError},
    env::Env,
};

const PROVIDER: &str = "Flutterwave";

impl Account {
    pub(super) fn page(&self, env: &Env, id: &str) -> Option<Checkout> {
        let of_payment = || {
            let transaction = self.transactions.get(self.pages.get(id)?)?;
            Some(self.payment_page(env, transaction))
        };
        of_payment().or_else(|| self.mandate_page(id))
    }

    pub(super) fn open_pages(&self, env: &Env) -> Vec<(u64, Checkout)> {
        let payments = self.transactions.values().filter(|t| t.page.is_some() && is_open(env, t));
        let payments = payments.map(|payment| (payment.id, self.payment_page(env, payment)));
        let mandates = self.mandates.values().filter(|mandate| mandate.is_open());
        let page = |reference: &str| self.mandate_page(reference);
        let mandates = mandates.filter_map(|m| Some((m.id, page(&m.reference)?)));
        payments.chain(mandates).collect()
    }

    pub(super) fn complete_page(
        &mut self,
        env: &Env,
        page: &str,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Option<Result<Completion, CompletionError>> {
        if let Some(id) = self.pages.get(page).copied() {
            return Some(self.complete_payment(env, id, outcome, card));
        }
        let open = self.mandates.get(page)?.is_open();
        Some(match (open, card) {
            (_, Some(_)) => Err(CompletionError::CardNotAccepted),
            (false, None) => Err(CompletionError::AlreadyPaid),
            (true, None) => {
                self.decide_mandate(env, page, outcome);
                Ok(Completion { outcome, redirect_url: None })
            }
        })
    }

    fn payment_page(&self, env: &Env, transaction: &Transaction) -> Checkout {
        let cards = if requires_card(transaction) { &CARDS[..] } else { &[] };
        Checkout {
            id: transaction.page.clone().unwrap_or_default(),
            provider: PROVIDER,
            merchant: self.merchant(),
            payer: transaction.email.clone(),
            amount: Some((transaction.amount, transaction.currency.clone())),
            reference: transaction.tx_ref.clone(),
            open: is_open(env, transaction),
            cards: cards.iter().map(|card| (card.number, card.meaning)).collect(),
        }
    }

    /// A page in place of the transfer by which the customer consents. Its id is the mandate's
    /// reference, because Flutterwave returns no link to it.
    fn mandate_page(&self, reference: &str) -> Option<Checkout> {
        let mandate = self.mandates.get(reference)?;
        Some(Checkout {
            id: reference.to_owned(),
            provider: PROVIDER,
            merchant: self.merchant(),
            payer: mandate.email.clone(),
            amount: None,
            reference: reference.to_owned(),
            open: mandate.is_open(),
            cards: Vec::new(),
        })
    }

    fn merchant(&self) -> String {
        format!("Merchant {}", self.id)
    }

    fn complete_payment(
        &mut self,
        env: &Env,
        id: u64,
        outcome: Outcome,
        card: Option<&str>,
    ) -> Result<Completion, CompletionError> {
        let Some(transaction) = self.transactions.get(&id).filter(|t| is_open(env, t)) else {
            return Err(CompletionError::AlreadyPaid);
        };
        let outcome = if requires_card(transaction) {
            let card = match card {
                Some(number) => cards::find(number).ok_or(CompletionError::UnknownCard)?,
                None => &CARDS[0],
            };
            self.attempt(env, id, card, outcome)
        } else if card.is_some() {
            return Err(CompletionError::CardNotAccepted);
        } else {
            self.attempt_without_card(env, id, outcome);
            outcome
        };
        let transaction = self.transactions.get_mut(&id);
        let redirect_url = transaction.and_then(|transaction| {
            if outcome == Outcome::Failed {
                let left = transaction.attempts_left;
                transaction.attempts_left = left.map(|left| left.saturating_sub(1));
            }
            return_url(transaction, outcome)
        });
        Ok(Completion { outcome, redirect_url })
    }

    fn attempt_without_card(&mut self, env: &Env, id: u64, outcome: Outcome) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        if let Some(option) = transaction.payment_options.first() {
            transaction.payment_type = payment_type(option);
        }
        match outcome {
            Outcome::Success => self.succeed(env, id),
            Outcome::Failed => self.fail(env, id, "Transaction failed"),
            Outcome::Abandoned => {}
        }
    }
}

/// Returns whether the page needs a card: the card of a challenge is already known.
fn requires_card(transaction: &Transaction) -> bool {
    transaction.status != Status::PendingAuth && transaction.accepts_cards()
}

/// A customer may retry after a failure on the page, but not after a success; a challenge is
/// completed once.
fn is_open(env: &Env, transaction: &Transaction) -> bool {
    let may_try = match transaction.status {
        Status::NotAttempted | Status::PendingAuth => true,
        Status::Failed => transaction.token.is_none() && transaction.attempts_left != Some(0),
        Status::Pending | Status::Successful | Status::Cancelled => false,
    };
    may_try && transaction.page_expires_at.is_none_or(|at| env.clock.now() < at)
}

/// Returns the `payment_type` for a payment option.
fn payment_type(option: &str) -> String {
    let name = match option {
        "banktransfer" => "bank_transfer",
        "qr" => "nqr",
        "mobilemoneyghana" => "mobilemoneygh",
        "mobilemoneyrwanda" => "mobilemoneyrw",
        "mobilemoneyuganda" => "mobilemoneyug",
        "mobilemoneyzambia" => "mobilemoneyzm",
        "mobilemoneytanzania" => "mobilemoneytz",
        "mobilemoneyfranco" => "mobilemoneysn",
        other => other,
    };
    name.to_owned()
}

/// Returns the redirect URL. A customer who leaves returns to the same URL, without a transaction
/// id.
fn return_url(transaction: &Transaction, outcome: Outcome) -> Option<String> {
    let mut url = url::Url::parse(transaction.redirect_url.as_deref()?).ok()?;
    let status = match outcome {
        Outcome::Success if transaction.payment_type == "card" => "successful",
        Outcome::Success => "completed",
        Outcome::Failed => "failed",
        Outcome::Abandoned => "cancelled",
    };
    url.query_pairs_mut().append_pair("status", status).append_pair("tx_ref", &transaction.tx_ref);
    if outcome != Outcome::Abandoned {
        url.query_pairs_mut().append_pair("transaction_id", &transaction.id.to_string());
    }
    Some(url.into())
}
