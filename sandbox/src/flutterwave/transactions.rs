//! Transactions: their state, the link to the hosted page, and queries.

use std::borrow::Cow;

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Flutterwave,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Page, Params, Reply, is_within, valid_email},
    tokens::Instrument,
};
use crate::{env::Env, fields};

const CURRENCIES: [&str; 13] =
    ["NGN", "USD", "GHS", "KES", "ZAR", "UGX", "TZS", "RWF", "XAF", "XOF", "ZMW", "EUR", "GBP"];
const PER_PAGE: usize = 10;
/// Maximum lifetime of a link.
const MAX_SESSION_MINUTES: i64 = 1_440;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// No payment was attempted: for Flutterwave, only a link exists, not a transaction.
    NotAttempted,
    Pending,
    /// Waits for the customer to complete the bank's page.
    PendingAuth,
    Successful,
    Failed,
    Cancelled,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::NotAttempted | Status::Pending => "pending",
            Status::PendingAuth => "pending auth",
            Status::Successful => "successful",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    pub(super) fn is_pending(self) -> bool {
        matches!(self, Status::Pending | Status::PendingAuth)
    }
}

#[derive(Clone)]
pub(super) struct Transaction {
    pub id: u64,
    pub tx_ref: String,
    pub flw_ref: String,
    /// In minor units.
    pub amount: u64,
    pub currency: String,
    pub email: String,
    pub meta: Option<Value>,
    pub narration: String,
    pub redirect_url: Option<String>,
    /// The id of its hosted page.
    pub page: Option<String>,
    pub page_expires_at: Option<Timestamp>,
    pub attempts_left: Option<u64>,
    pub payment_options: Vec<String>,
    pub status: Status,
    pub payment_type: String,
    pub auth_model: String,
    pub processor_response: Option<String>,
    pub created_at: Timestamp,
    /// The attempted instrument.
    pub instrument: Option<Instrument>,
    /// The charged token, or the one that a success issued.
    pub token: Option<String>,
    pub fee: Option<u64>,
    /// Reserved by refunds that have not failed.
    pub refund_reserved_minor: u64,
    /// Amount and currency that a test makes Flutterwave report instead.
    pub reported_amount: Option<(u64, String)>,
    /// Charged amount that a test makes Flutterwave report instead.
    pub reported_charged_minor: Option<u64>,
}

/// The common parameters of all transactions.
pub(super) struct Order {
    pub tx_ref: String,
    pub amount: u64,
    pub currency: String,
    pub email: String,
}

impl Order {
    /// `email` is the customer's.
    pub(super) fn new(
        params: &Params,
        email: String,
        account: &Account,
    ) -> Result<Order, ApiError> {
        let tx_ref = account.new_reference(params.required("tx_ref")?)?;
        let amount = params.amount("amount")?.ok_or_else(|| ApiError::missing("amount"))?;
        let currency = params.text("currency").unwrap_or_else(|| "NGN".to_owned());
        if !CURRENCIES.contains(&currency.as_str()) {
            return Err(ApiError::invalid("currency is not supported"));
        }
        Ok(Order { tx_ref, amount, currency, email })
    }
}

impl Transaction {
    pub(super) fn new(order: Order, account: &Account, env: &Env) -> Transaction {
        let mock = if account.is_live() { "" } else { "MOCK-" };
        Transaction {
            id: env.next_id(),
            tx_ref: order.tx_ref,
            flw_ref: format!("FLW-{mock}{}", env.random.code(32)),
            amount: order.amount,
            currency: order.currency,
            email: order.email,
            meta: None,
            // The trailing space is Flutterwave's.
            narration: "CARD Transaction ".to_owned(),
            redirect_url: None,
            page: None,
            page_expires_at: None,
            attempts_left: None,
            payment_options: Vec::new(),
            status: Status::NotAttempted,
            payment_type: "card".to_owned(),
            auth_model: "AUTH".to_owned(),
            processor_response: None,
            created_at: env.clock.now(),
            instrument: None,
            token: None,
            fee: None,
            refund_reserved_minor: 0,
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

    /// Returns the reported charged amount. Customers pay the fee of a debit on top, merchants pay
    /// that of a card.
    pub(super) fn charged(&self) -> u64 {
        let on_top = matches!(self.instrument, Some(Instrument::Mandate(_)));
        let fee = if on_top { self.fee.unwrap_or_default() } else { 0 };
        self.reported_charged_minor.unwrap_or(self.reported().0 + fee)
    }

    pub(super) fn accepts_cards(&self) -> bool {
        self.payment_options.is_empty() || self.payment_options.iter().any(|o| o == "card")
    }
}

/// Returns the fee by Flutterwave's price list, in minor units.
pub(super) fn fee(amount: u64, currency: &str) -> u64 {
    let (per_mille, most) = if currency == "NGN" { (14, 200_000) } else { (38, u64::MAX) };
    ((amount.saturating_mul(per_mille) + 500) / 1_000).min(most)
}

impl Account {
    pub(super) fn add(&mut self, transaction: Transaction) -> u64 {
        let id = transaction.id;
        self.references.insert(transaction.tx_ref.clone(), id);
        if let Some(page) = &transaction.page {
            self.pages.insert(page.clone(), id);
        }
        self.transactions.insert(id, transaction);
        id
    }

    fn create_link(&mut self, env: &Env, params: &Params) -> ApiResult {
        let customer_field = |name: &str| fields::text(params.get("customer")?.get(name)?);
        let email = customer_field("email").ok_or_else(|| ApiError::missing("customer.email"))?;
        let order = Order::new(params, valid_email(&email)?, self)?;
        let redirect_url = params.required("redirect_url")?;
        let minutes = params.text("session_duration").and_then(|minutes| minutes.parse().ok());
        if minutes.is_some_and(|minutes: i64| !(1..=MAX_SESSION_MINUTES).contains(&minutes)) {
            return Err(ApiError::invalid("session_duration must be between 1 and 1440 minutes"));
        }
        self.upsert_customer(
            &order.email,
            customer_field("name"),
            customer_field("phonenumber"),
            env,
        );
        let page = env.random.code(20);
        let link = format!("{}/checkout/{page}", env.url);
        let options = params.text("payment_options").unwrap_or_default();
        let options = options.split(',').map(|option| option.trim().to_owned());
        let transaction = Transaction {
            redirect_url: Some(redirect_url),
            page: Some(page),
            page_expires_at: minutes.map(|minutes| env.clock.now().plus_seconds(60 * minutes)),
            attempts_left: params.text("max_retry_attempt").and_then(|tries| tries.parse().ok()),
            payment_options: options.filter(|option| !option.is_empty()).collect(),
            meta: Some(meta(params.get("meta"), &link)),
            ..Transaction::new(order, self, env)
        };
        self.add(transaction);
        Ok(Reply::new("Hosted Link", json!({ "link": link })))
    }

    /// Returns a transaction with at least one payment attempt.
    fn find_attempted(&self, id: &str) -> Option<&Transaction> {
        let transaction = self.transactions.get(&id.parse().ok()?)?;
        (transaction.status != Status::NotAttempted).then_some(transaction)
    }
}

/// Returns the merchant's metadata with the field that the hosted page adds.
fn meta(own: Option<&Value>, link: &str) -> Value {
    let mut meta = json!({ "__CheckoutInitAddress": link });
    if let (Some(all), Some(Value::Object(own))) = (meta.as_object_mut(), own) {
        all.extend(own.clone());
    }
    meta
}

pub(super) async fn initialize(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    flutterwave.with_account(&key, |account, env| account.create_link(env, &params))
}

#[derive(Deserialize)]
pub(super) struct VerifyQuery {
    tx_ref: Option<String>,
}

pub(super) async fn verify_by_reference(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<VerifyQuery>,
) -> ApiResult {
    let tx_ref = query.tx_ref.ok_or_else(|| ApiError::missing("tx_ref"))?;
    flutterwave.with_account(&key, |account, _| {
        let transaction =
            account.by_reference(&tx_ref).filter(|t| t.status != Status::NotAttempted);
        let transaction =
            transaction.ok_or_else(|| ApiError::transaction_not_found(StatusCode::NOT_FOUND))?;
        Ok(Reply::new("Transaction fetched successfully", account.verification_json(transaction)))
    })
}

pub(super) async fn verify(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    flutterwave.with_account(&key, |account, _| {
        let transaction = account.find_attempted(&id);
        let transaction =
            transaction.ok_or_else(|| ApiError::transaction_not_found(StatusCode::BAD_REQUEST))?;
        Ok(Reply::new("Transaction fetched successfully", account.verification_json(transaction)))
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    page: Option<usize>,
    tx_ref: Option<String>,
    status: Option<String>,
    /// First and last day: `YYYY-MM-DD`.
    from: Option<String>,
    to: Option<String>,
}

/// Lists all transactions, or the one with a `tx_ref`. The latter is as recorded, without the
/// changes of tests.
pub(super) async fn list(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |t: &Transaction| {
        t.status != Status::NotAttempted
            && query.status.as_ref().is_none_or(|wanted| wanted == t.status.name())
            && is_within(t.created_at, query.from.as_deref(), query.to.as_deref())
    };
    flutterwave.with_account(&key, |account, _| {
        let listed: Vec<Cow<'_, Transaction>> = match &query.tx_ref {
            None => account.listed_payments(),
            Some(tx_ref) => account.by_reference(tx_ref).map(Cow::Borrowed).into_iter().collect(),
        };
        let found = listed.iter().filter(|transaction| fits(transaction));
        let rows = found.map(|transaction| account.list_item_json(transaction)).collect();
        Ok(Reply::page("Transactions fetched", rows, Page::numbered(query.page, PER_PAGE)))
    })
}

pub(super) async fn resend_hook(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
) -> ApiResult {
    flutterwave.with_account(&key, |account, env| {
        let transaction =
            account.find_attempted(&id).filter(|transaction| !transaction.status.is_pending());
        let transaction =
            transaction.ok_or_else(|| ApiError::transaction_not_found(StatusCode::BAD_REQUEST))?;
        account.notify_charge(env, transaction);
        Ok(Reply::new("hook sent successfully", json!("hook sent")))
    })
}

#[cfg(test)]
mod tests {
    use super::fee;

    #[test]
    fn fees_follow_the_price_list() {
        assert_eq!(fee(6_000, "NGN"), 84);
        assert_eq!(fee(5_000, "NGN"), 70);
        assert_eq!(fee(100_000_000, "NGN"), 200_000);
        assert_eq!(fee(10_000, "USD"), 380);
    }
}
