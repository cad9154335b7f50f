//! Refunds of the product Disbursement, which end some time after they were requested.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use serde_json::{Value, json};

use super::{
    Momo,
    accounts::{Account, notify},
    http::{ApiError, ApiResult, Caller, Params, reference_id},
    merchant::TimerEvent,
    requests::Status,
};
use crate::{env::Env, provider::MerchantAccount};

pub(super) struct Refund {
    external_id: String,
    /// In hundredths of the major unit.
    amount: u64,
    /// The amount as the client wrote it.
    written_amount: String,
    currency: String,
    /// The `X-Reference-Id` of the payment.
    payment: String,
    /// The payer of the payment, who receives the refund.
    payee: String,
    callback_url: Option<String>,
    status: Status,
    transaction_id: Option<u64>,
}

impl Refund {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "externalId": self.external_id,
            "amount": self.written_amount,
            "currency": self.currency,
            "payee": { "partyIdType": "MSISDN", "partyId": self.payee },
            "status": self.status.name(),
        });
        if let Some(id) = self.transaction_id {
            json["financialTransactionId"] = json!(id.to_string());
        }
        if let Status::Failed(code) = self.status {
            json["reason"] = json!({ "code": code, "message": "The refund failed." });
        }
        json
    }
}

impl Account {
    fn refund(&mut self, env: &Env, headers: &HeaderMap, params: &Params) -> ApiResult<StatusCode> {
        let reference = reference_id(headers)?;
        if self.refunds.contains_key(&reference) {
            return Err(ApiError::duplicate());
        }
        let (amount, written_amount) = self.read_amount(params)?;
        params.note("payerMessage")?;
        params.note("payeeNote")?;
        let external_id = params.required("externalId")?;
        let callback_url = self.read_callback_url(headers)?;
        let of = params.required("referenceIdToRefund")?;
        let payment = self.payments.get_mut(&of).ok_or_else(ApiError::not_found)?;
        let left = payment.amount - payment.refunded - payment.refunding;
        if !payment.is_paid() || amount > left {
            let message = "Authorization failed. Insufficient permissions.";
            return Err(ApiError::internal("NOT_ALLOWED", message));
        }
        payment.refunding += amount;
        let refund = Refund {
            external_id,
            amount,
            written_amount,
            currency: payment.currency.clone(),
            payment: of,
            payee: payment.payer.clone(),
            callback_url,
            status: Status::Pending,
            transaction_id: None,
        };
        self.refunds.insert(reference.clone(), refund);
        self.schedule(env, TimerEvent::Refund(reference));
        Ok(StatusCode::ACCEPTED)
    }

    /// Completes a refund, or fails it if it exceeds the balance, and sends the callback.
    pub(super) fn finish_refund(&mut self, env: &Env, reference: &str) {
        let Some(refund) = self.refunds.get_mut(reference) else { return };
        let Some(payment) = self.payments.get_mut(&refund.payment) else { return };
        payment.refunding -= refund.amount;
        if let Some(balance) = self.balance.checked_sub(refund.amount) {
            self.balance = balance;
            payment.refunded += refund.amount;
            refund.status = Status::Successful;
            refund.transaction_id = Some(env.next_id());
        } else {
            refund.status = Status::Failed("NOT_ENOUGH_FUNDS");
        }
        notify(env, refund.callback_url.as_deref(), reference, &refund.to_json());
    }
}

pub(super) async fn create(
    State(momo): State<Momo>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> ApiResult<StatusCode> {
    momo.0.with_account(&caller.api_user, |account, env| account.refund(env, &headers, &params))
}

pub(super) async fn fetch(
    State(momo): State<Momo>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult {
    momo.0.with_account(&caller.api_user, |account, _| {
        let refund = account.refunds.get(&id).ok_or_else(ApiError::not_found)?;
        Ok(Json(refund.to_json()))
    })
}
