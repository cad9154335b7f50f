//! The transactions of a period or a settlement. Monnify does not list settlements; the company
//! knows the reference of a settlement from Monnify's dashboard.
//!
//! Monnify searches for payments by one status at a time. A payment is `REVERSED` once its whole
//! amount was refunded.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::phases::Phases;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::settlements::{
    self, ListedKind, ListedTransaction, Period, SettlementPage, TransactionFilter, TransactionPage,
};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{http, loose, normal};

use crate::transaction::LAGOS_OFFSET_MINUTES;
use crate::{Monnify, api, naira};

/// The contract's maximum.
const PER_PAGE: usize = 100;

const DAY_MS: i64 = 86_400_000;

/// Days that may pass between the creation of a transaction, by which Monnify filters, and its
/// payment.
const PAYMENT_DAYS: i64 = 1;

#[derive(Clone, Copy, PartialEq)]
enum List {
    Paid,
    Overpaid,
    Reversed,
    Refunds,
}

const LISTS: Phases<List> = Phases(&[
    ("payments", List::Paid),
    ("overpaid", List::Overpaid),
    ("reversed", List::Reversed),
    ("refunds", List::Refunds),
]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    content: Vec<RawJson>,
    last: Option<bool>,
}

/// A payment, as in a search or in a settlement, where some names differ.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ListedPayment {
    transaction_reference: Value,
    payment_reference: Value,
    amount_paid: Option<Major>,
    payable_amount: Option<Major>,
    #[serde(rename = "totalPayable")]
    payable_in_settlement: Option<Major>,
    fee: RawJson,
    settlement_amount: RawJson,
    currency_code: Value,
    #[serde(rename = "currency")]
    currency_in_settlement: Value,
    completed_on: Value,
    #[serde(rename = "paidOn")]
    paid_in_settlement: Value,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ListedRefund {
    refund_reference: Value,
    refund_status: Value,
    refund_amount: Option<Major>,
    payment_reference: Value,
    transaction_reference: Value,
    created_on: Value,
    completed_on: Value,
}

impl settlements::Guest for Monnify {
    fn transactions(
        filter: TransactionFilter,
        cursor: Option<String>,
    ) -> Result<TransactionPage, Fault> {
        match filter {
            TransactionFilter::Period(period) => list_period(&period, cursor.as_deref()),
            TransactionFilter::Settlement(id) => {
                let path = "/api/v1/transactions/find-by-settlement-reference";
                let query = format!("reference={}", http::encode(&id));
                let (items, next) = fetch_page(path, &query, cursor.as_deref())?;
                let transactions = items.iter().map(parse_payment).collect::<Result<_, _>>()?;
                Ok(TransactionPage { transactions, next })
            }
        }
    }

    fn list(_: Period, _: Option<String>) -> Result<SettlementPage, Fault> {
        Ok(SettlementPage { settlements: Vec::new(), next: None })
    }
}

/// Returns a page of the transactions of a period.
fn list_period(period: &Period, cursor: Option<&str>) -> Result<TransactionPage, Fault> {
    let (list, cursor) = LISTS.parse(cursor)?;
    let search = |status: &str| -> Result<_, Fault> {
        let query = format!("{}&paymentStatus={status}", query(period, PAYMENT_DAYS)?);
        fetch_page("/api/v1/transactions/search", &query, cursor)
    };
    let (items, next) = match list {
        List::Paid => search("PAID")?,
        List::Overpaid => search("OVERPAID")?,
        List::Reversed => search("REVERSED")?,
        List::Refunds => fetch_page("/api/v1/refunds", &query(period, 0)?, cursor)?,
    };
    let mut transactions = Vec::new();
    for item in &items {
        transactions.extend(match list {
            List::Paid | List::Overpaid | List::Reversed => Some(parse_payment(item)?),
            List::Refunds => parse_refund(item)?,
        });
    }
    Ok(TransactionPage { transactions, next: LISTS.next(list, next) })
}

/// Returns the query of a period, extended by `earlier_days` before its start.
fn query(period: &Period, earlier_days: i64) -> Result<String, Fault> {
    let from = unix_ms(&period.since, "since")? - earlier_days * DAY_MS;
    let to = unix_ms(&period.until, "until")?;
    Ok(format!("from={from}&to={to}"))
}

fn unix_ms(time: &str, name: &str) -> Result<i64, Fault> {
    normal::unix_ms(time).ok_or_else(|| Fault::invalid(name, "not a time in RFC 3339"))
}

/// Returns a page of a list, and the cursor of the next page. A cursor is the number of its page,
/// which begins at 0.
fn fetch_page(
    path: &str,
    query: &str,
    cursor: Option<&str>,
) -> Result<(Vec<RawJson>, Option<String>), Fault> {
    let number: u64 = match cursor {
        None => 0,
        Some(cursor) => {
            cursor.parse().map_err(|_| Fault::invalid("cursor", "not a cursor of this plugin"))?
        }
    };
    let page: Page = api::get(&format!("{path}?{query}&page={number}&size={PER_PAGE}"))?.read()?;
    let items = page.content;
    // Without `last`, only a full page has a next one.
    let is_last = page.last.unwrap_or(items.len() < PER_PAGE);
    let next = number.checked_add(1).filter(|_| !is_last && !items.is_empty());
    Ok((items, next.map(|number| number.to_string())))
}

/// Converts a payment. As in verification, the amount excludes what was paid above the payable
/// amount.
fn parse_payment(item: &RawJson) -> Result<ListedTransaction, Fault> {
    let fault = || unreadable("transaction");
    let payment: ListedPayment = item.read()?;
    let id = loose::text(&payment.transaction_reference);
    let paid = payment.amount_paid.ok_or_else(fault)?;
    let payable = payment.payable_amount.or(payment.payable_in_settlement);
    let amount = payable.map_or(paid, |payable| payable.min(paid));
    let borne_minor = paid.hundredths() - amount.hundredths();
    let at = moment(&payment.completed_on).or_else(|| moment(&payment.paid_in_settlement));
    if id.is_empty() {
        return Err(fault());
    }
    Ok(ListedTransaction {
        kind: ListedKind::Payment,
        transaction_id: id.clone(),
        id,
        service_ref: loose::text(&payment.payment_reference),
        amount: amount.money(&currency(&payment)),
        fees_minor: fees_minor(&payment, paid)?.map(|fees| fees.saturating_sub(borne_minor)),
        at: at.ok_or_else(fault)?,
    })
}

fn currency(payment: &ListedPayment) -> String {
    let currency = loose::either(&payment.currency_code, &payment.currency_in_settlement);
    if currency.is_empty() { naira::CURRENCY.to_owned() } else { currency }
}

/// Returns the fees: the amount that Monnify kept, or else the fee that it reports.
fn fees_minor(payment: &ListedPayment, paid: Major) -> Result<Option<u64>, Fault> {
    let what = "Monnify's settlementAmount";
    match Major::listed(&payment.settlement_amount, Rounding::Down, what)? {
        Some(settled) => {
            let fees = paid.hundredths().checked_sub(settled.hundredths());
            fees.map(Some).ok_or_else(|| unreadable("settlementAmount"))
        }
        None => {
            let fee = Major::listed(&payment.fee, Rounding::Up, "Monnify's fee")?;
            Ok(fee.map(Major::hundredths))
        }
    }
}

/// Converts a refund. Returns `None` if it failed.
fn parse_refund(item: &RawJson) -> Result<Option<ListedTransaction>, Fault> {
    let fault = || unreadable("refund");
    let refund: ListedRefund = item.read()?;
    let status = refund.refund_status.as_str().ok_or_else(fault)?;
    if status.eq_ignore_ascii_case("FAILED") {
        return Ok(None);
    }
    let id = loose::text(&refund.refund_reference);
    let amount = refund.refund_amount.ok_or_else(fault)?;
    // Monnify filters by the time of creation. With a later time, the refund could be outside
    // every period in which it is listed.
    let at = moment(&refund.created_on).or_else(|| moment(&refund.completed_on));
    if id.is_empty() {
        return Err(fault());
    }
    Ok(Some(ListedTransaction {
        kind: ListedKind::Refund,
        id,
        service_ref: loose::text(&refund.payment_reference),
        transaction_id: loose::text(&refund.transaction_reference),
        amount: Money { minor: amount.hundredths(), currency: naira::CURRENCY.to_owned() },
        fees_minor: None,
        at: at.ok_or_else(fault)?,
    }))
}

/// Reads a time, which is in Lagos time if it has no offset.
fn moment(value: &Value) -> Option<String> {
    normal::moment(value, LAGOS_OFFSET_MINUTES)
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("Monnify's {what} cannot be read")).with_code("unexpected-answer")
}
