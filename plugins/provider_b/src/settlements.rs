//! Settlements, and the transactions of a period or a settlement.
//!
//! Flutterwave filters its lists by whole days, and lists payments, refunds and chargebacks
//! separately. A refund or a chargeback has no currency, which is read from the transaction.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::disputes::DisputeStatus;
use tollhouse_plugin::phases::Phases;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::settlements::{
    self, ListedKind, ListedTransaction, Period, Settlement, SettlementPage, SettlementStatus,
    TransactionFilter, TransactionPage,
};
use tollhouse_plugin::types::{Fault, FaultCategory, Money};
use tollhouse_plugin::{http, loose, normal};

use crate::disputes::Chargeback;
use crate::list::{self, Position};
use crate::refunds::RefundRecord;
use crate::transaction::Transactions;
use crate::{Flutterwave, api};

/// The contract's maximum.
const PER_PAGE: usize = 100;

/// Maximum number of refunds or chargebacks that a call returns. Each needs a query of its
/// transaction, and a call is limited to 16 requests.
const PER_PART: usize = 10;

const DAY_MS: i64 = 86_400_000;

/// Days that may pass between the creation of a chargeback, by which Flutterwave filters, and its
/// decision.
const CHARGEBACK_DAYS: i64 = 180;

#[derive(Clone, Copy, PartialEq)]
enum List {
    Payments,
    Refunds,
    Chargebacks,
}

const LISTS: Phases<List> = Phases(&[
    ("payments", List::Payments),
    ("refunds", List::Refunds),
    ("disputes", List::Chargebacks),
]);

/// A payment in the list of transactions or in a settlement. In a settlement, it has no `amount`,
/// and a date instead of a time.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedPayment {
    id: Value,
    tx_ref: Value,
    /// The requested amount. `charged_amount` is larger if the payer bears the fees.
    amount: Option<Major>,
    charged_amount: RawJson,
    app_fee: RawJson,
    currency: Value,
    created_at: Value,
    transaction_date: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedSettlement {
    id: Value,
    status: Value,
    currency: Value,
    gross_amount: RawJson,
    app_fee: RawJson,
    merchant_fee: RawJson,
    stampduty_charge: RawJson,
    chargeback: RawJson,
    refund: RawJson,
    net_amount: RawJson,
    processed_date: Value,
    due_date: Value,
    created_at: Value,
}

/// The contents of a settlement.
#[derive(Deserialize)]
struct SettlementDetails {
    transactions: Vec<RawJson>,
}

impl settlements::Guest for Flutterwave {
    fn transactions(
        filter: TransactionFilter,
        cursor: Option<String>,
    ) -> Result<TransactionPage, Fault> {
        match filter {
            TransactionFilter::Period(period) => list_period(&period, cursor.as_deref()),
            TransactionFilter::Settlement(id) => list_contents(&id, cursor.as_deref()),
        }
    }

    fn list(period: Period, cursor: Option<String>) -> Result<SettlementPage, Fault> {
        let query = query(&period, 0)?;
        let (items, next) = list::fetch_part("settlements", &query, cursor.as_deref(), PER_PAGE)?;
        let settlements = items.iter().map(parse_settlement).collect::<Result<_, _>>()?;
        Ok(SettlementPage { settlements, next })
    }
}

/// Returns a part of the transactions of a period.
fn list_period(period: &Period, cursor: Option<&str>) -> Result<TransactionPage, Fault> {
    let (phase, cursor) = LISTS.parse(cursor)?;
    let (name, query, size) = match phase {
        List::Payments => {
            ("transactions", format!("{}&status=successful", query(period, 0)?), PER_PAGE)
        }
        List::Refunds => ("refunds", query(period, 0)?, PER_PART),
        List::Chargebacks => ("chargebacks", query(period, CHARGEBACK_DAYS)?, PER_PART),
    };
    let (items, next) = match list::fetch_part(name, &query, cursor, size) {
        // Flutterwave has no refunds or chargebacks, or no such list.
        Err(fault) if fault.category == FaultCategory::NotFound && phase != List::Payments => {
            (Vec::new(), None)
        }
        found => found?,
    };
    let mut known = Transactions::default();
    let mut transactions = Vec::new();
    for item in &items {
        transactions.extend(match phase {
            List::Payments => Some(parse_payment(item)?),
            List::Refunds => parse_refund(item, &mut known)?,
            List::Chargebacks => parse_chargeback(item, &mut known)?,
        });
    }
    Ok(TransactionPage { transactions, next: LISTS.next(phase, next) })
}

/// Returns a part of the payments of a settlement. Flutterwave returns all in one response.
fn list_contents(id: &str, cursor: Option<&str>) -> Result<TransactionPage, Fault> {
    let position = Position::parse(cursor)?;
    let found = api::get(&format!("/settlements/{}", http::encode(id)))?;
    let SettlementDetails { transactions } = found.data.read()?;
    let (items, next) = position.split(transactions, PER_PAGE, 1);
    let transactions = items.iter().map(parse_payment).collect::<Result<_, _>>()?;
    Ok(TransactionPage { transactions, next })
}

/// Returns the query of the days of a period, extended by `earlier_days` before its start.
fn query(period: &Period, earlier_days: i64) -> Result<String, Fault> {
    let from = day(&period.since, "since", earlier_days)?;
    let to = day(&period.until, "until", 0)?;
    Ok(format!("from={from}&to={to}"))
}

/// Returns the date `earlier_days` before a time, as YYYY-MM-DD.
fn day(time: &str, name: &str, earlier_days: i64) -> Result<String, Fault> {
    let time_ms =
        normal::unix_ms(time).ok_or_else(|| Fault::invalid(name, "not a time in RFC 3339"))?;
    let day = normal::utc(time_ms - earlier_days * DAY_MS);
    Ok(day.chars().take("YYYY-MM-DD".len()).collect())
}

fn parse_payment(item: &RawJson) -> Result<ListedTransaction, Fault> {
    let fault = || unreadable("transaction");
    let payment: ListedPayment = item.read()?;
    let (id, currency) = (loose::text(&payment.id), loose::text(&payment.currency));
    if id.is_empty() || currency.is_empty() {
        return Err(fault());
    }
    let what = "Flutterwave's charged_amount";
    let charged = Major::listed(&payment.charged_amount, Rounding::Down, what)?;
    let charged = charged.or(payment.amount).ok_or_else(fault)?.money(&currency);
    let requested = payment.amount.map_or(charged.minor, |amount| amount.money(&currency).minor);
    let minor = requested.min(charged.minor);
    let fees = fee(&payment.app_fee, &currency, "Flutterwave's app_fee")?;
    let at = normal::moment(&payment.created_at, 0);
    Ok(ListedTransaction {
        kind: ListedKind::Payment,
        transaction_id: id.clone(),
        id,
        service_ref: loose::text(&payment.tx_ref),
        amount: Money { minor, currency },
        fees_minor: fees.map(|fees| fees.saturating_sub(charged.minor - minor)),
        at: at.or_else(|| midnight(&payment.transaction_date)).ok_or_else(fault)?,
    })
}

/// Converts a refund. Returns `None` if it failed.
fn parse_refund(
    item: &RawJson,
    known: &mut Transactions,
) -> Result<Option<ListedTransaction>, Fault> {
    let fault = || unreadable("refund");
    let refund: RefundRecord = item.read()?;
    if refund.status()? == "failed" {
        return Ok(None);
    }
    let (id, transaction_id) = (loose::text(&refund.id), refund.transaction());
    let amount = refund.amount().ok_or_else(fault)?;
    let at = refund.created_at().ok_or_else(fault)?;
    if id.is_empty() || transaction_id.is_empty() {
        return Err(fault());
    }
    let (service_ref, currency) = known.find(&transaction_id)?.clone();
    if currency.is_empty() {
        return Err(fault());
    }
    Ok(Some(ListedTransaction {
        kind: ListedKind::Refund,
        id,
        service_ref,
        transaction_id,
        amount: amount.money(&currency),
        fees_minor: None,
        at,
    }))
}

/// Converts a chargeback. Returns `None` unless the company lost it.
fn parse_chargeback(
    item: &RawJson,
    known: &mut Transactions,
) -> Result<Option<ListedTransaction>, Fault> {
    let chargeback: Chargeback = item.read()?;
    if chargeback.status()? != DisputeStatus::Lost {
        return Ok(None);
    }
    let at = chargeback.decided_at().ok_or_else(|| unreadable("chargeback"))?;
    let dispute = chargeback.into_dispute(None, known)?;
    Ok(Some(ListedTransaction {
        kind: ListedKind::Dispute,
        id: dispute.key.id,
        service_ref: dispute.key.service_ref,
        transaction_id: dispute.key.transaction_id,
        amount: dispute.amount,
        fees_minor: None,
        at,
    }))
}

fn parse_settlement(item: &RawJson) -> Result<Settlement, Fault> {
    let fault = || unreadable("settlement");
    let settlement: ListedSettlement = item.read()?;
    let (id, currency) = (loose::text(&settlement.id), loose::text(&settlement.currency));
    if id.is_empty() || currency.is_empty() {
        return Err(fault());
    }
    let amount = |value: &RawJson, what: &str| -> Result<Money, Fault> {
        let amount = Major::listed(value, Rounding::Down, what)?;
        Ok(amount.ok_or_else(fault)?.money(&currency))
    };
    let sum = |parts: &[(&RawJson, &str)]| -> Result<u64, Fault> {
        parts.iter().try_fold(0_u64, |sum, (value, what)| {
            let what = format!("Flutterwave's {what}");
            Ok(sum.saturating_add(fee(value, &currency, &what)?.unwrap_or_default()))
        })
    };
    let fees_minor = sum(&[
        (&settlement.app_fee, "app_fee"),
        (&settlement.merchant_fee, "merchant_fee"),
        (&settlement.stampduty_charge, "stampduty_charge"),
    ])?;
    let deductions_minor =
        sum(&[(&settlement.chargeback, "chargeback"), (&settlement.refund, "refund")])?;
    let dates = [&settlement.processed_date, &settlement.due_date, &settlement.created_at];
    let at = dates.iter().find_map(|date| normal::moment(date, 0).or_else(|| midnight(date)));
    let status = settlement.status.as_str().ok_or_else(fault)?.to_lowercase();
    Ok(Settlement {
        id,
        status: match status.as_str() {
            "completed" => SettlementStatus::Paid,
            "failed" | "cancelled" => SettlementStatus::Failed,
            _ => SettlementStatus::Pending,
        },
        amount: amount(&settlement.net_amount, "Flutterwave's net_amount")?,
        gross_minor: amount(&settlement.gross_amount, "Flutterwave's gross_amount")?.minor,
        fees_minor,
        deductions_minor,
        at: at.ok_or_else(fault)?,
    })
}

/// Returns a fee in the currency's minor unit, unless it is absent.
fn fee(value: &RawJson, currency: &str, what: &str) -> Result<Option<u64>, Fault> {
    let fee = Major::listed(value, Rounding::Up, what)?;
    Ok(fee.map(|fee| fee.money_rounded(currency, Rounding::Up).minor))
}

/// Returns the midnight at which a date without a time begins.
fn midnight(date: &Value) -> Option<String> {
    normal::moment(&Value::from(format!("{} 00:00:00", date.as_str()?)), 0)
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("Flutterwave's {what} cannot be read"))
        .with_code("unexpected-answer")
}
