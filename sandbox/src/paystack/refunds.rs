//! Refunds: pending at first, settled by the clock with the card's outcome.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Paystack,
    accounts::{Account, Instrument},
    cards::RefundOutcome,
    http::{ApiError, ApiKey, ApiResult, Params, Period, Reply},
    merchant::TimerEvent,
    transactions::{Status, Transaction},
};
use crate::{
    env::Env,
    listing::ListedLine,
    provider::{MerchantAccount, PROCESSING_SECONDS},
};

#[derive(Clone)]
pub(super) struct Refund {
    pub id: u64,
    /// Id of the transaction.
    transaction: u64,
    pub amount: u64,
    pub currency: String,
    status: &'static str,
    reference: String,
    customer_note: String,
    merchant_note: String,
    pub created_at: Timestamp,
    updated_at: Timestamp,
    /// The outcome of refunds to the card.
    outcome: RefundOutcome,
}

impl Refund {
    /// A pending refund with the usual notes.
    fn new(env: &Env, transaction: &Transaction, amount: u64) -> Refund {
        let now = env.clock.now();
        let note = format!("Refund for transaction {}", transaction.reference);
        Refund {
            id: env.next_id(),
            transaction: transaction.id,
            amount,
            currency: transaction.currency.clone(),
            status: PENDING,
            reference: format!("TRF_{}", env.random.code(15)),
            merchant_note: format!("{note} by {REFUNDED_BY}"),
            customer_note: note,
            created_at: now,
            updated_at: now,
            outcome: RefundOutcome::Processed,
        }
    }

    /// A refund that only the lists have.
    pub(super) fn listed(env: &Env, transaction: &Transaction, line: &ListedLine) -> Refund {
        Refund {
            currency: line.currency.clone(),
            status: PROCESSED,
            ..Refund::new(env, transaction, line.amount_minor)
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.status == FAILED
    }
}

const REFUNDED_BY: &str = "merchant@example.com";

const PENDING: &str = "pending";
const PROCESSING: &str = "processing";
const PROCESSED: &str = "processed";
const FAILED: &str = "failed";
const NEEDS_ATTENTION: &str = "needs-attention";

impl Account {
    /// Returns a transaction by reference or id.
    fn find_transaction(&self, name: &str) -> Option<&Transaction> {
        let by_id = || name.parse().ok().and_then(|id: u64| self.transactions.get(&id));
        self.by_reference(name).or_else(by_id)
    }

    fn refund_outcome(&self, transaction: &Transaction) -> RefundOutcome {
        let code = transaction.authorization.as_ref();
        match code.and_then(|code| self.authorizations.get(code)).map(|a| a.instrument) {
            Some(Instrument::Card(card)) => card.refund_outcome,
            _ => RefundOutcome::Processed,
        }
    }

    fn refund(&mut self, env: &Env, params: &Params) -> ApiResult {
        let name = params.required("transaction")?;
        let transaction =
            self.find_transaction(&name).ok_or_else(ApiError::transaction_not_found)?;
        let amount = refundable(transaction, params)?;
        let usual = Refund::new(env, transaction, amount);
        let refund = Refund {
            customer_note: params.text("customer_note").unwrap_or(usual.customer_note),
            merchant_note: params.text("merchant_note").unwrap_or(usual.merchant_note),
            outcome: self.refund_outcome(transaction),
            ..usual
        };
        let (id, transaction) = (refund.id, refund.transaction);
        if let Some(transaction) = self.transactions.get_mut(&transaction) {
            transaction.refund_reserved_minor += amount;
        }
        self.refunds.insert(id, refund);
        self.schedule(env, TimerEvent::Refund(id));
        self.notify_refund(env, id);
        let mut data = self.refund_json(&self.refunds[&id]);
        data["transaction"] = self.transaction_json(&self.transactions[&transaction]);
        Ok(Reply::new("Refund has been queued for processing", data))
    }

    /// Completes or fails the refund.
    pub(super) fn finish_refund(&mut self, env: &Env, id: u64) {
        let Some(refund) = self.refunds.get_mut(&id) else { return };
        refund.updated_at = env.clock.now();
        refund.status = match refund.outcome {
            RefundOutcome::Processed => PROCESSED,
            RefundOutcome::Failed => FAILED,
            RefundOutcome::NeedsAttention => NEEDS_ATTENTION,
        };
        if let Some(transaction) = self.transactions.get_mut(&refund.transaction) {
            match refund.outcome {
                RefundOutcome::Processed => transaction.refunded += refund.amount,
                RefundOutcome::Failed => transaction.refund_reserved_minor -= refund.amount,
                RefundOutcome::NeedsAttention => {}
            }
            if transaction.refunded >= transaction.amount {
                transaction.status = Status::Reversed;
            }
        }
        self.notify_refund(env, id);
    }

    fn notify_refund(&self, env: &Env, id: u64) {
        let Some(refund) = self.refunds.get(&id) else { return };
        let Some(transaction) = self.transactions.get(&refund.transaction) else { return };
        // In recorded webhooks, the amount is a string in some states and a number in others.
        let amount = match refund.status {
            PENDING => json!(refund.amount.to_string()),
            _ => json!(refund.amount),
        };
        let data = json!({
            "status": refund.status,
            "transaction_reference": transaction.reference,
            "refund_reference": refund.reference,
            "amount": amount,
            "currency": refund.currency,
            "processor": "instant-transfer",
            "customer": { "first_name": null, "last_name": null, "email": transaction.email },
            "integration": self.integration,
            "domain": self.domain(),
        });
        self.notify(env, &format!("refund.{}", refund.status), &transaction.reference, &data);
    }

    /// A refund with its transaction as an id; only the response to a new refund has the whole
    /// transaction.
    fn refund_json(&self, refund: &Refund) -> Value {
        let transaction = &self.transactions[&refund.transaction];
        json!({
            "transaction": transaction.id,
            "integration": self.integration,
            "deducted_amount": if refund.status == PROCESSED { refund.amount } else { 0 },
            "channel": null,
            "merchant_note": refund.merchant_note,
            "customer_note": refund.customer_note,
            "status": refund.status,
            "refunded_by": REFUNDED_BY,
            "expected_at": refund.created_at.plus_seconds(PROCESSING_SECONDS),
            "currency": refund.currency,
            "domain": self.domain(),
            "amount": refund.amount,
            "fully_deducted": refund.status == PROCESSED,
            "id": refund.id,
            "createdAt": refund.created_at,
            "updatedAt": refund.updated_at,
            "created_at": refund.created_at,
            "updated_at": refund.updated_at,
        })
    }
}

/// Returns the requested amount, or the remaining amount of the transaction.
fn refundable(transaction: &Transaction, params: &Params) -> Result<u64, ApiError> {
    let refused = |code, message| ApiError::invalid(code, message, "Check the transaction");
    let left = transaction.amount - transaction.refund_reserved_minor;
    if transaction.status == Status::Reversed || (transaction.status.is_paid() && left == 0) {
        return Err(refused("transaction_reversed", "Transaction has been fully reversed"));
    }
    if transaction.status != Status::Success {
        return Err(refused("transaction_not_paid", "Transaction has not been paid"));
    }
    if params.text("currency").is_some_and(|currency| currency != transaction.currency) {
        return Err(refused("invalid_currency", "Currency does not match the transaction's"));
    }
    let amount = params.amount("amount")?.unwrap_or(left);
    if amount > left {
        let message = "Refund amount cannot be more than what is left of the transaction amount";
        return Err(refused("invalid_amount", message));
    }
    Ok(amount)
}

fn refund_not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "Refund not found", "Check the id")
}

pub(super) async fn create(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| account.refund(env, &params))
}

pub(super) async fn fetch(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let refund = id.parse().ok().and_then(|id: u64| account.refunds.get(&id));
        let refund = refund.ok_or_else(refund_not_found)?;
        Ok(Reply::new("Refund retrieved", account.refund_json(refund)))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(rename = "perPage")]
    per_page: Option<usize>,
    page: Option<usize>,
    /// A reference or an id.
    transaction: Option<String>,
    /// Times or days.
    from: Option<String>,
    to: Option<String>,
}

/// Lists all refunds, or those of a transaction. The latter are as recorded, without the changes of
/// tests.
pub(super) async fn list(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    paystack.with_account(&key, |account, _| {
        let listed: Vec<Cow<'_, Refund>> = match &query.transaction {
            None => account.listed_refunds(),
            Some(name) => {
                let transaction = account.find_transaction(name).map(|found| found.id);
                let recorded = account.refunds.values().rev();
                let own = recorded.filter(|refund| Some(refund.transaction) == transaction);
                own.map(Cow::Borrowed).collect()
            }
        };
        let all = listed.iter().filter(|refund| period.contains(refund.created_at));
        let all = all.map(|refund| account.refund_json(refund)).collect();
        Ok(Reply::numbered_page("Refunds retrieved", all, [query.per_page, query.page]))
    })
}

/// Redirects a refund that needs attention to a bank account.
pub(super) async fn retry(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    params: Params,
) -> ApiResult {
    let details = params.get("refund_account_details").is_some_and(Value::is_object);
    if !details {
        return Err(ApiError::missing("refund_account_details"));
    }
    paystack.with_account(&key, |account, env| {
        let refund = id.parse().ok().and_then(|id: u64| account.refunds.get_mut(&id));
        let refund = refund.ok_or_else(refund_not_found)?;
        if refund.status != NEEDS_ATTENTION {
            let message = "Refund does not need attention";
            return Err(ApiError::invalid("invalid_params", message, "Check the refund"));
        }
        refund.status = PROCESSING;
        refund.outcome = RefundOutcome::Processed;
        refund.updated_at = env.clock.now();
        let id = refund.id;
        account.schedule(env, TimerEvent::Refund(id));
        account.notify_refund(env, id);
        let data = account.refund_json(&account.refunds[&id]);
        Ok(Reply::new("Refund retried and has been queued for processing", data))
    })
}
