//! Disputes: claims of payers, which only tests open. The bank's decision is also up to tests; a
//! dispute without an answer is accepted when it is due.

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Paystack,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Params, Period, Reply},
    merchant::TimerEvent,
    transactions::Status,
};
use crate::{env::Env, fields::email, server::error_response, settlements::Movement};

/// The merchant's time to answer, and the time of the reminder before its end.
const RESPONSE_SECONDS: i64 = 48 * 3_600;
const REMINDER_SECONDS: i64 = 24 * 3_600;

const AWAITING_MERCHANT: &str = "awaiting-merchant-feedback";
const AWAITING_BANK: &str = "awaiting-bank-feedback";
const RESOLVED: &str = "resolved";

const MERCHANT_ACCEPTED: &str = "merchant-accepted";
const AUTO_ACCEPTED: &str = "auto-accepted";
const DECLINED: &str = "declined";

const BANK: &str = "bank@example.com";

const REMIND_EVENT: &str = "charge.dispute.remind";
const RESOLVE_EVENT: &str = "charge.dispute.resolve";

pub(super) struct Dispute {
    id: u64,
    /// Id of the transaction.
    transaction: u64,
    /// The claimed amount; `None`: the whole amount of the transaction.
    refund_amount: Option<u64>,
    status: &'static str,
    resolution: Option<&'static str>,
    /// The merchant's message.
    note: Option<String>,
    /// The ids of the evidence that the merchant added.
    evidence: Vec<u64>,
    created_at: Timestamp,
    updated_at: Timestamp,
    resolved_at: Option<Timestamp>,
}

impl Dispute {
    fn due_at(&self) -> Timestamp {
        self.created_at.plus_seconds(RESPONSE_SECONDS)
    }

    fn is_resolved(&self) -> bool {
        self.status == RESOLVED
    }
}

impl Account {
    /// Opens a dispute of a successful transaction. Returns its id; `None` if there is no such
    /// transaction, the amount exceeds it, or it has an unresolved dispute.
    pub(super) fn open_dispute(
        &mut self,
        env: &Env,
        reference: &str,
        amount: Option<u64>,
    ) -> Option<u64> {
        let transaction = self.by_reference(reference)?;
        let fits = amount.is_none_or(|amount| (1..=transaction.amount).contains(&amount));
        if transaction.status != Status::Success || !fits {
            return None;
        }
        let transaction = transaction.id;
        if self.unresolved(transaction).is_some() {
            return None;
        }
        let (id, now) = (env.next_id(), env.clock.now());
        let dispute = Dispute {
            id,
            transaction,
            refund_amount: amount,
            status: AWAITING_MERCHANT,
            resolution: None,
            note: None,
            evidence: Vec::new(),
            created_at: now,
            updated_at: now,
            resolved_at: None,
        };
        let reminder = dispute.due_at().plus_seconds(-REMINDER_SECONDS);
        self.timers.schedule(reminder, TimerEvent::DisputeReminder(id));
        self.timers.schedule(dispute.due_at(), TimerEvent::DisputeDue(id));
        self.disputes.insert(id, dispute);
        self.notify_dispute(env, id, "charge.dispute.create");
        Some(id)
    }

    /// Resolves a dispute by the bank's decision. Returns false if no unresolved dispute has this
    /// id.
    pub(super) fn decide_dispute(&mut self, env: &Env, id: u64, won: bool) -> bool {
        let resolution = if won { DECLINED } else { AUTO_ACCEPTED };
        let is_open = self.disputes.get(&id).is_some_and(|dispute| !dispute.is_resolved());
        if is_open {
            self.finish_dispute(env, id, resolution);
        }
        is_open
    }

    pub(super) fn remind_of_dispute(&self, env: &Env, id: u64) {
        if self.disputes.get(&id).is_some_and(|dispute| dispute.status == AWAITING_MERCHANT) {
            self.notify_dispute(env, id, REMIND_EVENT);
        }
    }

    /// Accepts a dispute that the merchant did not answer in time.
    pub(super) fn expire_dispute(&mut self, env: &Env, id: u64) {
        if self.disputes.get(&id).is_some_and(|dispute| dispute.status == AWAITING_MERCHANT) {
            self.finish_dispute(env, id, AUTO_ACCEPTED);
        }
    }

    /// Returns the id of the unresolved dispute of a transaction.
    pub(super) fn unresolved_dispute(&self, reference: &str) -> Option<u64> {
        self.unresolved(self.by_reference(reference)?.id)
    }

    fn unresolved(&self, transaction: u64) -> Option<u64> {
        let mut disputes = self.disputes.values();
        disputes.find(|d| d.transaction == transaction && !d.is_resolved()).map(|d| d.id)
    }

    /// Returns the disputes whose amounts were returned to the payers.
    pub(super) fn lost_disputes(&self) -> Vec<Movement> {
        let lost = |dispute: &&Dispute| dispute.resolution.is_some_and(|r| r != DECLINED);
        let movement = |dispute: &Dispute| {
            let transaction = &self.transactions[&dispute.transaction];
            Movement {
                id: dispute.id,
                currency: transaction.currency.clone(),
                amount: dispute.refund_amount.unwrap_or(transaction.amount),
                fees: 0,
            }
        };
        self.disputes.values().filter(lost).map(movement).collect()
    }

    /// Resolves a dispute and sends the webhook. A lost one returns the amount to the payer.
    fn finish_dispute(&mut self, env: &Env, id: u64, resolution: &'static str) {
        let now = env.clock.now();
        let Some(dispute) = self.disputes.get_mut(&id) else { return };
        (dispute.status, dispute.resolution) = (RESOLVED, Some(resolution));
        (dispute.updated_at, dispute.resolved_at) = (now, Some(now));
        let transaction = self.transactions.get_mut(&dispute.transaction);
        if let Some(transaction) = transaction.filter(|_| resolution != DECLINED) {
            let amount = dispute.refund_amount.unwrap_or(transaction.amount);
            let reserved = transaction.refund_reserved_minor + amount;
            transaction.refund_reserved_minor = reserved.min(transaction.amount);
            transaction.refunded += amount;
            if transaction.refunded >= transaction.amount {
                transaction.status = Status::Reversed;
            }
        }
        self.notify_dispute(env, id, RESOLVE_EVENT);
    }

    fn notify_dispute(&self, env: &Env, id: u64, event: &str) {
        let Some(dispute) = self.disputes.get(&id) else { return };
        let Some(transaction) = self.transactions.get(&dispute.transaction) else { return };
        let data = self.dispute_json(dispute);
        self.notify(env, event, &transaction.reference, &data);
    }

    /// A dispute with its whole transaction.
    fn dispute_json(&self, dispute: &Dispute) -> Value {
        let transaction = &self.transactions[&dispute.transaction];
        let authorization = self.transaction_json(transaction)["authorization"].clone();
        json!({
            "id": dispute.id,
            "refund_amount": dispute.refund_amount,
            "currency": transaction.currency,
            "status": dispute.status,
            "resolution": dispute.resolution,
            "domain": self.domain(),
            "transaction": self.transaction_json(transaction),
            "transaction_reference": null,
            "category": "chargeback",
            "customer": self.customer_json(&transaction.email),
            "bin": authorization["bin"],
            "last4": authorization["last4"],
            "dueAt": dispute.due_at(),
            "resolvedAt": dispute.resolved_at,
            "evidence": dispute.evidence.last(),
            "attachments": null,
            "note": dispute.note,
            "history": [{
                "status": dispute.status, "by": BANK, "createdAt": dispute.updated_at,
            }],
            "messages": [{
                "sender": BANK, "body": "Goods not received", "createdAt": dispute.created_at,
            }],
            "createdAt": dispute.created_at,
            "updatedAt": dispute.updated_at,
        })
    }

    /// Returns a dispute of a path; 404 if it does not exist.
    fn dispute_mut(&mut self, id: &str) -> Result<&mut Dispute, ApiError> {
        let dispute = id.parse().ok().and_then(|id: u64| self.disputes.get_mut(&id));
        dispute.ok_or_else(dispute_not_found)
    }

    /// Like [`Account::dispute_mut`]; 400 if the merchant cannot answer it any more.
    fn open_dispute_mut(&mut self, id: &str) -> Result<&mut Dispute, ApiError> {
        let dispute = self.dispute_mut(id)?;
        match dispute.status {
            AWAITING_MERCHANT => Ok(dispute),
            RESOLVED => Err(invalid("Dispute has been resolved")),
            _ => Err(invalid("Dispute has been answered and awaits the bank")),
        }
    }

    fn resolve_dispute(&mut self, env: &Env, id: &str, params: &Params) -> ApiResult {
        let answer = Answer::parse(params)?;
        let dispute = self.open_dispute_mut(id)?;
        if answer.evidence.is_some_and(|evidence| !dispute.evidence.contains(&evidence)) {
            return Err(invalid("Evidence not found for this dispute"));
        }
        let (id, transaction) = (dispute.id, dispute.transaction);
        if answer.accepts {
            let most = self.transactions[&transaction].amount;
            if !(1..=most).contains(&answer.refund_amount) {
                return Err(invalid("Refund amount must be positive and at most the amount paid"));
            }
        }
        if let Some(dispute) = self.disputes.get_mut(&id) {
            (dispute.note, dispute.updated_at) = (Some(answer.message), env.clock.now());
            match answer.accepts {
                true => dispute.refund_amount = Some(answer.refund_amount),
                false => dispute.status = AWAITING_BANK,
            }
        }
        if answer.accepts {
            self.finish_dispute(env, id, MERCHANT_ACCEPTED);
        }
        // This response alone has the transaction as an id.
        let mut data = self.dispute_json(&self.disputes[&id]);
        data["transaction"] = transaction.into();
        Ok(Reply::new("Dispute successfully resolved", data))
    }
}

/// The merchant's answer.
struct Answer {
    accepts: bool,
    message: String,
    refund_amount: u64,
    evidence: Option<u64>,
}

impl Answer {
    fn parse(params: &Params) -> Result<Answer, ApiError> {
        let accepts = match params.required("resolution")?.as_str() {
            MERCHANT_ACCEPTED => true,
            DECLINED => false,
            _ => return Err(invalid("Resolution must be merchant-accepted or declined")),
        };
        let message = params.required("message")?;
        let amount = params.required("refund_amount")?;
        let refund_amount = amount.parse().map_err(|_| invalid("Refund amount is invalid"))?;
        let evidence = match params.get("evidence") {
            None => None,
            Some(_) => {
                let id = params.text("evidence").and_then(|id| id.parse().ok());
                Some(id.ok_or_else(|| invalid("Evidence must be an id"))?)
            }
        };
        if params.get("uploaded_filename").is_some_and(|name| !name.is_string()) {
            return Err(invalid("Uploaded filename is invalid"));
        }
        Ok(Answer { accepts, message, refund_amount, evidence })
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::invalid("invalid_params", message, "Check the dispute")
}

fn dispute_not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "Dispute not found", "Check the id")
}

pub(super) async fn fetch(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let id = account.dispute_mut(&id)?.id;
        Ok(Reply::new("Dispute retrieved", account.dispute_json(&account.disputes[&id])))
    })
}

/// Returns the newest dispute of a transaction. Like the real endpoint, it returns a single one.
pub(super) async fn of_transaction(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let mut newest = account.disputes.values().rev();
        let found = newest.find(|dispute| dispute.transaction.to_string() == id);
        let found = found.ok_or_else(dispute_not_found)?;
        Ok(Reply::new("Dispute retrieved successfully", account.dispute_json(found)))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(rename = "perPage")]
    per_page: Option<usize>,
    page: Option<usize>,
    status: Option<String>,
    /// An id.
    transaction: Option<String>,
    /// Times or days.
    from: Option<String>,
    to: Option<String>,
}

pub(super) async fn list(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    let fits = |dispute: &&Dispute| {
        query.status.as_ref().is_none_or(|status| status == dispute.status)
            && query.transaction.as_ref().is_none_or(|id| *id == dispute.transaction.to_string())
            && period.contains(dispute.created_at)
    };
    paystack.with_account(&key, |account, _| {
        let all = account.disputes.values().rev().filter(fits);
        let all = all.map(|dispute| account.dispute_json(dispute)).collect();
        Ok(Reply::numbered_page("Disputes retrieved", all, [query.per_page, query.page]))
    })
}

pub(super) async fn add_evidence(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| {
        let customer_email = email(&params.required("customer_email")?).ok_or_else(|| {
            let message = "Invalid Email Address Passed";
            ApiError::invalid("invalid_email_address", message, "Pass a valid email address")
        })?;
        let name = params.required("customer_name")?;
        let phone = params.required("customer_phone")?;
        let details = params.required("service_details")?;
        let now = env.clock.now();
        let dispute = account.open_dispute_mut(&id)?;
        let evidence = env.next_id();
        dispute.evidence.push(evidence);
        dispute.updated_at = now;
        let data = json!({
            "id": evidence,
            "dispute": dispute.id,
            "customer_email": customer_email,
            "customer_name": name,
            "customer_phone": phone,
            "service_details": details,
            "delivery_address": params.text("delivery_address"),
            "delivery_date": params.text("delivery_date"),
            "createdAt": now,
            "updatedAt": now,
        });
        Ok(Reply::new("Evidence created", data))
    })
}

pub(super) async fn resolve(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| account.resolve_dispute(env, &id, &params))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ControlRequest {
    /// Decides the unresolved dispute of the transaction.
    Decide {
        reference: String,
        won: bool,
    },
    Open {
        reference: String,
        amount_minor: Option<u64>,
    },
}

/// Control endpoint of the simulators: opens or decides a dispute.
pub(super) async fn control(State(paystack): State<Paystack>, body: String) -> Response {
    let Ok(request) = serde_json::from_str::<ControlRequest>(&body) else {
        let wanted = "reference is required; amount_minor is a number; won is a boolean";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    let (done, missing) = match request {
        ControlRequest::Decide { reference, won } => {
            let id = paystack.unresolved_dispute(&reference);
            let decided = id.is_some_and(|id| paystack.decide_dispute(id, won));
            (decided, "no transaction with this reference has an unresolved dispute")
        }
        ControlRequest::Open { reference, amount_minor } => {
            let opened = paystack.open_dispute(&reference, amount_minor).is_some();
            (opened, "no successful and undisputed transaction has this reference and amount")
        }
    };
    match done {
        true => StatusCode::NO_CONTENT.into_response(),
        false => error_response(StatusCode::NOT_FOUND, missing),
    }
}
