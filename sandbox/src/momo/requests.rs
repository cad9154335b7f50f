//! Requests to pay: the payer's answers, callbacks and queries.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Momo,
    accounts::{Account, notify},
    http::{ApiError, ApiResult, Caller, Params, reference_id},
    merchant::TimerEvent,
};
use crate::{Outcome, env::Env, money};

/// Seconds until a request without an answer fails.
const EXPIRY_SECONDS: i64 = 300;
const AUTOMATIC_ANSWER_SECONDS: i64 = 3;

/// Payers who answer automatically.
const AUTOMATIC_ANSWERS: [(&str, Answer); 7] = [
    ("46733123450", Answer::InternalError),
    ("46733123451", Answer::Reject),
    ("46733123452", Answer::Expire),
    ("256770000000", Answer::Approve),
    ("256770000001", Answer::InsufficientFunds),
    ("256770000002", Answer::LimitReached),
    (UNKNOWN_PAYER, Answer::UnknownPayer),
];
/// A number without a MoMo account.
const UNKNOWN_PAYER: &str = "256770000003";

/// A payer's answer to a request, or the reason for which there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Enters the PIN.
    Approve,
    Reject,
    /// Enters the PIN, but has an insufficient balance.
    InsufficientFunds,
    LimitReached,
    /// The number has no MoMo account.
    UnknownPayer,
    Expire,
    InternalError,
}

impl Answer {
    /// Returns the status of a request with this answer.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Answer::Approve => Status::Successful,
            Answer::Reject => Status::Failed("APPROVAL_REJECTED"),
            Answer::InsufficientFunds => Status::Failed("NOT_ENOUGH_FUNDS"),
            Answer::LimitReached => Status::Failed("PAYER_LIMIT_REACHED"),
            Answer::UnknownPayer => Status::Failed("PAYER_NOT_FOUND"),
            Answer::Expire => Status::Failed("EXPIRED"),
            Answer::InternalError => Status::Failed("INTERNAL_PROCESSING_ERROR"),
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Success => Answer::Approve,
            Outcome::Failed => Answer::InsufficientFunds,
            Outcome::Abandoned => Answer::Reject,
        }
    }
}

/// The status of a request to pay or of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pending,
    Successful,
    /// With the reason.
    Failed(&'static str),
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Successful => "SUCCESSFUL",
            Status::Failed(_) => "FAILED",
        }
    }
}

/// A request to pay.
#[derive(Clone, Debug)]
pub struct PaymentRequest {
    /// Increases with each request.
    pub(super) number: u64,
    /// The `X-Reference-Id`.
    pub reference: String,
    pub external_id: String,
    /// In hundredths of the major unit.
    pub amount: u64,
    /// The amount as the client wrote it.
    written_amount: String,
    pub currency: String,
    /// The payer's number, such as `256772123456`.
    pub payer: String,
    pub payer_message: String,
    pub payee_note: String,
    pub callback_url: Option<String>,
    pub status: Status,
    /// The `financialTransactionId`; `None`: nothing was paid.
    pub transaction_id: Option<u64>,
    /// Returned by refunds, in hundredths.
    pub refunded: u64,
    /// Held by refunds that are pending, in hundredths.
    pub(super) refunding: u64,
    /// Amount in hundredths, and currency, that a test makes MoMo report instead.
    pub(super) reported: Option<(u64, String)>,
}

impl PaymentRequest {
    /// Returns whether the request waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status == Status::Pending
    }

    /// Returns whether the payer paid, including payments that were refunded later.
    #[must_use]
    pub fn is_paid(&self) -> bool {
        self.status == Status::Successful
    }

    pub(super) fn has_reference(&self, reference: &str) -> bool {
        self.reference == reference || self.external_id == reference
    }

    fn to_json(&self) -> Value {
        let mut json = json!({
            "externalId": self.external_id,
            "amount": self.written_amount,
            "currency": self.currency,
            "payer": { "partyIdType": "MSISDN", "partyId": self.payer },
            "payerMessage": self.payer_message,
            "payeeNote": self.payee_note,
            "status": self.status.name(),
        });
        if let Some((amount, currency)) = &self.reported {
            json["amount"] = json!(money::major(*amount).to_string());
            json["currency"] = json!(currency);
        }
        if let Some(id) = self.transaction_id {
            json["financialTransactionId"] = json!(id.to_string());
        }
        // A string here, an object in refunds.
        if let Status::Failed(reason) = self.status {
            json["reason"] = json!(reason);
        }
        json
    }
}

impl Account {
    fn request_payment(
        &mut self,
        env: &Env,
        headers: &HeaderMap,
        params: &Params,
    ) -> ApiResult<StatusCode> {
        let reference = reference_id(headers)?;
        if self.payments.contains_key(&reference) {
            return Err(ApiError::duplicate());
        }
        let (amount, written_amount) = self.read_amount(params)?;
        let payment = PaymentRequest {
            number: env.next_id(),
            reference: reference.clone(),
            external_id: params.required("externalId")?,
            amount,
            written_amount,
            currency: self.credentials.currency.clone(),
            payer: params.msisdn("payer")?,
            payer_message: params.note("payerMessage")?,
            payee_note: params.note("payeeNote")?,
            callback_url: self.read_callback_url(headers)?,
            status: Status::Pending,
            transaction_id: None,
            refunded: 0,
            refunding: 0,
            reported: None,
        };
        let now = env.clock.now();
        let expiry = TimerEvent::Answer(reference.clone(), Answer::Expire);
        self.timers.schedule(now.plus_seconds(EXPIRY_SECONDS), expiry);
        if let Some((_, answer)) =
            AUTOMATIC_ANSWERS.into_iter().find(|(number, _)| *number == payment.payer)
        {
            let event = TimerEvent::Answer(reference.clone(), answer);
            self.timers.schedule(now.plus_seconds(AUTOMATIC_ANSWER_SECONDS), event);
        }
        self.payments.insert(reference, payment);
        Ok(StatusCode::ACCEPTED)
    }

    /// Answers an open request, by its reference or by the phone number. Returns it.
    pub(super) fn answer(
        &mut self,
        env: &Env,
        request: &str,
        answer: Answer,
    ) -> Option<PaymentRequest> {
        let open = self.payments.values().find(|payment| {
            payment.is_open() && (payment.reference == request || payment.payer == request)
        });
        let reference = open?.reference.clone();
        self.settle(env, &reference, answer.status());
        self.payments.get(&reference).cloned()
    }

    /// Ends a request and sends the callback, unless the request has ended before.
    pub(super) fn settle(&mut self, env: &Env, reference: &str, status: Status) {
        let payment = self.payments.get_mut(reference).filter(|payment| payment.is_open());
        let Some(payment) = payment else { return };
        payment.status = status;
        if payment.is_paid() {
            payment.transaction_id = Some(env.next_id());
            self.balance += payment.amount;
        }
        notify(env, payment.callback_url.as_deref(), reference, &payment.to_json());
    }
}

pub(super) async fn create(
    State(momo): State<Momo>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> ApiResult<StatusCode> {
    momo.0.with_account(&caller.api_user, |account, env| {
        account.request_payment(env, &headers, &params)
    })
}

pub(super) async fn fetch(
    State(momo): State<Momo>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult {
    momo.0.with_account(&caller.api_user, |account, _| {
        let payment = account.payments.get(&id).ok_or_else(ApiError::not_found)?;
        Ok(Json(payment.to_json()))
    })
}

/// Returns whether a number has a MoMo account.
pub(super) async fn is_active(_: Caller, Path((_, id)): Path<(String, String)>) -> Json<Value> {
    Json(json!({ "result": id != UNKNOWN_PAYER }))
}
