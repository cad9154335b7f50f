//! Disputes, which Flutterwave calls chargebacks. It can query them only in lists, and accepts an
//! answer only once, so `answer` reads the list first: a retry after a lost response finds the
//! first answer.
//!
//! A chargeback has no currency, and in older versions no `tx_ref`. Both are then read from the
//! transaction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::disputes::{
    self, Dispute, DisputeAction, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage,
    DisputeStatus, Evidence,
};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{http, log, loose, normal, text};

use crate::{Flutterwave, api, list, transaction};

/// Disputes per page. Each may need the transaction, and a call is limited to 16 requests.
const PER_PAGE: usize = 10;

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

/// A part of a page of Flutterwave's list.
#[derive(Clone, Copy)]
struct Position {
    page: u64,
    offset: usize,
}

/// Service references and currencies by transaction id. Each transaction is queried once per call.
type Transactions = BTreeMap<String, (String, String)>;

impl disputes::Guest for Flutterwave {
    fn list(filter: DisputeFilter, cursor: Option<String>) -> Result<DisputePage, Fault> {
        let position = Position::parse(cursor.as_deref())?;
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
        let (items, pages) = list::fetch_page("chargebacks", &query, position.page)?;
        let mut transactions = Transactions::new();
        let mut disputes = Vec::new();
        for item in items.iter().skip(position.offset).take(PER_PAGE) {
            let chargeback: Chargeback = item.read()?;
            let is_wanted = match &payment {
                Some((id, service_ref)) => chargeback.is_for_payment(id, service_ref)?,
                None => true,
            };
            if is_wanted {
                disputes.push(chargeback.into_dispute(payment.as_ref(), &mut transactions)?);
            }
        }
        Ok(DisputePage { disputes, next: position.next(items.len(), pages) })
    }

    fn fetch(key: DisputeKey) -> Result<Dispute, Fault> {
        fetch(&key, &mut Transactions::new())
    }

    fn answer(answer: DisputeAnswer) -> Result<Dispute, Fault> {
        let mut transactions = Transactions::new();
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

/// Flutterwave takes no evidence but a comment and a link.
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

impl Position {
    /// Parses a cursor: the number of the page, a dot, and the number of items before this part.
    fn parse(cursor: Option<&str>) -> Result<Position, Fault> {
        let Some(cursor) = cursor else { return Ok(Position { page: 1, offset: 0 }) };
        let parts = cursor.split_once('.');
        parts
            .and_then(|(page, offset)| {
                Some(Position { page: page.parse().ok()?, offset: offset.parse().ok()? })
            })
            .ok_or_else(|| Fault::invalid("cursor", "not a cursor of this plugin"))
    }

    /// Returns the cursor of the next part, in this page or the next one.
    fn next(self, items: usize, pages: u64) -> Option<String> {
        let Position { page, offset } = self;
        match offset.saturating_add(PER_PAGE) {
            offset if offset < items => Some(format!("{page}.{offset}")),
            _ if page < pages => Some(format!("{}.0", page + 1)),
            _ => None,
        }
    }
}

impl Chargeback {
    /// Returns whether it belongs to this payment, which it names by an id or by a reference.
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

    /// Converts a chargeback. `payment` has the transaction id and the service reference, if known.
    fn into_dispute(
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
            let found = details(&transaction_id, transactions)?;
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

/// Returns the service reference and the currency of a transaction. A refusal does not mean that
/// the dispute does not exist.
fn details<'a>(
    transaction_id: &str,
    transactions: &'a mut Transactions,
) -> Result<&'a (String, String), Fault> {
    if transaction_id.is_empty() {
        return Err(unreadable_chargeback());
    }
    if !transactions.contains_key(transaction_id) {
        let found = transaction::fetch_details(transaction_id)
            .map_err(|fault| if fault.is_refusal() { fault.into_unavailable() } else { fault })?;
        transactions.insert(transaction_id.to_owned(), found);
    }
    transactions.get(transaction_id).ok_or_else(unreadable_chargeback)
}

fn unreadable_chargeback() -> Fault {
    Fault::unavailable("Flutterwave's chargeback cannot be read").with_code("unexpected-answer")
}
