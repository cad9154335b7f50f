//! Settlements, and the transactions of a period or a settlement.
//!
//! Paystack has no list of all transactions of a period, so those of four lists are returned:
//! successful payments, payments whose whole amount was returned later, refunds, and disputes.

use serde_json::Value;
use tollhouse_plugin::disputes::DisputeStatus;
use tollhouse_plugin::phases::Phases;
use tollhouse_plugin::settlements::{
    self, ListedKind, ListedTransaction, Period, Settlement, SettlementPage, SettlementStatus,
    TransactionFilter, TransactionPage,
};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{http, normal};

use crate::{Paystack, api, disputes, loose};

const DAY_MS: i64 = 86_400_000;

/// Days that may pass between the creation of a transaction, by which Paystack filters, and its
/// payment.
const PAYMENT_DAYS: i64 = 1;

/// Days that may pass between the opening of a dispute, by which Paystack filters, and its
/// decision.
const DISPUTE_DAYS: i64 = 180;

#[derive(Clone, Copy, PartialEq)]
enum List {
    Payments,
    Reversed,
    Refunds,
    Disputes,
}

const LISTS: Phases<List> = Phases(&[
    ("payments", List::Payments),
    ("reversed", List::Reversed),
    ("refunds", List::Refunds),
    ("disputes", List::Disputes),
]);

impl settlements::Guest for Paystack {
    fn transactions(
        filter: TransactionFilter,
        cursor: Option<String>,
    ) -> Result<TransactionPage, Fault> {
        match filter {
            TransactionFilter::Period(period) => list_period(&period, cursor.as_deref()),
            TransactionFilter::Settlement(id) => {
                let path = format!("/settlement/{}/transactions", http::encode(&id));
                let (items, next) = api::get_page(&path, cursor.as_deref())?;
                let transactions = items.iter().map(parse_payment).collect::<Result<_, _>>()?;
                Ok(TransactionPage { transactions, next })
            }
        }
    }

    fn list(period: Period, cursor: Option<String>) -> Result<SettlementPage, Fault> {
        let path = format!("/settlement?{}", query(&period, 0)?);
        let (items, next) = api::get_page(&path, cursor.as_deref())?;
        let settlements = items.iter().map(parse_settlement).collect::<Result<_, _>>()?;
        Ok(SettlementPage { settlements, next })
    }
}

/// Returns a page of the transactions of a period.
fn list_period(period: &Period, cursor: Option<&str>) -> Result<TransactionPage, Fault> {
    let (list, cursor) = LISTS.parse(cursor)?;
    let path = match list {
        List::Payments => format!("/transaction?status=success&{}", query(period, PAYMENT_DAYS)?),
        List::Reversed => format!("/transaction?status=reversed&{}", query(period, PAYMENT_DAYS)?),
        List::Refunds => format!("/refund?{}", query(period, 0)?),
        List::Disputes => format!("/dispute?status=resolved&{}", query(period, DISPUTE_DAYS)?),
    };
    let (items, next) = api::get_page(&path, cursor)?;
    let mut transactions = Vec::new();
    for item in &items {
        transactions.extend(match list {
            List::Payments | List::Reversed => Some(parse_payment(item)?),
            List::Refunds => parse_refund(item)?,
            List::Disputes => parse_dispute(item)?,
        });
    }
    Ok(TransactionPage { transactions, next: LISTS.next(list, next) })
}

/// Returns the query of a period, extended by `earlier_days` before its start.
fn query(period: &Period, earlier_days: i64) -> Result<String, Fault> {
    let since_ms = normal::unix_ms(&period.since)
        .ok_or_else(|| Fault::invalid("since", "not a time in RFC 3339"))?;
    let from = normal::utc(since_ms - earlier_days * DAY_MS);
    Ok(format!("from={}&to={}", http::encode(&from), http::encode(&period.until)))
}

/// Converts a payment. If the payer bears the fees, they are part of `amount`, but not of
/// `requested_amount`.
fn parse_payment(data: &Value) -> Result<ListedTransaction, Fault> {
    let fault = || unreadable("transaction");
    let charged = loose::minor(&data["amount"]).ok_or_else(fault)?;
    let requested = optional_minor(&data["requested_amount"], fault)?;
    let minor = requested.filter(|minor| *minor > 0).map_or(charged, |minor| minor.min(charged));
    let fees = optional_minor(&data["fees"], fault)?;
    let (id, currency) = (loose::text(&data["id"]), loose::text(&data["currency"]));
    if id.is_empty() || currency.is_empty() {
        return Err(fault());
    }
    Ok(ListedTransaction {
        kind: ListedKind::Payment,
        transaction_id: id.clone(),
        id,
        service_ref: loose::text(&data["reference"]),
        amount: Money { minor, currency },
        fees_minor: fees.map(|fees| fees.saturating_sub(charged - minor)),
        at: moment(data, &["paid_at", "paidAt"]).ok_or_else(fault)?,
    })
}

/// Converts a refund. Returns `None` if it failed, or if it returns the money of a dispute, which
/// is listed separately.
fn parse_refund(data: &Value) -> Result<Option<ListedTransaction>, Fault> {
    let fault = || unreadable("refund");
    let status = data["status"].as_str().ok_or_else(fault)?;
    let dispute = loose::either(&data["dispute"]["id"], &data["dispute"]);
    if status == "failed" || !dispute.is_empty() {
        return Ok(None);
    }
    let minor = loose::minor(&data["amount"]).ok_or_else(fault)?;
    let currency = loose::either(&data["currency"], &data["transaction"]["currency"]);
    let id = loose::text(&data["id"]);
    if id.is_empty() || currency.is_empty() {
        return Err(fault());
    }
    let (transaction_id, service_ref) = disputes::transaction_names(data);
    Ok(Some(ListedTransaction {
        kind: ListedKind::Refund,
        id,
        service_ref,
        transaction_id,
        amount: Money { minor, currency },
        fees_minor: None,
        // Paystack filters by the time of creation. With a later time, the refund could be outside
        // every period in which it is listed.
        at: moment(data, &["createdAt", "created_at", "refunded_at"]).ok_or_else(fault)?,
    }))
}

/// Converts a dispute. Returns `None` unless the company lost it.
fn parse_dispute(data: &Value) -> Result<Option<ListedTransaction>, Fault> {
    let fault = || unreadable("dispute");
    if disputes::parse_status(data)? != DisputeStatus::Lost {
        return Ok(None);
    }
    let id = loose::text(&data["id"]);
    if id.is_empty() {
        return Err(fault());
    }
    let names = ["resolvedAt", "resolved_at", "updatedAt", "updated_at"];
    let (transaction_id, service_ref) = disputes::transaction_names(data);
    Ok(Some(ListedTransaction {
        kind: ListedKind::Dispute,
        id,
        service_ref,
        transaction_id,
        amount: disputes::parse_amount(data).ok_or_else(fault)?,
        fees_minor: None,
        at: moment(data, &names).ok_or_else(fault)?,
    }))
}

fn parse_settlement(data: &Value) -> Result<Settlement, Fault> {
    let fault = || unreadable("settlement");
    let amount = |name: &str| loose::minor(&data[name]).ok_or_else(fault);
    let minor = match optional_minor(&data["effective_amount"], fault)? {
        Some(minor) => minor,
        None => amount("total_amount")?,
    };
    let (id, currency) = (loose::text(&data["id"]), loose::text(&data["currency"]));
    if id.is_empty() || currency.is_empty() {
        return Err(fault());
    }
    Ok(Settlement {
        id,
        status: match data["status"].as_str().ok_or_else(fault)? {
            "success" => SettlementStatus::Paid,
            "failed" => SettlementStatus::Failed,
            _ => SettlementStatus::Pending,
        },
        amount: Money { minor, currency },
        gross_minor: amount("total_processed")?,
        fees_minor: amount("total_fees")?,
        deductions_minor: deductions(data, minor),
        at: moment(data, &["settlement_date"]).ok_or_else(fault)?,
    })
}

/// Returns the deductions, computed from the total if Paystack lists them one by one.
fn deductions(data: &Value, paid_minor: u64) -> u64 {
    match (&data["deductions"], loose::minor(&data["deductions"])) {
        (_, Some(minor)) => minor,
        (Value::Null, None) => 0,
        _ => loose::minor(&data["total_amount"]).unwrap_or(paid_minor).saturating_sub(paid_minor),
    }
}

/// Returns an amount unless it is absent.
fn optional_minor(value: &Value, fault: impl Fn() -> Fault) -> Result<Option<u64>, Fault> {
    match value {
        Value::Null => Ok(None),
        value => loose::minor(value).map(Some).ok_or_else(fault),
    }
}

/// Returns the first of these fields that is a time.
fn moment(data: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| normal::moment(&data[*name], 0))
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("Paystack's {what} cannot be read")).with_code("unexpected-answer")
}
