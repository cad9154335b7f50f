//! The state of a payment, in the response format that verification and charges share.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{http, log, loose, normal, text, verification};

use crate::api::{self, Envelope};
use crate::{Flutterwave, channels, instrument, reversal};

impl verification::Guest for Flutterwave {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        reversal::apply(parse_payment(&find(&service_ref)?, &service_ref, None)?)
    }
}

/// Returns a transaction by service reference. It exists only once the customer has chosen a
/// payment method on the page.
pub(crate) fn find(service_ref: &str) -> Result<Envelope, Fault> {
    let reference = http::encode(service_ref);
    api::get(&format!("/transactions/verify_by_reference?tx_ref={reference}"))
}

/// Returns Flutterwave's id of a transaction, by service reference.
pub(crate) fn find_id(service_ref: &str) -> Result<String, Fault> {
    let found = parse_payment(&find(service_ref)?, service_ref, None)?;
    match found.transaction_id.is_empty() {
        true => Err(Fault::unavailable("Flutterwave's transaction has no id")
            .with_code("unexpected-answer")),
        false => Ok(found.transaction_id),
    }
}

/// Service references and currencies by transaction id. Each transaction is queried once per call.
#[derive(Default)]
pub(crate) struct Transactions(BTreeMap<String, (String, String)>);

impl Transactions {
    /// Returns the service reference and the currency of a listed transaction. A refusal does not
    /// mean that the listed object does not exist.
    pub(crate) fn find(&mut self, id: &str) -> Result<&(String, String), Fault> {
        match self.0.entry(id.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let found = fetch_details(id).map_err(|fault| match fault.is_refusal() {
                    true => fault.into_unavailable(),
                    false => fault,
                })?;
                Ok(unknown.insert(found))
            }
        }
    }
}

/// Returns the service reference and the currency of a transaction, by Flutterwave's id.
fn fetch_details(id: &str) -> Result<(String, String), Fault> {
    let data = api::get(&format!("/transactions/{}/verify", http::encode(id)))?.data.value();
    Ok((loose::text(&data["tx_ref"]), loose::text(&data["currency"])))
}

/// Returns the service reference of a transaction, by Flutterwave's id.
pub(crate) fn fetch_service_ref(id: &str) -> Result<String, Fault> {
    let response =
        api::get_with_short_timeout(&format!("/transactions/{}/verify", http::encode(id)))?;
    Ok(loose::text(&response.data.value()["tx_ref"]))
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Transaction {
    id: Value,
    tx_ref: Value,
    status: Value,
    /// The requested amount. `charged_amount` is larger if the customer bears the fees.
    amount: Option<Major>,
    charged_amount: RawJson,
    app_fee: RawJson,
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

/// Converts a transaction. Flutterwave omits the amount before money is taken; `requested_amount`
/// replaces it.
pub(crate) fn parse_payment(
    envelope: &Envelope,
    service_ref: &str,
    requested_amount: Option<&Money>,
) -> Result<Payment, Fault> {
    let transaction: Transaction = envelope.data.read()?;
    let value = loose::text(&transaction.status).to_lowercase();
    let status = parse_status(&value);
    let requested = requested(&transaction, status, requested_amount)?;
    let charged = match (transaction.charged(), status) {
        (Some(amount), _) => amount.money(&requested.currency),
        // The requested amount does not prove what was charged.
        (None, PaymentStatus::Success) => return Err(missing_amount()),
        (None, _) => requested.clone(),
    };
    let reference = loose::text(&transaction.tx_ref);
    let created_at = normal::moment(&transaction.created_at, 0);
    let fees = transaction.fee().map(|fee| fee.money_rounded(&requested.currency, Rounding::Up));
    let response = loose::text(&transaction.processor_response);
    Ok(Payment {
        status,
        service_ref: if reference.is_empty() { service_ref.to_owned() } else { reference },
        transaction_id: loose::text(&transaction.id),
        amount: charged,
        requested: Some(requested),
        fees_minor: fees.map(|fees| fees.minor),
        channel: channels::channel_name(&loose::text(&transaction.payment_type)),
        paid_at: created_at.filter(|_| status == PaymentStatus::Success),
        message: if response.is_empty() { value } else { response },
        instrument: instrument::from_transaction(&transaction),
        challenge_url: challenge_url(envelope, &transaction, status),
        metadata: metadata(&transaction.meta),
        raw: loose::without(&["token"], "meta", envelope.data.value()),
    })
}

/// Returns the requested amount. A success without an amount does not prove that money was taken.
fn requested(
    transaction: &Transaction,
    status: PaymentStatus,
    requested_amount: Option<&Money>,
) -> Result<Money, Fault> {
    let currency = loose::text(&transaction.currency);
    match (transaction.amount, requested_amount) {
        (Some(amount), _) if !currency.is_empty() => Ok(amount.money(&currency)),
        (Some(amount), Some(requested_amount)) => Ok(amount.money(&requested_amount.currency)),
        (None, Some(requested_amount)) if status != PaymentStatus::Success => {
            Ok(requested_amount.clone())
        }
        _ => Err(missing_amount()),
    }
}

fn missing_amount() -> Fault {
    Fault::unavailable("Flutterwave's transaction has no amount").with_code("unexpected-answer")
}

fn parse_status(value: &str) -> PaymentStatus {
    match value {
        "successful" => PaymentStatus::Success,
        // If the customer cancels and then pays on the same page, the transaction becomes
        // `successful`.
        "failed" | "cancelled" => PaymentStatus::Failed,
        "pending" | "pending auth" => PaymentStatus::Pending,
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("unknown payment status at Flutterwave: \"{unknown}\""));
            PaymentStatus::Pending
        }
    }
}

/// Returns the page on which the customer must continue, from the transaction or from the envelope.
fn challenge_url(
    envelope: &Envelope,
    transaction: &Transaction,
    status: PaymentStatus,
) -> Option<String> {
    let redirect = |meta: &Value| meta["authorization"]["redirect"].as_str().map(str::to_owned);
    let url = redirect(&transaction.meta).or_else(|| redirect(&envelope.meta))?;
    (status == PaymentStatus::Pending && !url.is_empty()).then_some(url)
}

/// Fields that Flutterwave adds to `meta`.
const PROVIDER_META_KEYS: [&str; 2] = ["__CheckoutInitAddress", "authorization"];

/// Returns the order's metadata, if present.
fn metadata(meta: &Value) -> Option<String> {
    let mut meta = meta.as_object()?.clone();
    meta.retain(|name, _| !PROVIDER_META_KEYS.contains(&name.as_str()));
    (!meta.is_empty()).then(|| Value::Object(meta).to_string())
}
