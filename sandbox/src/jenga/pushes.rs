//! Pushes: requests, the payers' answers, callbacks and queries.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Jenga,
    accounts::Account,
    http::{ApiError, ApiResult, Caller, Params},
    merchant::{CURRENCY, TimerEvent},
};
use crate::{Outcome, env::Env, money, outbox::Delivery};

/// Seconds until a push without an answer is cancelled.
const EXPIRY_SECONDS: i64 = 120;
const AUTOMATIC_ANSWER_SECONDS: i64 = 3;
/// The bounds of a reference's length.
const REFERENCE_CHARS: std::ops::RangeInclusive<usize> = 6..=12;

/// Payers who answer automatically.
const AUTOMATIC_ANSWERS: [(&str, Answer); 3] = [
    ("254763000000", Answer::Pay),
    ("254763000001", Answer::InsufficientFunds),
    ("254763000002", Answer::Cancel),
];

/// A payer's answer to a push, or the reason for which there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Enters the PIN.
    Pay,
    /// Enters the PIN, but has an insufficient balance.
    InsufficientFunds,
    Cancel,
    Expire,
}

impl Answer {
    /// Returns the code of the callback.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Answer::Pay => 3,
            Answer::InsufficientFunds => 1,
            Answer::Cancel => 5,
            Answer::Expire => 6,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Answer::Pay => "Transaction completed successfully and credited to merchant",
            Answer::InsufficientFunds => "Insufficient funds",
            Answer::Cancel => "Transaction was cancelled by the user",
            Answer::Expire => "No response from user",
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Success => Answer::Pay,
            Outcome::Failed => Answer::InsufficientFunds,
            Outcome::Abandoned => Answer::Cancel,
        }
    }
}

/// The status of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pending,
    Ended(Answer),
}

/// A push.
#[derive(Clone, Debug)]
pub struct Push {
    /// Increases with each push.
    pub(super) number: u64,
    pub reference: String,
    /// Jenga's own id.
    pub transaction_id: String,
    /// In cents.
    pub amount: u64,
    /// `Equitel` or `Safaricom`.
    pub telco: String,
    /// The payer's number, such as `254764555291`.
    pub phone: String,
    /// `STK` or `USSD`.
    pub push_type: String,
    pub callback_url: String,
    /// As Jenga writes it, in UTC.
    created: String,
    pub status: Status,
    /// `None`: nothing was paid.
    pub receipt: Option<String>,
    /// Amount in cents that a test makes Jenga report instead.
    pub(super) reported_amount: Option<u64>,
}

impl Push {
    /// Returns whether the push waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status == Status::Pending
    }

    #[must_use]
    pub fn is_paid(&self) -> bool {
        self.status == Status::Ended(Answer::Pay)
    }

    pub(super) fn has_reference(&self, reference: &str) -> bool {
        self.reference == reference || self.receipt.as_deref() == Some(reference)
    }

    fn amount_json(&self) -> Value {
        money::major(self.reported_amount.unwrap_or(self.amount))
    }

    fn callback_json(&self, answer: Answer) -> Value {
        let paid = answer == Answer::Pay;
        json!({
            "status": paid,
            "code": answer.code(),
            "message": answer.message(),
            "transactionReference": self.reference,
            "telcoReference": self.receipt,
            "telco": self.telco,
            "mobileNumber": self.phone,
            "currency": CURRENCY,
            "requestAmount": self.amount_json(),
            "debitedAmount": if paid { self.amount_json() } else { json!(0) },
            "charge": 0,
        })
    }

    fn details_json(&self) -> Value {
        let (state, code, message) = match self.status {
            Status::Pending => ("Pending", -1, "Awaiting callback response"),
            Status::Ended(Answer::Pay) => ("Success", 2, "Success"),
            Status::Ended(answer) => ("Failed", 1, answer.message()),
        };
        json!({
            "state": state,
            "stateCode": code,
            "dateCreated": self.created,
            "code": 0,
            "message": message,
            "amount": self.amount_json(),
            "charge": 0,
            "transactionReference": self.reference,
            "serviceName": "Telco STK Push",
        })
    }
}

impl Account {
    fn send(&mut self, env: &Env, push: Push) -> Value {
        let (reference, now) = (push.reference.clone(), env.clock.now());
        let expiry = TimerEvent::Answer(reference.clone(), Answer::Expire);
        self.timers.schedule(now.plus_seconds(EXPIRY_SECONDS), expiry);
        let automatic = AUTOMATIC_ANSWERS.into_iter().find(|(phone, _)| *phone == push.phone);
        if let Some((_, answer)) = automatic {
            let event = TimerEvent::Answer(reference.clone(), answer);
            self.timers.schedule(now.plus_seconds(AUTOMATIC_ANSWER_SECONDS), event);
        }
        let message = "Transaction has been successfully acknowledged, await final transaction status on callback";
        let body = json!({
            "status": true,
            "code": -1,
            "message": message,
            "reference": reference,
            "transactionId": push.transaction_id,
        });
        self.pushes.insert(reference, push);
        body
    }

    /// Answers an open push, by its reference or by the phone number. Returns it.
    pub(super) fn answer(&mut self, env: &Env, push: &str, answer: Answer) -> Option<Push> {
        let mut pushes = self.pushes.values();
        let open = pushes.find(|p| p.is_open() && (p.reference == push || p.phone == push));
        let reference = open?.reference.clone();
        self.settle(env, &reference, answer);
        self.pushes.get(&reference).cloned()
    }

    /// Ends a push and sends the callback, unless the push has ended before.
    pub(super) fn settle(&mut self, env: &Env, reference: &str, answer: Answer) {
        let push = self.pushes.get_mut(reference).filter(|push| push.is_open());
        let Some(push) = push else { return };
        push.status = Status::Ended(answer);
        if push.is_paid() {
            push.receipt = Some(format!("EQT{}", env.random.code(9).to_uppercase()));
        }
        let delivery = Delivery {
            ordering_key: format!("jenga {reference}"),
            method: reqwest::Method::POST,
            url: push.callback_url.clone(),
            body: push.callback_json(answer).to_string(),
            signatures: Vec::new(),
            retry_ms: |_| None,
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }

    /// Reads a push, and checks its signature.
    fn read(&self, env: &Env, caller: &Caller, params: &Params) -> Result<Push, ApiError> {
        let account_number = params.required("merchant.accountNumber")?;
        params.valid("merchant.countryCode", |code| code == "KE")?;
        params.required("merchant.name")?;
        let is_reference = |text: &str| {
            REFERENCE_CHARS.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let reference = params.valid("payment.ref", is_reference)?;
        let phone = params.valid("payment.mobileNumber", is_msisdn)?;
        let telco = params.valid("payment.telco", |t| ["Equitel", "Safaricom"].contains(&t))?;
        let written = params.required("payment.amount")?;
        let amount = money::minor(&json!(written)).filter(|minor| *minor > 0);
        let amount = amount.ok_or_else(|| ApiError::invalid("payment.amount"))?;
        let currency = params.valid("payment.currency", |currency| currency == CURRENCY)?;
        params.valid("payment.date", is_date)?;
        let push_type = params.valid("payment.pushType", |t| ["STK", "USSD"].contains(&t))?;
        let callback_url = params.valid("payment.callBackUrl", |text| {
            url::Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()))
        })?;
        let signed = [&*account_number, &*reference, &*phone, &*telco, &*written, &*currency];
        caller.check_signature(self, &signed)?;
        if account_number != self.credentials.account_number {
            return Err(ApiError::invalid("merchant.accountNumber"));
        }
        let number = env.next_id();
        Ok(Push {
            number,
            transaction_id: format!("{number:012}"),
            reference,
            amount,
            telco,
            phone,
            push_type,
            callback_url,
            created: env.clock.now().to_datetime().format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
            status: Status::Pending,
            receipt: None,
            reported_amount: None,
        })
    }
}

fn is_msisdn(text: &str) -> bool {
    let rest = text.strip_prefix("2547").or_else(|| text.strip_prefix("2541"));
    rest.is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

pub(super) async fn initiate(
    State(jenga): State<Jenga>,
    caller: Caller,
    params: Params,
) -> ApiResult {
    jenga.0.with_account(&caller.merchant_code, |account, env| {
        let push = account.read(env, &caller, &params)?;
        if account.pushes.contains_key(&push.reference) {
            return Err(ApiError::duplicate());
        }
        Ok(Json(account.send(env, push)))
    })
}

pub(super) async fn details(
    State(jenga): State<Jenga>,
    Path(reference): Path<String>,
    caller: Caller,
) -> ApiResult {
    jenga.0.with_account(&caller.merchant_code, |account, _| {
        caller.check_signature(account, &[&*reference])?;
        let push = account.pushes.get(&reference).ok_or_else(ApiError::not_found)?;
        let data = push.details_json();
        Ok(Json(json!({ "status": true, "code": 0, "message": "success", "data": data })))
    })
}
