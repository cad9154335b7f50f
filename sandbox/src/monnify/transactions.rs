//! Transactions: their state, the link to the hosted page, and queries.

use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::{Account, Page},
    cards::Card,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    times::compact,
};
use crate::env::Env;

const METHODS: [&str; 5] = ["CARD", "ACCOUNT_TRANSFER", "USSD", "PHONE_NUMBER", "DIRECT_DEBIT"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Paid,
    Overpaid,
    PartiallyPaid,
    Failed,
    Cancelled,
    Expired,
    Reversed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Paid => "PAID",
            Status::Overpaid => "OVERPAID",
            Status::PartiallyPaid => "PARTIALLY_PAID",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
            Status::Expired => "EXPIRED",
            Status::Reversed => "REVERSED",
        }
    }

    pub(super) fn is_paid(self) -> bool {
        matches!(self, Status::Paid | Status::Overpaid)
    }
}

/// The source of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Checkout,
    /// A charge of a saved card.
    CardToken,
    /// A debit, by the code of its mandate.
    Debit(String),
    /// A transfer to a reserved account, by the merchant's reference of the account.
    Reserved(String),
}

#[derive(Clone)]
pub(super) struct Transaction {
    /// Increases with each transaction.
    pub number: u64,
    pub reference: String,
    pub payment_reference: String,
    /// In minor units.
    pub payable: u64,
    pub paid: u64,
    pub currency: String,
    pub email: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub meta: Option<Value>,
    pub redirect_url: Option<String>,
    /// The id of its hosted page.
    pub page: Option<String>,
    pub methods: Vec<String>,
    pub method: String,
    pub status: Status,
    pub origin: Origin,
    pub created_at: Timestamp,
    pub paid_at: Option<Timestamp>,
    /// The attempted card, and its token.
    pub card: Option<&'static Card>,
    pub token: Option<String>,
    pub debit_fails: bool,
    /// Reserved by refunds that have not failed.
    pub refund_reserved_minor: u64,
    /// Returned by completed refunds.
    pub refunded: u64,
    /// Amount and currency that a test makes Monnify report instead.
    pub reported_amount: Option<(u64, String)>,
    /// Paid amount that a test makes Monnify report instead.
    pub reported_charged_minor: Option<u64>,
    /// Fee that a test makes Monnify list instead.
    pub listed_fee_minor: Option<u64>,
}

/// The common parameters of all transactions.
pub(super) struct Order {
    pub payment_reference: String,
    pub amount: u64,
    pub email: String,
}

impl Transaction {
    pub(super) fn new(order: Order, origin: Origin, env: &Env) -> Transaction {
        let (number, created_at) = (env.next_id(), env.clock.now());
        let (branch, count) = (number % 100, number % 1_000_000);
        Transaction {
            number,
            reference: format!("MNFY|{branch:02}|{}|{count:06}", compact(created_at)),
            payment_reference: order.payment_reference,
            payable: order.amount,
            paid: 0,
            currency: "NGN".to_owned(),
            email: order.email,
            name: None,
            description: None,
            meta: None,
            redirect_url: None,
            page: None,
            methods: Vec::new(),
            method: "CARD".to_owned(),
            status: Status::Pending,
            origin,
            created_at,
            paid_at: None,
            card: None,
            token: None,
            debit_fails: false,
            refund_reserved_minor: 0,
            refunded: 0,
            reported_amount: None,
            reported_charged_minor: None,
            listed_fee_minor: None,
        }
    }

    pub(super) fn accepts_cards(&self) -> bool {
        self.origin == Origin::Checkout && self.methods.iter().any(|method| method == "CARD")
    }
}

/// Returns Monnify's fee, in minor units.
pub(super) fn fee(paid: u64) -> u64 {
    ((paid.saturating_mul(15) + 500) / 1_000).min(200_000)
}

impl Account {
    pub(super) fn add(&mut self, transaction: Transaction) {
        let own = transaction.payment_reference.clone();
        if let Some(page) = &transaction.page {
            self.pages.insert(page.clone(), Page::Transaction(own.clone()));
        }
        self.references.insert(transaction.reference.clone(), own.clone());
        self.transactions.insert(own, transaction);
    }

    /// Records a payment and sends the webhook. Failures have no webhook.
    pub(super) fn record_payment(&mut self, env: &Env, payment_reference: &str, amount: u64) {
        let Some(transaction) = self.transactions.get_mut(payment_reference) else { return };
        transaction.paid += amount;
        transaction.paid_at = Some(env.clock.now());
        transaction.status = match transaction.paid.cmp(&transaction.payable) {
            std::cmp::Ordering::Less => Status::PartiallyPaid,
            std::cmp::Ordering::Equal => Status::Paid,
            std::cmp::Ordering::Greater => Status::Overpaid,
        };
        if let Some(transaction) = self.transactions.get(payment_reference) {
            self.notify_payment(env, transaction);
        }
    }

    pub(super) fn record_full_payment(&mut self, env: &Env, payment_reference: &str) {
        let payable = self.transactions.get(payment_reference).map(|t| t.payable);
        self.record_payment(env, payment_reference, payable.unwrap_or_default());
    }

    /// Settles a pending transaction. Returns false if there is none.
    pub(super) fn finish(&mut self, env: &Env, reference: &str, success: bool) -> bool {
        let Some(transaction) = self.by_reference_mut(reference) else { return false };
        if transaction.status != Status::Pending {
            return false;
        }
        let own = transaction.payment_reference.clone();
        if success {
            self.record_full_payment(env, &own);
        } else {
            transaction.status = Status::Failed;
        }
        true
    }

    fn initialize_checkout(&mut self, env: &Env, params: &Params) -> ApiResult {
        let amount = params.required_amount("amount")?;
        let email = params.email("customerEmail")?;
        let payment_reference = self.new_reference(params)?;
        if params.required("currencyCode")? != "NGN" {
            return Err(ApiError::invalid("Currency is not supported"));
        }
        self.check_contract(params)?;
        let methods = methods(params)?;
        let page = env.random.code(20);
        let order = Order { payment_reference, amount, email };
        let transaction = Transaction {
            name: params.text("customerName"),
            description: params.text("paymentDescription"),
            meta: params.get("metaData").cloned(),
            redirect_url: params.text("redirectUrl"),
            page: Some(page.clone()),
            method: methods[0].clone(),
            methods,
            ..Transaction::new(order, Origin::Checkout, env)
        };
        let body = json!({
            "transactionReference": transaction.reference,
            "paymentReference": transaction.payment_reference,
            "merchantName": self.merchant(),
            "apiKey": self.api_key,
            "redirectUrl": transaction.redirect_url,
            "enabledPaymentMethod": transaction.methods,
            "checkoutUrl": format!("{}/checkout/{page}", env.url),
        });
        self.add(transaction);
        Ok(Reply(body))
    }

    fn status_response(&self, reference: &str) -> ApiResult {
        let transaction =
            self.by_reference(reference).ok_or_else(ApiError::transaction_not_found)?;
        Ok(Reply(self.status_json(transaction)))
    }
}

/// Returns the requested payment methods; cards and transfers by default.
fn methods(params: &Params) -> Result<Vec<String>, ApiError> {
    let requested = params.get("paymentMethods").and_then(Value::as_array);
    let requested = requested.map(Vec::as_slice).unwrap_or_default();
    let known = |method: &Value| {
        let method = method.as_str().filter(|method| METHODS.contains(method));
        method.map(str::to_owned).ok_or_else(|| ApiError::invalid("Unknown payment method"))
    };
    let methods = requested.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let usual = || METHODS[..2].iter().map(|method| (*method).to_owned()).collect();
    Ok(if methods.is_empty() { usual() } else { methods })
}

pub(super) async fn initialize(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.initialize_checkout(env, &params))
}

pub(super) async fn status(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    monnify.with_account(&key, |account, _| {
        // Only by Monnify's reference; the merchant's reference has an endpoint of its own.
        if !account.references.contains_key(&reference) {
            return Err(ApiError::transaction_not_found());
        }
        account.status_response(&reference)
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusQuery {
    payment_reference: Option<String>,
    transaction_reference: Option<String>,
}

pub(super) async fn query(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Query(query): Query<StatusQuery>,
) -> ApiResult {
    let reference = query.payment_reference.or(query.transaction_reference);
    let reference = reference.ok_or_else(|| ApiError::missing("paymentReference"))?;
    monnify.with_account(&key, |account, _| account.status_response(&reference))
}
