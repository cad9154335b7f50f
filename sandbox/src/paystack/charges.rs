//! Charges: attempts with a card on the page, and charges of a saved card or a mandate.

use axum::extract::State;
use serde_json::json;

use super::{
    Paystack,
    accounts::{Account, Authorization, Instrument},
    cards::{Card, ChargeOutcome},
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    merchant::TimerEvent,
    transactions::{Status, Transaction, checkout_url},
};
use crate::{Fault, FaultKind, Outcome, env::Env, provider::MerchantAccount};

impl Account {
    /// Attempts a payment with a card. Paystack sends no webhook for a failure.
    pub(super) fn attempt(
        &mut self,
        env: &Env,
        id: u64,
        card: &'static Card,
        outcome: Outcome,
    ) -> Outcome {
        let refusal = match (card.charge_outcome, outcome) {
            (ChargeOutcome::Fails(reason), _) => Some(reason),
            (ChargeOutcome::Succeeds, Outcome::Failed) => Some("Declined"),
            (ChargeOutcome::Succeeds, Outcome::Success) => None,
            (ChargeOutcome::Succeeds, Outcome::Abandoned) => return Outcome::Abandoned,
        };
        let Some(transaction) = self.transactions.get(&id) else { return Outcome::Abandoned };
        let (email, saved) = (transaction.email.clone(), transaction.authorization.clone());
        let saved = saved.filter(|code| self.is_authorization_for(code, card));
        let code =
            saved.unwrap_or_else(|| self.authorize(Instrument::Card(card), &email, env).code);
        if let (None, Some(authorization)) = (refusal, self.authorizations.get_mut(&code)) {
            authorization.active = true;
        }
        let Some(transaction) = self.transactions.get_mut(&id) else { return Outcome::Abandoned };
        "card".clone_into(&mut transaction.channel);
        transaction.authorization = Some(code);
        match refusal {
            Some(reason) => {
                transaction.fail(reason);
                Outcome::Failed
            }
            None => {
                self.succeed(env, id);
                Outcome::Success
            }
        }
    }

    fn is_authorization_for(&self, code: &str, card: &Card) -> bool {
        self.authorizations.get(code).is_some_and(
            |a| matches!(a.instrument, Instrument::Card(known) if known.number == card.number),
        )
    }

    /// Settles a pending charge. Returns false if there is none.
    pub(super) fn finish_charge(&mut self, env: &Env, reference: &str, outcome: Outcome) -> bool {
        let Some(transaction) = self.by_reference_mut(reference) else { return false };
        if !matches!(transaction.status, Status::Pending | Status::Processing) {
            return false;
        }
        let id = transaction.id;
        match outcome {
            Outcome::Success => self.succeed(env, id),
            Outcome::Failed => transaction.fail("Insufficient Funds"),
            Outcome::Abandoned => transaction.status = Status::Abandoned,
        }
        true
    }

    /// Settles a debit in progress.
    pub(super) fn finish_debit(&mut self, env: &Env, reference: &str) {
        let declined = self.by_reference(reference).and_then(|debit| debit.debit_fails);
        match (declined, self.by_reference_mut(reference)) {
            (Some(words), Some(debit)) if debit.status == Status::Processing => debit.fail(words),
            _ => drop(self.finish_charge(env, reference, Outcome::Success)),
        }
    }

    fn find_chargeable(&self, code: &str, email: &str) -> Result<Authorization, ApiError> {
        let refused = |message: &str| {
            ApiError::invalid("invalid_params", message, "Use another authorization")
        };
        let found = self.authorizations.get(code);
        let authorization = found.ok_or_else(|| refused("Authorization code is invalid"))?;
        if authorization.email != email {
            return Err(refused("Email does not match Authorization code. Please confirm"));
        }
        if !authorization.active {
            return Err(refused("Authorization is not active"));
        }
        Ok(authorization.clone())
    }

    /// Charges an authorization: the whole amount, or with `at_least` what the account has.
    fn charge(&mut self, env: &Env, params: &Params, at_least: Option<u64>) -> ApiResult {
        let mut transaction = Transaction::new(params, self, env)?;
        let code = params.required("authorization_code")?;
        let authorization = self.find_chargeable(&code, &transaction.email)?;
        self.customer(&transaction.email, env);
        transaction.authorization = Some(code);
        let fault = env.faults.take("charge", FaultKind::is_outcome);
        let half = transaction.amount / 2;
        let takes_part = |fault: &Fault| {
            fault.kind == FaultKind::Partial && at_least.is_some_and(|least| least <= half)
        };
        let is_partial = fault.as_ref().is_some_and(takes_part);
        if is_partial {
            transaction.take_part(half);
        }
        let fault = fault.filter(|_| !is_partial);
        match authorization.instrument {
            Instrument::Mandate => Ok(self.debit(env, transaction, fault)),
            Instrument::Card(card) => Ok(self.charge_card(env, transaction, card, fault)),
        }
    }

    fn debit(&mut self, env: &Env, mut transaction: Transaction, fault: Option<Fault>) -> Reply {
        transaction.status = Status::Processing;
        "direct_debit".clone_into(&mut transaction.channel);
        "Transaction in progress".clone_into(&mut transaction.gateway_response);
        transaction.debit_fails = fault.as_ref().and_then(Fault::decline_words);
        if fault.is_none_or(|fault| fault.kind != FaultKind::Pending) {
            self.schedule(env, TimerEvent::Debit(transaction.reference.clone()));
        }
        let id = self.add(transaction);
        Reply::new("Charge attempted", self.transaction_json(&self.transactions[&id]))
    }

    fn charge_card(
        &mut self,
        env: &Env,
        mut transaction: Transaction,
        card: &'static Card,
        fault: Option<Fault>,
    ) -> Reply {
        let declined = fault.as_ref().and_then(Fault::decline_words);
        let fault = fault.map(|fault| fault.kind);
        if fault == Some(FaultKind::Challenge) {
            transaction.status = Status::Ongoing;
            transaction.access_code = Some(env.random.code(15));
            let data = json!({
                "authorization_url": checkout_url(env, &transaction),
                "reference": transaction.reference,
                "access_code": transaction.access_code,
                "paused": true,
            });
            self.add(transaction);
            return Reply::new(
                "Please, redirect your customer to the authorization url provided",
                data,
            );
        }
        if fault == Some(FaultKind::Pending) {
            transaction.status = Status::Pending;
            "Transaction in progress".clone_into(&mut transaction.gateway_response);
        }
        let id = self.add(transaction);
        match fault {
            Some(FaultKind::Pending) => {}
            Some(FaultKind::Decline | FaultKind::Partial) => {
                self.attempt(env, id, card, Outcome::Failed);
                if let Some((transaction, words)) = self.transactions.get_mut(&id).zip(declined) {
                    transaction.fail(words);
                }
            }
            _ => {
                self.attempt(env, id, card, Outcome::Success);
            }
        }
        Reply::new("Charge attempted", self.transaction_json(&self.transactions[&id]))
    }
}

pub(super) async fn charge(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| account.charge(env, &params, None))
}

pub(super) async fn partial_debit(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| {
        let at_least = params.amount("at_least")?.unwrap_or(1);
        account.charge(env, &params, Some(at_least))
    })
}
