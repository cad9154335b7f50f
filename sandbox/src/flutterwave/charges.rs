//! Charges: attempts on the hosted page, and charges of tokens.

use axum::extract::State;
use serde_json::json;

use super::{
    Flutterwave,
    accounts::Account,
    cards::Card,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    mandates::MandateState,
    tokens::Instrument,
    transactions::{Order, Status, Transaction, fee},
};
use crate::{Fault, FaultKind, Outcome, env::Env};

const DECLINED: &str = "Transaction declined by your bank";
const INSUFFICIENT_FUNDS: &str = "Insufficient Funds";

impl Account {
    /// Attempts a payment with a card; the first success issues a token.
    pub(super) fn attempt(
        &mut self,
        env: &Env,
        id: u64,
        card: &'static Card,
        outcome: Outcome,
    ) -> Outcome {
        let refusal = match (card.decline_reason, outcome) {
            (Some(reason), _) => Some(reason),
            (None, Outcome::Failed) => Some(DECLINED),
            (None, Outcome::Success) => None,
            (None, Outcome::Abandoned) => return Outcome::Abandoned,
        };
        let Some(transaction) = self.transactions.get_mut(&id) else { return Outcome::Abandoned };
        "card".clone_into(&mut transaction.payment_type);
        card.auth_model.clone_into(&mut transaction.auth_model);
        transaction.instrument = Some(Instrument::Card(card));
        let email = transaction.email.clone();
        if let Some(reason) = refusal {
            self.fail(env, id, reason);
            return Outcome::Failed;
        }
        let token = self.issue_token(&email, Instrument::Card(card), env);
        if let Some(transaction) = self.transactions.get_mut(&id) {
            transaction.token = Some(token);
        }
        self.succeed(env, id);
        Outcome::Success
    }

    /// Records the success and sends the webhook.
    pub(super) fn succeed(&mut self, env: &Env, id: u64) {
        self.finish(env, id, Status::Successful, "Approved by Financial Institution");
    }

    /// Records the failure. Flutterwave sends webhooks for failures too.
    pub(super) fn fail(&mut self, env: &Env, id: u64, reason: &str) {
        self.finish(env, id, Status::Failed, reason);
    }

    fn finish(&mut self, env: &Env, id: u64, status: Status, processor_response: &str) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.status = status;
        transaction.processor_response = Some(processor_response.to_owned());
        transaction.fee =
            (status == Status::Successful).then(|| fee(transaction.amount, &transaction.currency));
        if let Some(transaction) = self.transactions.get(&id) {
            self.notify_charge(env, transaction);
        }
    }

    /// Settles a pending charge. Returns false if there is none.
    pub(super) fn finish_charge(&mut self, env: &Env, tx_ref: &str, outcome: Outcome) -> bool {
        let Some(transaction) = self.by_reference_mut(tx_ref) else { return false };
        if !transaction.status.is_pending() {
            return false;
        }
        let id = transaction.id;
        match outcome {
            Outcome::Success => self.succeed(env, id),
            Outcome::Failed => self.fail(env, id, INSUFFICIENT_FUNDS),
            Outcome::Abandoned => transaction.status = Status::Cancelled,
        }
        true
    }

    fn charge(&mut self, env: &Env, params: &Params) -> ApiResult {
        let text = params.required("token")?;
        let order = Order::new(params, params.email()?, self)?;
        let token = self.tokens.get(&text).filter(|token| token.email == order.email).cloned();
        let token = token.ok_or_else(|| unknown_token(&text))?;
        let transaction = Transaction {
            narration: params.text("narration").unwrap_or_else(|| "CARD Transaction ".to_owned()),
            redirect_url: params.text("redirect_url"),
            token: Some(text),
            instrument: Some(token.instrument.clone()),
            auth_model: "noauth".to_owned(),
            ..Transaction::new(order, self, env)
        };
        let names = [params.text("first_name"), params.text("last_name")];
        let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.upsert_customer(&transaction.email, Some(name).filter(|n| !n.is_empty()), None, env);
        match token.instrument {
            Instrument::Card(_) => {
                params.required("currency")?;
                Ok(self.charge_card(env, transaction, params.flag("do_3ds")))
            }
            Instrument::Mandate(reference) => self.debit(env, transaction, &reference),
        }
    }

    fn charge_card(&mut self, env: &Env, mut transaction: Transaction, challenge: bool) -> Reply {
        let fault = env.faults.take("charge", FaultKind::is_outcome);
        if challenge || fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Challenge) {
            return self.challenge(env, transaction);
        }
        transaction.status = Status::Pending;
        let id = self.add(transaction);
        self.complete_charge(env, id, fault)
    }

    /// The customer must first complete the bank's page.
    fn challenge(&mut self, env: &Env, mut transaction: Transaction) -> Reply {
        let page = env.random.code(20);
        let redirect = format!("{}/checkout/{page}", env.url);
        transaction.status = Status::PendingAuth;
        "VBVSECURECODE".clone_into(&mut transaction.auth_model);
        transaction.page = Some(page);
        let id = self.add(transaction);
        let mut data = self.verification_json(&self.transactions[&id]);
        data["status"] = json!("pending");
        let authorization = json!({ "mode": "redirect", "redirect": redirect });
        Reply::new("Charge initiated", data).with_meta(json!({ "authorization": authorization }))
    }

    fn debit(&mut self, env: &Env, mut transaction: Transaction, reference: &str) -> ApiResult {
        let mandate = self.mandates.get(reference);
        let mandate = mandate.filter(|mandate| mandate.stage == MandateState::Active);
        let mandate = mandate.ok_or_else(|| ApiError::invalid("Account token is not active"))?;
        if transaction.amount > mandate.amount || transaction.currency != "NGN" {
            return Err(ApiError::invalid("Amount exceeds what the token was authorized for"));
        }
        "account".clone_into(&mut transaction.payment_type);
        "EMANDATE".clone_into(&mut transaction.auth_model);
        transaction.status = Status::Pending;
        let id = self.add(transaction);
        let fault = env.faults.take("charge", FaultKind::is_outcome);
        Ok(self.complete_charge(env, id, fault))
    }

    fn complete_charge(&mut self, env: &Env, id: u64, fault: Option<Fault>) -> Reply {
        let declined = fault.as_ref().and_then(Fault::decline_words);
        let message = match fault.map(|fault| fault.kind) {
            Some(FaultKind::Pending | FaultKind::Challenge) => "Charge initiated",
            Some(FaultKind::Decline | FaultKind::Partial) => {
                self.fail(env, id, declined.unwrap_or(INSUFFICIENT_FUNDS));
                "Charge failed"
            }
            _ => {
                self.succeed(env, id);
                "Charge successful"
            }
        };
        Reply::new(message, self.verification_json(&self.transactions[&id]))
    }
}

fn unknown_token(token: &str) -> ApiError {
    let message = match token.starts_with("flw-1bt-") {
        true => "Wrong account token or customer email passed in.",
        false => "Wrong token or email passed",
    };
    ApiError::invalid(message)
}

pub(super) async fn charge(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    flutterwave.with_account(&key, |account, env| account.charge(env, &params))
}
