//! E-mandates: a small transfer by the customer turns a bank account into a token, which can be
//! charged once it is active.

use axum::extract::{Path, State};
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Flutterwave,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    merchant::TimerEvent,
    tokens::Instrument,
};
use crate::{
    Outcome,
    env::Env,
    money::major,
    provider::{MerchantAccount, PROCESSING_SECONDS},
};

/// In minor units.
const MIN_LIVE_MINOR: u64 = 20_000;
const MIN_TEST_MINOR: u64 = 10_000;
const MAX_DAYS: i64 = 365;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MandateState {
    /// Waits for the customer's transfer.
    Pending,
    /// The customer declined: the transfer never arrives.
    Refused,
    /// The customer consented; the bank has not activated it yet.
    Approved,
    Active,
    Suspended,
    Deleted,
}

impl MandateState {
    fn name(self) -> &'static str {
        match self {
            MandateState::Pending | MandateState::Refused => "PENDING",
            MandateState::Approved => "APPROVED",
            MandateState::Active => "ACTIVE",
            MandateState::Suspended => "SUSPENDED",
            MandateState::Deleted => "DELETED",
        }
    }
}

pub(super) struct Mandate {
    pub id: u64,
    pub reference: String,
    pub email: String,
    pub stage: MandateState,
    /// Maximum of one charge, in minor units.
    pub amount: u64,
    pub account_number: String,
    pub account_bank: String,
    token: Option<String>,
    address: String,
    narration: Option<String>,
    customer_id: u64,
    start_date: DateTime<Utc>,
    end_date: DateTime<Utc>,
    active_on: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Mandate {
    pub(super) fn is_open(&self) -> bool {
        self.stage == MandateState::Pending
    }
}

impl Account {
    fn tokenize(&mut self, env: &Env, params: &Params) -> ApiResult {
        let email = params.email()?;
        let amount = params.amount("amount")?.ok_or_else(|| ApiError::missing("amount"))?;
        let least = if self.is_live() { MIN_LIVE_MINOR } else { MIN_TEST_MINOR };
        if amount < least {
            return Err(ApiError::invalid(format!("amount must be at least {}", major(least))));
        }
        if params.text("currency").is_some_and(|currency| currency != "NGN") {
            return Err(ApiError::invalid("currency must be NGN"));
        }
        let address = params.required("address")?;
        let (account_bank, account_number) =
            (params.required("account_bank")?, params.required("account_number")?);
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if account_number.len() != 10 || !digits(&account_number) || !digits(&account_bank) {
            return Err(ApiError::invalid("Account details could not be resolved."));
        }
        let now = env.clock.now();
        let (start_date, end_date) = period(params, now)?;
        let customer_id = self.upsert_customer(&email, None, params.text("phone_number"), env).id;
        let id = env.next_id();
        let mandate = Mandate {
            id,
            reference: format!("URF_EMANDATE_{}_{}", now.0, id % 1_000_000),
            email,
            stage: MandateState::Pending,
            amount,
            account_number,
            account_bank,
            token: None,
            address,
            narration: params.text("narration"),
            customer_id,
            start_date,
            end_date,
            active_on: None,
            created_at: now,
            updated_at: now,
        };
        let mut data = self.mandate_json(&mandate);
        data["mandate_consent"] = consent_json();
        let reference = mandate.reference.clone();
        self.mandates.insert(reference.clone(), mandate);
        self.schedule(env, TimerEvent::Consent(reference));
        Ok(Reply::new("Account tokenization successful.", data))
    }

    /// Applies the customer's choice on the page that replaces the transfer.
    pub(super) fn decide_mandate(&mut self, env: &Env, reference: &str, outcome: Outcome) {
        match outcome {
            Outcome::Success => self.consent(env, reference),
            Outcome::Failed => {
                if let Some(mandate) = self.mandates.get_mut(reference) {
                    mandate.stage = MandateState::Refused;
                }
            }
            Outcome::Abandoned => {}
        }
    }

    /// The transfer arrived: the webhook carries the token.
    pub(super) fn consent(&mut self, env: &Env, reference: &str) {
        let pending = self.mandates.get(reference).filter(|mandate| mandate.is_open());
        let Some(email) = pending.map(|mandate| mandate.email.clone()) else { return };
        let token = self.issue_token(&email, Instrument::Mandate(reference.to_owned()), env);
        if let Some(mandate) = self.mandates.get_mut(reference) {
            mandate.stage = MandateState::Approved;
            mandate.token = Some(token);
            mandate.active_on = Some(env.clock.now().plus_seconds(PROCESSING_SECONDS));
            mandate.updated_at = env.clock.now();
        }
        self.schedule(env, TimerEvent::Activation(reference.to_owned()));
        if let Some(mandate) = self.mandates.get(reference) {
            let body = json!({ "event": "account.tokenize", "data": self.mandate_json(mandate) });
            self.notify(env, reference, &body);
        }
    }

    pub(super) fn activate(&mut self, env: &Env, reference: &str) {
        let mandate = self.mandates.get_mut(reference);
        if let Some(mandate) = mandate.filter(|mandate| mandate.stage == MandateState::Approved) {
            mandate.stage = MandateState::Active;
            mandate.updated_at = env.clock.now();
        }
    }

    fn mandate_json(&self, mandate: &Mandate) -> Value {
        let (code, message) = match mandate.token {
            Some(_) => ("00", "Approved Or Completed Successfully"),
            None => ("02", "Kindly proceed with a token payment of N50:00 into the account shown"),
        };
        json!({
            "token": mandate.token,
            "reference": mandate.reference,
            "status": mandate.stage.name(),
            "amount": major(mandate.amount),
            "currency": "NGN",
            "address": mandate.address,
            "narration": mandate.narration,
            "start_date": Timestamp(mandate.start_date.timestamp_millis()),
            "end_date": Timestamp(mandate.end_date.timestamp_millis()),
            "active_on": mandate.active_on,
            // Older and newer responses name the same field differently.
            "response_code": code,
            "response_message": message,
            "processor_code": code,
            "processor_response": message,
            "account_id": self.id,
            "customer_id": mandate.customer_id,
            "created_at": mandate.created_at,
            "updated_at": mandate.updated_at,
        })
    }

    fn mandate(&mut self, reference: &str) -> Result<&mut Mandate, ApiError> {
        let unknown = || ApiError::invalid("No mandate token found for reference.");
        self.mandates.get_mut(reference).ok_or_else(unknown)
    }

    fn update_state(&mut self, reference: &str, status: &str, now: Timestamp) -> ApiResult {
        let stage = match status.to_uppercase().as_str() {
            "ACTIVE" => MandateState::Active,
            "SUSPENDED" => MandateState::Suspended,
            "DELETED" => MandateState::Deleted,
            _ => return Err(ApiError::invalid("status must be ACTIVE, SUSPENDED or DELETED")),
        };
        let mandate = self.mandate(reference)?;
        let revives =
            mandate.stage == MandateState::Suspended || mandate.stage == MandateState::Active;
        if mandate.stage == MandateState::Deleted || (stage != MandateState::Deleted && !revives) {
            return Err(ApiError::invalid("The token cannot be updated"));
        }
        mandate.stage = stage;
        mandate.updated_at = now;
        let data = self.mandate_json(&self.mandates[reference]);
        Ok(Reply::new("Account token updated successfully.", data))
    }
}

/// The account that receives the customer's consent transfer.
fn consent_json() -> Value {
    json!({
        "bank": "Mock Bank",
        "bank_name": "Mock Bank",
        "account_name": "FLUTTERWAVE MANDATE ACTIVATION",
        "account_number": "3662146895",
        "amount": "N50:00",
    })
}

/// Returns the period: it starts tomorrow at the earliest (now by default) and lasts at most a
/// year.
fn period(params: &Params, now: Timestamp) -> Result<(DateTime<Utc>, DateTime<Utc>), ApiError> {
    let date_param = |name: &str| {
        let Some(text) = params.text(name) else { return Ok(None) };
        date(&text).map(Some).ok_or_else(|| ApiError::invalid(format!("{name} must be a date")))
    };
    let now = now.to_datetime();
    let start = date_param("start_date")?;
    if start.is_some_and(|start| start.date_naive() <= now.date_naive()) {
        return Err(ApiError::invalid("start_date must be at least one day after today"));
    }
    let start = start.unwrap_or(now);
    let end = date_param("end_date")?.ok_or_else(|| ApiError::missing("end_date"))?;
    if end <= start || (end - start).num_days() > MAX_DAYS {
        return Err(ApiError::invalid("end_date must be within 365 days after start_date"));
    }
    Ok((start, end))
}

fn date(text: &str) -> Option<DateTime<Utc>> {
    let with_time = || DateTime::parse_from_rfc3339(text).ok().map(DateTime::from);
    let alone = || Some(text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
    with_time().or_else(alone)
}

pub(super) async fn tokenize(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    flutterwave.with_account(&key, |account, env| account.tokenize(env, &params))
}

pub(super) async fn fetch(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    flutterwave.with_account(&key, |account, _| {
        account.mandate(&reference)?;
        let data = account.mandate_json(&account.mandates[&reference]);
        Ok(Reply::new("Account token fetched successfully.", data))
    })
}

/// Suspends, reactivates or permanently deletes a token.
pub(super) async fn update(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
    params: Params,
) -> ApiResult {
    let status = params.required("status")?;
    flutterwave.with_account(&key, |account, env| {
        account.update_state(&reference, &status, env.clock.now())
    })
}
