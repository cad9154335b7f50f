//! Debits of a mandate: pending until the bank responds, by the clock.

use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Monnify,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    mandates::MandateState,
    merchant::TimerEvent,
    transactions::{Order, Origin, Transaction},
};
use crate::{FaultKind, env::Env, money::major, provider::MerchantAccount};

impl Account {
    fn debit(&mut self, env: &Env, params: &Params) -> ApiResult {
        let payment_reference = self.new_reference(params)?;
        let code = params.required("mandateCode")?;
        let amount = params.required_amount("debitAmount")?;
        let email = params.email("customerEmail")?;
        let narration = params.required("narration")?;
        let mandate = self.mandates.get(&code);
        let mandate = mandate.ok_or_else(|| ApiError::not_found("There is no such mandate"))?;
        if mandate.stage != MandateState::Activated {
            return Err(ApiError::invalid("Mandate is not active"));
        }
        if amount > mandate.amount {
            return Err(ApiError::invalid("Debit amount is more than the mandate allows"));
        }
        let fault = env.faults.take("charge", FaultKind::is_outcome).map(|fault| fault.kind);
        let order = Order { payment_reference: payment_reference.clone(), amount, email };
        let transaction = Transaction {
            name: mandate.customer_name(),
            description: Some(narration),
            method: "DIRECT_DEBIT".to_owned(),
            debit_fails: matches!(fault, Some(FaultKind::Decline | FaultKind::Partial)),
            ..Transaction::new(order, Origin::Debit(code), env)
        };
        let accepted = json!("Debit mandate request accepted for processing");
        let body = debit_json(&transaction, accepted);
        self.add(transaction);
        if fault.is_none_or(|kind| matches!(kind, FaultKind::Decline | FaultKind::Partial)) {
            self.schedule(env, TimerEvent::Debit(payment_reference));
        }
        Ok(Reply(body))
    }
}

fn debit_json(transaction: &Transaction, message: Value) -> Value {
    let code = match &transaction.origin {
        Origin::Debit(code) => json!(code),
        _ => Value::Null,
    };
    json!({
        "transactionStatus": transaction.status.name(),
        "responseMessage": message,
        "transactionReference": transaction.reference,
        "paymentReference": transaction.payment_reference,
        "debitAmount": major(transaction.payable),
        "narration": transaction.description,
        "mandateCode": code,
    })
}

pub(super) async fn debit(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.debit(env, &params))
}

#[derive(Deserialize)]
pub(super) struct StatusQuery {
    #[serde(rename = "paymentReference")]
    reference: Option<String>,
}

pub(super) async fn status(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<StatusQuery>,
) -> ApiResult {
    let reference = query.reference.ok_or_else(|| ApiError::missing("paymentReference"))?;
    monnify.with_account(&key, |account, _| {
        let debit = account.transactions.get(&reference);
        let debit = debit.filter(|debit| matches!(debit.origin, Origin::Debit(_)));
        let debit = debit.ok_or_else(ApiError::transaction_not_found)?;
        // An empty object here; the response to the debit itself has a string.
        Ok(Reply(debit_json(debit, json!({}))))
    })
}
