//! Prompts on payers' phones (M-Pesa Express, STK push): requests, answers, callbacks and queries.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Mpesa,
    accounts::{Account, timestamp},
    http::{ApiError, ApiResult, ConsumerKey, Params},
    merchant::TimerEvent,
    times,
};
use crate::{Outcome, env::Env, outbox::Delivery};

/// Maximum of one payment, in whole shillings.
const MAX_AMOUNT: u64 = 250_000;
const MAX_REFERENCE_CHARS: usize = 12;
const MAX_DESCRIPTION_CHARS: usize = 13;
/// Seconds until a prompt without an answer fails.
const PROMPT_SECONDS: i64 = 60;
const AUTOMATIC_ANSWER_SECONDS: i64 = 3;

const PAY_BILL: &str = "CustomerPayBillOnline";
const BUY_GOODS: &str = "CustomerBuyGoodsOnline";

/// Payers who answer automatically, with a description of the answer.
pub(crate) const AUTOMATIC_ANSWERS: [(&str, Answer, &str); 3] = [
    ("254708374149", Answer::Pay, "pays"),
    ("254700000001", Answer::InsufficientFunds, "has an insufficient balance"),
    ("254700000002", Answer::Cancel, "cancels"),
];

/// `ResultCode` of a payment.
const SUCCESS: u16 = 0;
/// `ResultCode` of a prompt without an answer.
pub(super) const TIMED_OUT: u16 = 1_037;

/// A payer's answer to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Enters the PIN.
    Pay,
    WrongPin,
    Cancel,
    /// Enters the PIN, but has an insufficient balance.
    InsufficientFunds,
}

impl Answer {
    /// Returns the `ResultCode`.
    #[must_use]
    pub fn result_code(self) -> u16 {
        match self {
            Answer::Pay => SUCCESS,
            Answer::WrongPin => 2_001,
            Answer::Cancel => 1_032,
            Answer::InsufficientFunds => 1,
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Success => Answer::Pay,
            Outcome::Failed => Answer::WrongPin,
            Outcome::Abandoned => Answer::Cancel,
        }
    }
}

/// Returns the `ResultDesc` of a prompt's `ResultCode`.
pub(crate) fn result_description(code: u16) -> &'static str {
    match code {
        SUCCESS => "The service request is processed successfully.",
        1 => "The balance is insufficient for the transaction.",
        1_032 => "Request cancelled by user.",
        TIMED_OUT => "DS timeout user cannot be reached.",
        _ => "The initiator information is invalid.",
    }
}

/// Returns whether a text is a number of a Safaricom subscriber, such as `254708374149`.
pub(crate) fn is_subscriber(phone: &str) -> bool {
    let rest = phone.strip_prefix("2547").or_else(|| phone.strip_prefix("2541"));
    rest.is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// A prompt on a payer's phone.
#[derive(Clone, Debug)]
pub struct Push {
    /// Increases with each prompt.
    pub(super) number: u64,
    pub merchant_request_id: String,
    pub checkout_request_id: String,
    pub shortcode: String,
    pub transaction_type: String,
    /// The payer's number, such as `254708374149`.
    pub phone: String,
    /// In whole shillings.
    pub amount: u64,
    pub account_reference: String,
    pub description: String,
    /// As requested, in East Africa Time.
    pub timestamp: String,
    pub callback_url: String,
    /// `None`: the prompt waits for an answer.
    pub result_code: Option<u16>,
    /// `None`: nothing was paid.
    pub receipt: Option<String>,
    /// Whether the payment was returned.
    pub reversed: bool,
    pub(super) completed_at: Option<Timestamp>,
    /// Amount that a test makes M-Pesa report instead.
    pub(super) reported_amount: Option<u64>,
}

impl Push {
    /// Returns whether the prompt waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.result_code.is_none()
    }

    /// Returns whether the payer paid, including payments that were returned later.
    #[must_use]
    pub fn is_paid(&self) -> bool {
        self.result_code == Some(SUCCESS)
    }

    pub(super) fn has_reference(&self, reference: &str) -> bool {
        self.checkout_request_id == reference
            || self.account_reference == reference
            || self.receipt.as_deref() == Some(reference)
    }

    /// Returns the reported amount with two decimals.
    pub(super) fn amount_json(&self) -> Value {
        shillings(self.reported_amount.unwrap_or(self.amount))
    }

    fn callback_json(&self, code: u16) -> Value {
        let mut callback = json!({
            "MerchantRequestID": self.merchant_request_id,
            "CheckoutRequestID": self.checkout_request_id,
            "ResultCode": code,
            "ResultDesc": result_description(code),
        });
        if self.is_paid() {
            let item = |name: &str, value: Value| json!({ "Name": name, "Value": value });
            callback["CallbackMetadata"] = json!({ "Item": [
                item("Amount", self.amount_json()),
                item("MpesaReceiptNumber", json!(self.receipt)),
                { "Name": "Balance" },
                item("TransactionDate", json!(self.completed_at.map(times::number))),
                item("PhoneNumber", json!(self.phone.parse::<u64>().ok())),
            ] });
        }
        json!({ "Body": { "stkCallback": callback } })
    }
}

/// Formats `1.00` as a number.
pub(super) fn shillings(amount: u64) -> Value {
    format!("{amount}.00").parse::<Number>().map_or(Value::Null, Value::Number)
}

/// Returns a new receipt, such as `TLJ7RT61SV`.
pub(super) fn new_receipt(env: &Env) -> String {
    format!("T{}", env.random.code(9).to_uppercase())
}

impl Account {
    pub(super) fn has_open_prompt(&self, phone: &str) -> bool {
        self.pushes.values().any(|push| push.is_open() && push.phone == phone)
    }

    fn send(&mut self, env: &Env, push: Push) -> Value {
        let (id, now) = (push.checkout_request_id.clone(), env.clock.now());
        let expiry = TimerEvent::PromptExpiry(id.clone());
        self.timers.schedule(now.plus_seconds(PROMPT_SECONDS), expiry);
        if let Some((_, answer, _)) =
            AUTOMATIC_ANSWERS.into_iter().find(|(phone, ..)| *phone == push.phone)
        {
            let event = TimerEvent::AutomaticAnswer(id.clone(), answer.result_code());
            self.timers.schedule(now.plus_seconds(AUTOMATIC_ANSWER_SECONDS), event);
        }
        let accepted = "Success. Request accepted for processing";
        let body = json!({
            "MerchantRequestID": push.merchant_request_id,
            "CheckoutRequestID": push.checkout_request_id,
            "ResponseCode": "0",
            "ResponseDescription": accepted,
            "CustomerMessage": accepted,
        });
        self.pushes.insert(id, push);
        body
    }

    /// Answers an open prompt, by its `CheckoutRequestID` or by the phone number. Returns it.
    pub(super) fn answer(&mut self, env: &Env, prompt: &str, answer: Answer) -> Option<Push> {
        let open = self.pushes.values().find(|push| {
            push.is_open() && (push.checkout_request_id == prompt || push.phone == prompt)
        });
        let id = open?.checkout_request_id.clone();
        self.settle(env, &id, answer.result_code());
        self.pushes.get(&id).cloned()
    }

    /// Ends a prompt and sends the callback, unless the prompt has ended before.
    pub(super) fn settle(&mut self, env: &Env, id: &str, code: u16) {
        let Some(push) = self.pushes.get_mut(id).filter(|push| push.is_open()) else { return };
        push.result_code = Some(code);
        push.completed_at = Some(env.clock.now());
        if push.is_paid() {
            push.receipt = Some(new_receipt(env));
            self.balance += push.amount;
        }
        let delivery = Delivery {
            ordering_key: format!("mpesa {id}"),
            method: reqwest::Method::POST,
            url: push.callback_url.clone(),
            body: push.callback_json(code).to_string(),
            signatures: Vec::new(),
            retry_ms: |_| None,
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }

    fn query(&self, params: &Params) -> ApiResult {
        self.check_password(params)?;
        let id = params.required("CheckoutRequestID")?;
        let push = self.pushes.get(&id);
        let push = push.ok_or_else(|| ApiError::failed("The transaction does not exist"))?;
        let processing = || ApiError::failed("The transaction is being processed");
        let code = push.result_code.ok_or_else(processing)?;
        Ok(Json(json!({
            "ResponseCode": "0",
            "ResponseDescription": "The service request has been accepted successfully",
            "MerchantRequestID": push.merchant_request_id,
            "CheckoutRequestID": push.checkout_request_id,
            // A string here, a number in the callback.
            "ResultCode": code.to_string(),
            "ResultDesc": result_description(code),
        })))
    }
}

/// Reads a request, whose fields are checked in their documented order.
fn read(env: &Env, params: &Params) -> Result<Push, ApiError> {
    let is_shortcode =
        |text: &str| (5..=7).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let shortcode = params.valid("BusinessShortCode", is_shortcode)?;
    params.required("Password")?;
    let timestamp = timestamp(params)?;
    let transaction_type =
        params.valid("TransactionType", |text| [PAY_BILL, BUY_GOODS].contains(&text))?;
    let amount = params.amount("Amount", MAX_AMOUNT)?;
    let phone = params.valid("PhoneNumber", is_subscriber)?;
    params.valid("PartyA", |payer| payer == phone)?;
    // A till differs from the shortcode of its head office.
    params.valid("PartyB", |payee| {
        payee == shortcode || (transaction_type == BUY_GOODS && is_shortcode(payee))
    })?;
    let (number, now) = (env.next_id(), env.clock.now());
    Ok(Push {
        number,
        merchant_request_id: format!("{}-{number}-1", number % 100_000),
        checkout_request_id: format!("ws_CO_{}{number}", times::day_first(now)),
        shortcode,
        transaction_type,
        phone,
        amount,
        callback_url: params.url("CallBackURL")?,
        account_reference: params.short("AccountReference", MAX_REFERENCE_CHARS)?,
        description: params.short("TransactionDesc", MAX_DESCRIPTION_CHARS)?,
        timestamp,
        result_code: None,
        receipt: None,
        reversed: false,
        completed_at: None,
        reported_amount: None,
    })
}

pub(super) async fn process(
    State(mpesa): State<Mpesa>,
    ConsumerKey(key): ConsumerKey,
    params: Params,
) -> ApiResult {
    mpesa.0.with_accounts(|accounts, env| {
        let push = read(env, &params)?;
        let account = accounts.get(&key).ok_or_else(ApiError::invalid_token)?;
        account.check_password(&params)?;
        // Checks all accounts: a phone shows one prompt at a time.
        if accounts.values().any(|account| account.has_open_prompt(&push.phone)) {
            return Err(ApiError::failed(
                "Unable to lock subscriber, a transaction is already in process for the current subscriber",
            ));
        }
        let account = accounts.get_mut(&key).ok_or_else(ApiError::invalid_token)?;
        Ok(Json(account.send(env, push)))
    })
}

pub(super) async fn query(
    State(mpesa): State<Mpesa>,
    ConsumerKey(key): ConsumerKey,
    params: Params,
) -> ApiResult {
    mpesa.0.with_account(&key, |account, _| account.query(&params))
}
