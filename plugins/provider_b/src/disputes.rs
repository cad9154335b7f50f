//! Disputes, which Flutterwave calls chargebacks. They can be queried only in lists, and answered
//! only once, so `answer` reads the list first: a retry after a lost response finds the first
//! answer.
//!
//! A chargeback has no currency, and in older versions no `tx_ref`. Both are then read from the
//! transaction.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::disputes::{
    self, Dispute, DisputeAction, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage,
    DisputeStatus, Evidence,
};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{http, log, loose, normal, text};

use crate::transaction::{self, Transactions};
use crate::{Flutterwave, api, list};

/// Maximum number of disputes that a call returns. Each may need a query of its transaction, and a
/// call is limited to 16 requests.
const PER_PART: usize = 10;

/// A payer's dispute of a transaction. A later stage of the same dispute is another chargeback.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Chargeback {
    id: Value,
    amount: Option<Major>,
    currency: Value,
    status: Value,
    comment: Value,
    transaction_id: Value,
    tx_ref: Value,
    meta: Value,
    due_date: Value,
    created_at: Value,
}

#[derive(Serialize)]
struct AnswerRequest {
    action: &'static str,
    comment: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uploaded_proof: Option<String>,
}

impl disputes::Guest for Flutterwave {
    fn list(filter: DisputeFilter, cursor: Option<String>) -> Result<DisputePage, Fault> {
        let (query, payment) = match filter {
            DisputeFilter::Payment((service_ref, transaction_id)) => {
                let id = known_or_found_id(&service_ref, transaction_id)?;
                (format!("id={}", http::encode(&id)), Some((id, service_ref)))
            }
            // Flutterwave filters by days.
            DisputeFilter::Since(at) => {
                (format!("from={}", http::encode(at.get(..10).unwrap_or(&at))), None)
            }
        };
        let (items, next) = list::fetch_part("chargebacks", &query, cursor.as_deref(), PER_PART)?;
        let mut transactions = Transactions::default();
        let mut disputes = Vec::new();
        for item in items {
            let chargeback: Chargeback = item.read()?;
            let is_wanted = match &payment {
                Some((id, service_ref)) => chargeback.is_for_payment(id, service_ref)?,
                None => true,
            };
            if is_wanted {
                disputes.push(chargeback.into_dispute(payment.as_ref(), &mut transactions)?);
            }
        }
        Ok(DisputePage { disputes, next })
    }

    fn fetch(key: DisputeKey) -> Result<Dispute, Fault> {
        fetch(&key, &mut Transactions::default())
    }

    fn answer(answer: DisputeAnswer) -> Result<Dispute, Fault> {
        let mut transactions = Transactions::default();
        let dispute = fetch(&answer.key, &mut transactions)?;
        if dispute.status != DisputeStatus::Open {
            return Ok(dispute);
        }
        let path = format!("/chargebacks/{}", http::encode(&answer.key.id));
        match api::put(&path, &request(&answer)) {
            // The response has no data.
            Ok(_) => {
                let status = match answer.action {
                    DisputeAction::Accept => DisputeStatus::Lost,
                    DisputeAction::Contest(_) => DisputeStatus::Answered,
                };
                Ok(Dispute { status, ..dispute })
            }
            Err(refusal) if refusal.is_refusal() => {
                find_after_refusal(&answer.key, &mut transactions, refusal)
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Flutterwave lists chargebacks by its own transaction id.
fn known_or_found_id(service_ref: &str, transaction_id: String) -> Result<String, Fault> {
    match transaction_id.is_empty() {
        true => transaction::find_id(service_ref),
        false => Ok(transaction_id),
    }
}

/// Returns the dispute from the list of its transaction.
fn fetch(key: &DisputeKey, transactions: &mut Transactions) -> Result<Dispute, Fault> {
    let id = known_or_found_id(&key.service_ref, key.transaction_id.clone())?;
    for item in list::fetch("chargebacks", &id)? {
        let chargeback: Chargeback = item.read()?;
        if loose::text(&chargeback.id) == key.id {
            let payment = (id, key.service_ref.clone());
            return chargeback.into_dispute(Some(&payment), transactions);
        }
    }
    Err(Fault::not_found("Flutterwave lists no such chargeback"))
}

/// Flutterwave accepts no evidence except a comment and a link.
fn request(answer: &DisputeAnswer) -> AnswerRequest {
    let comment = answer.message.clone();
    match &answer.action {
        DisputeAction::Accept => AnswerRequest { action: "accept", comment, uploaded_proof: None },
        DisputeAction::Contest(evidence) => AnswerRequest {
            action: "decline",
            comment: format!("{comment}\n{}", describe(evidence)),
            uploaded_proof: evidence.document_url.clone(),
        },
    }
}

fn describe(evidence: &Evidence) -> String {
    let Evidence { customer_name, customer_email, customer_phone, service, .. } = evidence;
    let phone = customer_phone.iter().map(|phone| format!(", {phone}")).collect::<String>();
    format!("Service: {service}\nCustomer: {customer_name}, {customer_email}{phone}")
}

/// Reads the list again after the answer was refused: an attempt whose response was lost may be
/// visible only now.
fn find_after_refusal(
    key: &DisputeKey,
    transactions: &mut Transactions,
    refusal: Fault,
) -> Result<Dispute, Fault> {
    let dispute = fetch(key, transactions).map_err(Fault::into_unavailable)?;
    if dispute.status == DisputeStatus::Open { Err(refusal) } else { Ok(dispute) }
}

impl Chargeback {
    /// Returns whether the chargeback names this payment, by an id or by a reference.
    pub(crate) fn is_for_payment(
        &self,
        transaction_id: &str,
        service_ref: &str,
    ) -> Result<bool, Fault> {
        let (id, tx_ref) = (loose::text(&self.transaction_id), loose::text(&self.tx_ref));
        match (id.is_empty(), tx_ref.is_empty()) {
            (false, _) => Ok(id == transaction_id),
            (true, false) => Ok(tx_ref == service_ref),
            (true, true) => Err(unreadable_chargeback()),
        }
    }

    pub(crate) fn amount(&self) -> Result<Major, Fault> {
        self.amount.ok_or_else(unreadable_chargeback)
    }

    pub(crate) fn status(&self) -> Result<DisputeStatus, Fault> {
        let status = self.status.as_str().ok_or_else(unreadable_chargeback)?.to_lowercase();
        match status.as_str() {
            "initiated" => Ok(DisputeStatus::Open),
            "declined" => Ok(DisputeStatus::Answered),
            "won" => Ok(DisputeStatus::Won),
            "lost" | "accepted" => Ok(DisputeStatus::Lost),
            unknown => {
                let unknown = text::code(unknown);
                log::warn(&format!("unknown chargeback status at Flutterwave: \"{unknown}\""));
                Ok(DisputeStatus::Open)
            }
        }
    }

    /// Returns the time of the last action, or else that of the chargeback.
    pub(crate) fn decided_at(&self) -> Option<String> {
        let actions = self.meta["history"].as_array().into_iter().flatten();
        let times = actions.filter_map(|action| normal::moment(&action["date"], 0));
        times.max().or_else(|| normal::moment(&self.created_at, 0))
    }

    /// Converts a chargeback. `payment` has the transaction id and the service reference, if known.
    pub(crate) fn into_dispute(
        self,
        payment: Option<&(String, String)>,
        transactions: &mut Transactions,
    ) -> Result<Dispute, Fault> {
        let id = loose::text(&self.id);
        let or = |found: String, known: Option<&String>| match known {
            Some(known) if found.is_empty() => known.clone(),
            _ => found,
        };
        let transaction_id = or(loose::text(&self.transaction_id), payment.map(|names| &names.0));
        let mut service_ref = or(loose::text(&self.tx_ref), payment.map(|names| &names.1));
        let mut currency = loose::text(&self.currency);
        if service_ref.is_empty() || currency.is_empty() {
            if transaction_id.is_empty() {
                return Err(unreadable_chargeback());
            }
            let found = transactions.find(&transaction_id)?;
            service_ref = or(service_ref, Some(&found.0));
            currency = or(currency, Some(&found.1));
        }
        if id.is_empty() || service_ref.is_empty() || currency.is_empty() {
            return Err(unreadable_chargeback());
        }
        Ok(Dispute {
            key: DisputeKey { id, service_ref, transaction_id },
            status: self.status()?,
            amount: self.amount()?.money(&currency),
            reason: text::short(&loose::text(&self.comment)),
            due_at: normal::moment(&self.due_date, 0),
            opened_at: normal::moment(&self.created_at, 0),
        })
    }
}

fn unreadable_chargeback() -> Fault {
    Fault::unavailable("Flutterwave's chargeback cannot be read").with_code("unexpected-answer")
}
