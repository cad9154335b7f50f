//! How a payment stands, in the shape that verification and charges share.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::told::Told;
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{http, log, loose, normal, text, verification};

use crate::api::{self, Envelope};
use crate::{Flutterwave, channels, instrument};

impl verification::Guest for Flutterwave {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        parse_payment(&find(&service_ref)?, &service_ref, None)
    }
}

/// A transaction by our reference. There is none before the customer has chosen how to pay on the page.
pub(crate) fn find(service_ref: &str) -> Result<Envelope, Fault> {
    let reference = http::encode(service_ref);
    api::get(&format!("/transactions/verify_by_reference?tx_ref={reference}"))
}

/// Our reference of the transaction that Flutterwave knows by its own id.
pub(crate) fn fetch_service_ref(id: &str) -> Result<String, Fault> {
    let answer =
        api::get_with_short_timeout(&format!("/transactions/{}/verify", http::encode(id)))?;
    Ok(loose::text(&answer.data.value()["tx_ref"]))
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Transaction {
    id: Value,
    tx_ref: Value,
    status: Value,
    /// What was asked for; `charged_amount` is more when the customer bears the fees.
    amount: Option<Major>,
    charged_amount: Told,
    app_fee: Told,
    currency: Value,
    payment_type: Value,
    processor_response: Value,
    created_at: Value,
    pub(crate) card: Value,
    pub(crate) customer: Value,
    meta: Value,
}

impl Transaction {
    fn charged(&self) -> Option<Major> {
        Major::rounded(&self.charged_amount, Rounding::Down, "Flutterwave's charged_amount")
    }

    fn fee(&self) -> Option<Major> {
        Major::rounded(&self.app_fee, Rounding::Up, "Flutterwave's app_fee")
    }
}

/// Reads a transaction. `asked` stands in for an amount that Flutterwave leaves out before anything was taken.
pub(crate) fn parse_payment(
    answer: &Envelope,
    service_ref: &str,
    asked: Option<&Money>,
) -> Result<Payment, Fault> {
    let transaction: Transaction = answer.data.read()?;
    let told = loose::text(&transaction.status).to_lowercase();
    let status = parse_status(&told);
    let requested = requested(&transaction, status, asked)?;
    let charged = match (transaction.charged(), status) {
        (Some(amount), _) => amount.money(&requested.currency),
        // What was asked for says nothing of what was taken.
        (None, PaymentStatus::Success) => return Err(missing_amount()),
        (None, _) => requested.clone(),
    };
    let reference = loose::text(&transaction.tx_ref);
    let created_at = normal::moment(&transaction.created_at, 0);
    let response = loose::text(&transaction.processor_response);
    Ok(Payment {
        status,
        service_ref: if reference.is_empty() { service_ref.to_owned() } else { reference },
        transaction_id: loose::text(&transaction.id),
        amount: charged,
        requested: Some(requested),
        fees_minor: transaction.fee().map(Major::minor),
        channel: channels::channel_name(&loose::text(&transaction.payment_type)),
        paid_at: created_at.filter(|_| status == PaymentStatus::Success),
        message: if response.is_empty() { told } else { response },
        instrument: instrument::from_transaction(&transaction),
        challenge_url: challenge_url(answer, &transaction, status),
        metadata: metadata(&transaction.meta),
        raw: loose::without(&["token"], "meta", answer.data.value()),
    })
}

/// Nothing was taken for certain unless it says how much.
fn requested(
    transaction: &Transaction,
    status: PaymentStatus,
    asked: Option<&Money>,
) -> Result<Money, Fault> {
    let currency = loose::text(&transaction.currency);
    match (transaction.amount, asked) {
        (Some(amount), _) if !currency.is_empty() => Ok(amount.money(&currency)),
        (Some(amount), Some(asked)) => Ok(amount.money(&asked.currency)),
        (None, Some(asked)) if status != PaymentStatus::Success => Ok(asked.clone()),
        _ => Err(missing_amount()),
    }
}

fn missing_amount() -> Fault {
    Fault::unavailable("Flutterwave's transaction names no amount").with_code("unexpected-answer")
}

fn parse_status(told: &str) -> PaymentStatus {
    match told {
        "successful" => PaymentStatus::Success,
        // The customer said no; should they pay on the same page after all, that is told as a success.
        "failed" | "cancelled" => PaymentStatus::Failed,
        "pending" | "pending auth" => PaymentStatus::Pending,
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("Flutterwave tells of a payment that is \"{unknown}\""));
            PaymentStatus::Pending
        }
    }
}

/// Where the customer must go on: told with the transaction or beside it.
fn challenge_url(
    answer: &Envelope,
    transaction: &Transaction,
    status: PaymentStatus,
) -> Option<String> {
    let redirect = |meta: &Value| meta["authorization"]["redirect"].as_str().map(str::to_owned);
    let url = redirect(&transaction.meta).or_else(|| redirect(&answer.meta))?;
    (status == PaymentStatus::Pending && !url.is_empty()).then_some(url)
}

/// What Flutterwave puts into `meta` of its own.
const PROVIDER_META_KEYS: [&str; 2] = ["__CheckoutInitAddress", "authorization"];

/// The order's metadata, if it is told.
fn metadata(meta: &Value) -> Option<String> {
    let mut meta = meta.as_object()?.clone();
    meta.retain(|name, _| !PROVIDER_META_KEYS.contains(&name.as_str()));
    (!meta.is_empty()).then(|| Value::Object(meta).to_string())
}
