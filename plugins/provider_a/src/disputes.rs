//! Disputes. Paystack accepts an answer only once, so `answer` queries the dispute first: a retry
//! after a lost response finds the first answer.
//!
//! Documents are not uploaded, because Paystack's storage has another origin. A link to a document
//! is part of the evidence's text.

use serde_json::{Value, json};
use tollhouse_plugin::disputes::{
    self, Dispute, DisputeAction, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage,
    DisputeStatus, Evidence,
};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{http, log, normal, text};

use crate::{Paystack, api, loose, transaction};

impl disputes::Guest for Paystack {
    fn list(filter: DisputeFilter, cursor: Option<String>) -> Result<DisputePage, Fault> {
        let (query, payment) = query(filter)?;
        let (items, next) = api::get_page(&format!("/dispute?{query}"), cursor.as_deref())?;
        let items = items.iter().filter(|item| is_for_payment(item, &payment));
        let disputes: Vec<Dispute> =
            items.map(|item| parse_dispute(item, &payment, None)).collect::<Result<_, Fault>>()?;
        Ok(DisputePage { disputes, next })
    }

    fn fetch(key: DisputeKey) -> Result<Dispute, Fault> {
        parse_dispute(&fetch_data(&key)?, &key, None)
    }

    fn answer(answer: DisputeAnswer) -> Result<Dispute, Fault> {
        let data = fetch_data(&answer.key)?;
        let dispute = parse_dispute(&data, &answer.key, None)?;
        if dispute.status != DisputeStatus::Open {
            return Ok(dispute);
        }
        match resolve(&answer, &data) {
            Ok(data) => parse_dispute(&data, &dispute.key, Some(&dispute.amount)),
            Err(refusal) if refusal.is_refusal() => find_after_refusal(&answer.key, refusal),
            Err(fault) => Err(fault),
        }
    }
}

/// Returns the query of a list, and a key without an id that has what is known of the disputed
/// payment. Paystack filters by its own transaction id.
fn query(filter: DisputeFilter) -> Result<(String, DisputeKey), Fault> {
    let (service_ref, transaction_id) = match filter {
        DisputeFilter::Payment((service_ref, transaction_id)) if transaction_id.is_empty() => {
            let found = loose::text(&transaction::find(&service_ref)?["id"]);
            (service_ref, found)
        }
        DisputeFilter::Payment(names) => names,
        DisputeFilter::Since(at) => {
            let (id, service_ref, transaction_id) = Default::default();
            let query = format!("from={}", http::encode(&at));
            return Ok((query, DisputeKey { id, service_ref, transaction_id }));
        }
    };
    // Without an id, Paystack would list the disputes of all payments.
    if transaction_id.is_empty() {
        return Err(unreadable_dispute());
    }
    let query = format!("transaction={}", http::encode(&transaction_id));
    Ok((query, DisputeKey { id: String::new(), service_ref, transaction_id }))
}

/// Returns whether a listed dispute belongs to this payment, if one is known. A dispute that names
/// no transaction was selected by the query's filter.
fn is_for_payment(item: &Value, payment: &DisputeKey) -> bool {
    let (id, reference) = transaction_names(item);
    match (payment.transaction_id.is_empty(), id.is_empty(), reference.is_empty()) {
        (true, _, _) | (_, true, true) => true,
        (_, false, _) => id == payment.transaction_id,
        (_, true, false) => reference == payment.service_ref,
    }
}

/// Returns the id and the reference of the transaction, which is an object or only an id. Absent
/// values are "".
pub(crate) fn transaction_names(data: &Value) -> (String, String) {
    let named = &data["transaction"];
    let id = loose::either(&named["id"], named);
    (id, loose::either(&named["reference"], &data["transaction_reference"]))
}

fn fetch_data(key: &DisputeKey) -> Result<Value, Fault> {
    api::get(&dispute_path(key, ""))
}

fn dispute_path(key: &DisputeKey, rest: &str) -> String {
    format!("/dispute/{}{rest}", http::encode(&key.id))
}

/// Answers an open dispute, and returns the `data` of the response.
fn resolve(answer: &DisputeAnswer, dispute: &Value) -> Result<Value, Fault> {
    let mut body = json!({"message": answer.message});
    match &answer.action {
        DisputeAction::Accept => {
            body["resolution"] = json!("merchant-accepted");
            body["refund_amount"] = json!(answer.amount.minor);
        }
        DisputeAction::Contest(evidence) => {
            body["evidence"] = add_evidence(&answer.key, evidence, dispute)?;
            body["resolution"] = json!("declined");
            body["refund_amount"] = json!(0);
        }
    }
    api::put(&dispute_path(&answer.key, "/resolve"), &body)
}

/// Adds evidence, and returns its id. A retry adds it again, which has no effect before the dispute
/// is resolved.
fn add_evidence(key: &DisputeKey, evidence: &Evidence, dispute: &Value) -> Result<Value, Fault> {
    let details = match &evidence.document_url {
        Some(url) => format!("{} {url}", evidence.service),
        None => evidence.service.clone(),
    };
    let body = json!({
        "customer_name": evidence.customer_name,
        "customer_email": evidence.customer_email,
        "customer_phone": phone(evidence, dispute)?,
        "service_details": details,
    });
    let added = api::post(&dispute_path(key, "/evidence"), &body)?;
    match loose::text(&added["id"]).is_empty() {
        true => Err(unreadable_dispute()),
        false => Ok(added["id"].clone()),
    }
}

/// Returns the phone number of the evidence, or else the customer's at Paystack. One of them is
/// required.
fn phone(evidence: &Evidence, dispute: &Value) -> Result<String, Fault> {
    let phone = evidence.customer_phone.clone();
    let phone = phone.unwrap_or_else(|| loose::text(&dispute["customer"]["phone"]));
    match phone.is_empty() {
        true => Err(Fault::invalid("phone", "Paystack requires the customer's phone number")),
        false => Ok(phone),
    }
}

/// Queries the dispute again after its answer was refused: an attempt whose response was lost may
/// be visible only now.
fn find_after_refusal(key: &DisputeKey, refusal: Fault) -> Result<Dispute, Fault> {
    let data = fetch_data(key).map_err(Fault::into_unavailable)?;
    let dispute = parse_dispute(&data, key, None)?;
    if dispute.status == DisputeStatus::Open { Err(refusal) } else { Ok(dispute) }
}

/// Converts a dispute. `known` and `amount` replace what Paystack omits: after an answer, the
/// transaction is only an id.
fn parse_dispute(
    data: &Value,
    known: &DisputeKey,
    amount: Option<&Money>,
) -> Result<Dispute, Fault> {
    let or = |found: String, known: &str| if found.is_empty() { known.to_owned() } else { found };
    let (transaction_id, service_ref) = transaction_names(data);
    let key = DisputeKey {
        id: loose::text(&data["id"]),
        service_ref: or(service_ref, &known.service_ref),
        transaction_id: or(transaction_id, &known.transaction_id),
    };
    if key.id.is_empty() || key.service_ref.is_empty() {
        return Err(unreadable_dispute());
    }
    Ok(Dispute {
        key,
        status: parse_status(data)?,
        amount: parse_amount(data).or(amount.cloned()).ok_or_else(unreadable_dispute)?,
        reason: text::short(&loose::text(&data["category"])),
        due_at: moment(data, "dueAt", "due_at"),
        opened_at: moment(data, "createdAt", "created_at"),
    })
}

/// `declined` means that the claim was declined. An unknown resolution does not prove an outcome.
pub(crate) fn parse_status(data: &Value) -> Result<DisputeStatus, Fault> {
    let status = data["status"].as_str().ok_or_else(unreadable_dispute)?;
    match (status, loose::text(&data["resolution"]).as_str()) {
        ("awaiting-merchant-feedback", _) => Ok(DisputeStatus::Open),
        ("awaiting-bank-feedback" | "pending", _) => Ok(DisputeStatus::Answered),
        ("resolved" | "archived", "merchant-accepted" | "auto-accepted") => Ok(DisputeStatus::Lost),
        ("resolved" | "archived", "declined") => Ok(DisputeStatus::Won),
        (status, resolution) => {
            let (status, resolution) = (text::code(status), text::code(resolution));
            log::warn(&format!(
                "unknown dispute status at Paystack: \"{status}\", resolution \"{resolution}\""
            ));
            Ok(DisputeStatus::Open)
        }
    }
}

/// Returns the amount to refund, or else the transaction's. Paystack sets the former to 0 if the
/// company keeps the money.
pub(crate) fn parse_amount(data: &Value) -> Option<Money> {
    let transaction = &data["transaction"];
    let currency = loose::either(&data["currency"], &transaction["currency"]);
    let refund = loose::minor(&data["refund_amount"]).filter(|minor| *minor > 0);
    let minor = refund.or_else(|| loose::minor(&transaction["amount"]))?;
    (!currency.is_empty()).then_some(Money { minor, currency })
}

fn moment(data: &Value, name: &str, other_name: &str) -> Option<String> {
    normal::moment(&data[name], 0).or_else(|| normal::moment(&data[other_name], 0))
}

fn unreadable_dispute() -> Fault {
    Fault::unavailable("Paystack's dispute cannot be read").with_code("unexpected-answer")
}
