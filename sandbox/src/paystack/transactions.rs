//! Transactions: their state, the link to the hosted page, and queries.

use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Paystack,
    accounts::{Account, Page},
    http::{ApiError, ApiKey, ApiResult, Params, Period, Reply},
};
use crate::env::Env;

const CURRENCIES: [&str; 6] = ["GHS", "KES", "NGN", "USD", "XOF", "ZAR"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Not completed by the customer, who may still pay.
    Abandoned,
    /// Paused until the customer completes a page.
    Ongoing,
    Pending,
    /// A direct debit in progress.
    Processing,
    Success,
    Failed,
    Reversed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Abandoned => "abandoned",
            Status::Ongoing => "ongoing",
            Status::Pending => "pending",
            Status::Processing => "processing",
            Status::Success => "success",
            Status::Failed => "failed",
            Status::Reversed => "reversed",
        }
    }

    pub(super) fn is_paid(self) -> bool {
        matches!(self, Status::Success | Status::Reversed)
    }
}

#[derive(Clone)]
pub(super) struct Transaction {
    pub id: u64,
    pub reference: String,
    /// In minor units.
    pub amount: u64,
    pub currency: String,
    pub email: String,
    pub metadata: Option<Value>,
    pub channels: Vec<String>,
    pub callback_url: Option<String>,
    pub access_code: Option<String>,
    pub status: Status,
    pub channel: String,
    pub gateway_response: String,
    pub created_at: Timestamp,
    pub paid_at: Option<Timestamp>,
    /// The code of the attempted authorization.
    pub authorization: Option<String>,
    pub fees: Option<u64>,
    /// Reserved by refunds that have not failed.
    pub refund_reserved_minor: u64,
    /// Returned by processed refunds.
    pub refunded: u64,
    /// The bank's words if it will decline the debit.
    pub debit_fails: Option<&'static str>,
    /// Amount and currency that a test makes Paystack report instead.
    pub reported_amount: Option<(u64, String)>,
    /// Charged amount that a test makes Paystack report instead.
    pub reported_charged_minor: Option<u64>,
}

/// The common parameters of all transactions.
pub(super) struct Order {
    pub reference: String,
    pub amount: u64,
    pub currency: String,
    pub email: String,
}

impl Transaction {
    pub(super) fn new(
        params: &Params,
        account: &Account,
        env: &Env,
    ) -> Result<Transaction, ApiError> {
        let email = params.email()?;
        let amount = params.amount("amount")?.ok_or_else(|| ApiError::missing("amount"))?;
        let currency = params.text("currency").unwrap_or_else(|| "NGN".to_owned());
        if !CURRENCIES.contains(&currency.as_str()) {
            return Err(ApiError::invalid(
                "unsupported_currency",
                "Currency not supported by merchant",
                "Ensure that you're passing a supported currency",
            ));
        }
        let reference = account.new_reference(params.text("reference"), env)?;
        let channels = params.get("channels").and_then(Value::as_array);
        Ok(Transaction {
            metadata: params.get("metadata").map(parse_metadata),
            channels: channels.map(|all| strings(all)).unwrap_or_default(),
            callback_url: params.text("callback_url"),
            ..Transaction::unpaid(env, Order { reference, amount, currency, email })
        })
    }

    /// A transaction without optional parameters.
    pub(super) fn unpaid(env: &Env, order: Order) -> Transaction {
        Transaction {
            id: env.next_id(),
            reference: order.reference,
            amount: order.amount,
            currency: order.currency,
            email: order.email,
            metadata: None,
            channels: Vec::new(),
            callback_url: None,
            access_code: None,
            status: Status::Abandoned,
            channel: "card".to_owned(),
            gateway_response: "The transaction was not completed".to_owned(),
            created_at: env.clock.now(),
            paid_at: None,
            authorization: None,
            fees: None,
            refund_reserved_minor: 0,
            refunded: 0,
            debit_fails: None,
            reported_amount: None,
            reported_charged_minor: None,
        }
    }

    /// Returns the reported amount and currency.
    pub(super) fn reported(&self) -> (u64, &str) {
        match &self.reported_amount {
            Some((amount, currency)) => (*amount, currency.as_str()),
            None => (self.amount, self.currency.as_str()),
        }
    }

    /// Returns the reported charged amount.
    pub(super) fn charged(&self) -> u64 {
        self.reported_charged_minor.unwrap_or(self.reported().0)
    }

    /// Takes a part of the requested amount.
    pub(super) fn take_part(&mut self, amount: u64) {
        self.reported_amount = Some((self.amount, self.currency.clone()));
        self.reported_charged_minor = Some(amount);
        self.amount = amount;
    }

    pub(super) fn accepts_cards(&self) -> bool {
        self.channels.is_empty() || self.channels.iter().any(|channel| channel == "card")
    }

    pub(super) fn fail(&mut self, gateway_response: &str) {
        self.status = Status::Failed;
        gateway_response.clone_into(&mut self.gateway_response);
    }
}

fn strings(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Parses metadata, which may be an object or the JSON text of one.
fn parse_metadata(metadata: &Value) -> Value {
    let parsed = metadata.as_str().and_then(|text| serde_json::from_str(text).ok());
    parsed.filter(Value::is_object).unwrap_or_else(|| metadata.clone())
}

/// Returns the fees by Paystack's price list, in minor units.
pub(super) fn fees(amount: u64, currency: &str) -> u64 {
    match currency {
        "NGN" => {
            let flat = if amount >= 250_000 { 10_000 } else { 0 };
            ((amount.saturating_mul(15)).div_ceil(1_000) + flat).min(200_000)
        }
        "USD" => amount.saturating_mul(39).div_ceil(1_000),
        _ => amount.saturating_mul(195).div_ceil(10_000),
    }
}

impl Account {
    pub(super) fn add(&mut self, transaction: Transaction) -> u64 {
        let id = transaction.id;
        self.references.insert(transaction.reference.clone(), id);
        if let Some(code) = &transaction.access_code {
            self.pages.insert(code.clone(), Page::Transaction(id));
        }
        self.transactions.insert(id, transaction);
        id
    }

    /// Records the success and sends the webhook.
    pub(super) fn succeed(&mut self, env: &Env, id: u64) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.status = Status::Success;
        "Successful".clone_into(&mut transaction.gateway_response);
        transaction.paid_at = Some(env.clock.now());
        transaction.fees = Some(fees(transaction.amount, &transaction.currency));
        let reference = transaction.reference.clone();
        if let Some(transaction) = self.transactions.get(&id) {
            let mut data = self.transaction_json(transaction);
            if transaction.metadata.is_none() {
                // Verification returns "" where the webhook has 0, as recorded from the real API.
                data["metadata"] = json!(0);
            }
            self.notify(env, "charge.success", &reference, &data);
        }
    }
}

pub(super) fn checkout_url(env: &Env, transaction: &Transaction) -> String {
    format!("{}/checkout/{}", env.url, transaction.access_code.as_deref().unwrap_or_default())
}

pub(super) async fn initialize(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    paystack.with_account(&key, |account, env| {
        let mut transaction = Transaction::new(&params, account, env)?;
        account.customer(&transaction.email, env);
        transaction.access_code = Some(env.random.code(15));
        let data = json!({
            "authorization_url": checkout_url(env, &transaction),
            "access_code": transaction.access_code,
            "reference": transaction.reference,
        });
        account.add(transaction);
        Ok(Reply::new("Authorization URL created", data))
    })
}

pub(super) async fn verify(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let transaction =
            account.by_reference(&reference).ok_or_else(ApiError::transaction_not_found)?;
        Ok(Reply::new("Verification successful", account.transaction_json(transaction)))
    })
}

pub(super) async fn fetch(
    State(paystack): State<Paystack>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    paystack.with_account(&key, |account, _| {
        let transaction = id.parse().ok().and_then(|id: u64| account.transactions.get(&id));
        let transaction = transaction.ok_or_else(ApiError::transaction_not_found)?;
        Ok(Reply::new("Transaction retrieved", account.transaction_json(transaction)))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(rename = "perPage")]
    per_page: Option<usize>,
    page: Option<usize>,
    status: Option<String>,
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
    let fits = |t: &Transaction| {
        query.status.as_ref().is_none_or(|status| status == t.status.name())
            && period.contains(t.paid_at.unwrap_or(t.created_at))
    };
    paystack.with_account(&key, |account, _| {
        let listed = account.listed_payments();
        let all = listed.iter().filter(|transaction| fits(transaction));
        let all = all.map(|transaction| account.transaction_json(transaction)).collect();
        Ok(Reply::numbered_page("Transactions retrieved", all, [query.per_page, query.page]))
    })
}

#[cfg(test)]
mod tests {
    use super::fees;

    #[test]
    fn fees_follow_the_price_list() {
        assert_eq!(fees(100_000, "NGN"), 1_500);
        assert_eq!(fees(249_999, "NGN"), 3_750);
        assert_eq!(fees(250_000, "NGN"), 13_750);
        assert_eq!(fees(100_000_000, "NGN"), 200_000);
        assert_eq!(fees(10_000, "USD"), 390);
    }
}
