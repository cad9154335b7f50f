//! The state of a payment, in the response format that verification, charges and debits share.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};
use tollhouse_plugin::{http, loose, normal, verification};

use crate::{Monnify, api, channels, instrument, naira, status};

/// Monnify's timestamps are in Lagos time.
pub(crate) const LAGOS_OFFSET_MINUTES: i64 = 60;

/// Fields with credentials to charge the payer again, or to act for the account or the customer.
/// The code of a mandate suffices to debit it.
const CREDENTIAL_FIELDS: [&str; 5] =
    ["cardToken", "mandateCode", "authData", "apiKey", "accessToken"];

impl verification::Guest for Monnify {
    fn verify(service_ref: String) -> Result<Payment, Fault> {
        parse_payment(&find(&service_ref)?, &service_ref, None)
    }
}

/// Returns a transaction by service reference. If there is none, it may be the debit of a mandate,
/// which has an endpoint of its own. A merchant who is not permitted to debit has no debits; after
/// any other refusal the outcome is unknown.
pub(crate) fn find(service_ref: &str) -> Result<RawJson, Fault> {
    let reference = http::encode(service_ref);
    let known =
        api::get(&format!("/api/v2/merchant/transactions/query?paymentReference={reference}"));
    let unknown = match known {
        Err(fault) if fault.category == FaultCategory::NotFound => fault,
        known => return known,
    };
    let path = format!("/api/v1/direct-debit/mandate/debit-status?paymentReference={reference}");
    api::get(&path).map_err(|fault| match fault.category {
        FaultCategory::NotFound => unknown,
        _ if api::is_forbidden(&fault) => unknown,
        _ if fault.is_refusal() => fault.into_unavailable(),
        _ => fault,
    })
}

/// Returns the service reference of a transaction, by Monnify's reference.
pub(crate) fn fetch_service_ref(transaction: &str) -> Result<String, Fault> {
    let found: Transaction = api::get_with_short_timeout(&transaction_path(transaction))?.read()?;
    Ok(loose::text(&found.payment_reference))
}

/// Returns the path of a transaction by Monnify's reference, which contains `|`.
fn transaction_path(transaction: &str) -> String {
    format!("/api/v2/transactions/{}", http::encode(transaction))
}

/// The fields differ between checkout, cards and mandates.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Transaction {
    transaction_reference: Value,
    payment_reference: Value,
    payment_status: Value,
    transaction_status: Value,
    status: Value,
    amount_paid: Option<Major>,
    authorized_amount: Option<Major>,
    debit_amount: Option<Major>,
    total_payable: Option<Major>,
    settlement_amount: RawJson,
    currency: Value,
    payment_method: Value,
    paid_on: Value,
    message: Value,
    response_message: Value,
    otp_data: Value,
    secure3d_data: Value,
    meta_data: Value,
    pub(crate) card_details: Value,
    pub(crate) customer: Value,
    pub(crate) mandate_code: Value,
    /// The product of the payment; for a transfer to a virtual account, that account.
    pub(crate) product: Value,
}

impl Transaction {
    /// Returns Monnify's reference.
    pub(crate) fn id(&self) -> String {
        loose::text(&self.transaction_reference)
    }

    fn status(&self) -> String {
        let value = loose::either(&self.payment_status, &self.transaction_status);
        if value.is_empty() { loose::text(&self.status) } else { value }.to_uppercase()
    }

    fn currency(&self) -> String {
        let value = loose::text(&self.currency);
        if value.is_empty() { naira::CURRENCY.to_owned() } else { value }
    }

    fn paid(&self) -> Option<Major> {
        self.amount_paid.or(self.authorized_amount).or(self.debit_amount)
    }

    /// Returns the requested amount only if at least that much was paid: a smaller payment must not
    /// count as complete, whatever its status.
    fn requested(&self) -> Option<Major> {
        let paid = self.paid()?;
        self.total_payable.filter(|requested| *requested <= paid)
    }

    fn settled(&self) -> Option<Major> {
        Major::rounded(&self.settlement_amount, Rounding::Down, "Monnify's settlementAmount")
    }
}

/// Converts a transaction. Monnify omits the amount before money is taken; `requested_amount`
/// replaces it.
pub(crate) fn parse_payment(
    value: &RawJson,
    service_ref: &str,
    requested_amount: Option<&Money>,
) -> Result<Payment, Fault> {
    let transaction: Transaction = value.read()?;
    let word = transaction.status();
    let status = status::parse(&word);
    let currency = transaction.currency();
    let reference = loose::text(&transaction.payment_reference);
    let taken = status == PaymentStatus::Success;
    Ok(Payment {
        status,
        service_ref: if reference.is_empty() { service_ref.to_owned() } else { reference },
        transaction_id: transaction.id(),
        amount: amount(&transaction, status, requested_amount)?,
        requested: transaction.requested().map(|amount| amount.money(&currency)),
        fees_minor: if taken { fees(&transaction)? } else { None },
        channel: channels::channel_name(&loose::text(&transaction.payment_method)),
        paid_at: normal::moment(&transaction.paid_on, LAGOS_OFFSET_MINUTES).filter(|_| taken),
        message: message(&transaction, word),
        instrument: instrument::from_transaction(&transaction),
        challenge_url: challenge_url(&transaction, status),
        metadata: loose::object(&transaction.meta_data),
        raw: redacted_json(value),
    })
}

/// Returns the amount. A success without an amount does not prove that money was taken.
fn amount(
    transaction: &Transaction,
    status: PaymentStatus,
    requested_amount: Option<&Money>,
) -> Result<Money, Fault> {
    let value = match status {
        PaymentStatus::Success => transaction.paid(),
        _ => transaction.paid().or(transaction.total_payable),
    };
    match (value, requested_amount) {
        (Some(amount), _) => Ok(amount.money(&transaction.currency())),
        (None, Some(requested_amount)) if status != PaymentStatus::Success => {
            Ok(requested_amount.clone())
        }
        _ => Err(Fault::unavailable("Monnify's transaction names no amount")
            .with_code("unexpected-answer")),
    }
}

/// Returns the provider fee, which Monnify deducts. A missing settlement amount is looked up,
/// because the company's wallet is credited with the net amount.
fn fees(transaction: &Transaction) -> Result<Option<u64>, Fault> {
    let settled = match transaction.settled() {
        None => fetch_settled_amount(&transaction.id())?,
        value => value,
    };
    let kept = transaction.paid().zip(settled);
    Ok(kept.and_then(|(paid, settled)| paid.hundredths().checked_sub(settled.hundredths())))
}

/// Returns the settlement amount by Monnify's reference. A debit may have none.
fn fetch_settled_amount(id: &str) -> Result<Option<Major>, Fault> {
    if id.is_empty() {
        return Ok(None);
    }
    match api::get(&transaction_path(id)) {
        Ok(value) => Ok(value.read::<Transaction>()?.settled()),
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(None),
        Err(fault) => Err(fault.into_unavailable()),
    }
}

/// Returns a message for the company: the reason, the amounts paid and requested, or else the
/// status.
fn message(transaction: &Transaction, word: String) -> String {
    let Transaction { message, response_message, otp_data, .. } = transaction;
    let messages = [message, response_message, &otp_data["message"]].map(loose::text);
    match (word.as_str(), transaction.amount_paid, transaction.total_payable) {
        ("OVERPAID" | "PARTIALLY_PAID", Some(paid), Some(requested)) => {
            format!("{word}: {paid} of {requested} {}", transaction.currency())
        }
        _ => messages.into_iter().find(|text| !text.is_empty()).unwrap_or(word),
    }
}

/// Returns the bank's page on which the customer must continue. An OTP has no page.
fn challenge_url(transaction: &Transaction, status: PaymentStatus) -> Option<String> {
    let url = loose::text(&transaction.secure3d_data["redirectUrl"]);
    (status == PaymentStatus::Pending && !url.is_empty()).then_some(url)
}

/// Returns a response for display. The product of a debit is the mandate, whose code is removed.
pub(crate) fn redacted_json(value: &RawJson) -> String {
    let mut shown = value.value();
    if let Some(product) = shown.get_mut("product").and_then(Value::as_object_mut) {
        let kind = product.get("type").map(loose::text).unwrap_or_default();
        if kind.eq_ignore_ascii_case("DIRECT_DEBIT") {
            product.remove("reference");
        }
    }
    loose::without(&CREDENTIAL_FIELDS, "metaData", shown)
}
