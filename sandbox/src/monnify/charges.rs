//! Charges by card: attempts on the hosted page, and charges of a saved card.

use axum::extract::State;
use serde_json::{Value, json};

use super::{
    Monnify,
    accounts::{Account, SavedCard},
    cards::{Card, CardChallenge},
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    transactions::{Order, Origin, Status, Transaction},
};
use crate::{Fault, FaultKind, Outcome, env::Env, money::major};

impl Account {
    /// Attempts a payment with a card. Monnify sends no webhook for a failure.
    pub(super) fn attempt(
        &mut self,
        env: &Env,
        payment_reference: &str,
        card: &'static Card,
        outcome: Outcome,
    ) -> Outcome {
        let outcome = match (card.decline_reason, outcome) {
            (Some(_), _) => Outcome::Failed,
            (None, outcome) => outcome,
        };
        let Some(transaction) = self.transactions.get_mut(payment_reference) else {
            return Outcome::Abandoned;
        };
        if outcome == Outcome::Abandoned {
            return outcome;
        }
        "CARD".clone_into(&mut transaction.method);
        transaction.card = Some(card);
        if outcome == Outcome::Failed {
            transaction.status = Status::Failed;
            return outcome;
        }
        if self.tokenization {
            let token = format!("MNFY_{}", env.random.code(32).to_uppercase());
            transaction.token = Some(token.clone());
            let email = transaction.email.clone();
            self.saved_cards.insert(token, SavedCard { card, email });
        }
        self.record_full_payment(env, payment_reference);
        outcome
    }

    fn charge(&mut self, env: &Env, params: &Params) -> ApiResult {
        let token = params.required("cardToken")?;
        let amount = params.required_amount("amount")?;
        let email = params.email("customerEmail")?;
        let payment_reference = self.new_reference(params)?;
        self.check_contract(params)?;
        if params.required("apiKey")? != self.api_key {
            return Err(ApiError::invalid("API key is not valid for this merchant"));
        }
        if params.text("currencyCode").is_some_and(|currency| currency != "NGN") {
            return Err(ApiError::invalid("Currency is not supported"));
        }
        let saved = self.saved_cards.get(&token);
        let saved = saved.ok_or_else(|| ApiError::invalid("Card token is invalid"))?;
        if saved.email != email {
            return Err(ApiError::invalid("Card token does not belong to this customer"));
        }
        let card = saved.card;
        let order = Order { payment_reference: payment_reference.clone(), amount, email };
        self.add(Transaction {
            name: params.text("customerName"),
            description: params.text("paymentDescription"),
            meta: params.get("metaData").cloned(),
            card: Some(card),
            token: Some(token),
            ..Transaction::new(order, Origin::CardToken, env)
        });
        let fault = env.faults.take("charge", FaultKind::is_outcome);
        Ok(Reply(self.charge_saved_card(env, &payment_reference, card, fault)))
    }

    fn charge_saved_card(
        &mut self,
        env: &Env,
        payment_reference: &str,
        card: &Card,
        fault: Option<Fault>,
    ) -> Value {
        let declined = fault.as_ref().and_then(Fault::decline_words);
        match (fault.map(|fault| fault.kind), card.challenge) {
            (Some(FaultKind::Pending), _) => {
                self.charge_json(payment_reference, "PENDING", "Transaction is in progress")
            }
            (Some(FaultKind::Decline | FaultKind::Partial), _) => {
                self.finish(env, payment_reference, false);
                let words = declined.unwrap_or("Insufficient funds");
                self.charge_json(payment_reference, "FAILED", words)
            }
            (None, CardChallenge::Otp) => self.request_otp(env, payment_reference),
            (Some(FaultKind::Challenge), _) | (None, CardChallenge::ThreeDSecure) => {
                self.request_3ds(env, payment_reference)
            }
            _ => {
                self.finish(env, payment_reference, true);
                self.charge_json(payment_reference, "SUCCESS", "Transaction Successful")
            }
        }
    }

    /// A transaction as in responses to direct card charges, with its status there.
    pub(super) fn charge_json(
        &self,
        payment_reference: &str,
        status: &str,
        message: &str,
    ) -> Value {
        let Some(transaction) = self.transactions.get(payment_reference) else {
            return Value::Null;
        };
        let mut body = self.status_json(transaction);
        body["status"] = json!(status);
        body["message"] = json!(message);
        body["authorizedAmount"] = major(transaction.payable);
        body
    }
}

pub(super) async fn charge(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.charge(env, &params))
}
