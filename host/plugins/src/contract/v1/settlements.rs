//! Conversions of lists of transactions and settlements.

use super::{
    convert::{amount, truncate, unexpected},
    exported, wit,
};
use crate::{
    Fault, ListedKind, ListedTransaction, ProviderSettlement, SettlementPage, SettlementStatus,
    TransactionFilter, TransactionPage,
};
use exported::settlements as v1;
use tollhouse_platform::{
    clock::Timestamp,
    values::{listing::Period, money::Minor},
};

/// Maximum number of transactions or settlements of a page.
const MAX_ITEMS: usize = 100;
/// Maximum length of ids and references.
const MAX_ID_BYTES: usize = 200;
const MAX_CURSOR_BYTES: usize = 1_000;

impl From<&Period> for v1::Period {
    fn from(period: &Period) -> v1::Period {
        v1::Period { since: period.from.to_string(), until: period.before.to_string() }
    }
}

impl From<&TransactionFilter> for v1::TransactionFilter {
    fn from(filter: &TransactionFilter) -> v1::TransactionFilter {
        match filter {
            TransactionFilter::Period(period) => v1::TransactionFilter::Period(period.into()),
            TransactionFilter::Settlement(id) => v1::TransactionFilter::Settlement(id.clone()),
        }
    }
}

/// Rejects an id that is empty or too long: truncated, it could be that of another record.
fn id(text: String, min_bytes: usize) -> Result<String, Fault> {
    match (min_bytes..=MAX_ID_BYTES).contains(&text.len()) {
        true => Ok(truncate(text, MAX_ID_BYTES)),
        false => Err(unexpected("a listed id or reference has more than 200 bytes, or none")),
    }
}

fn time(text: &str) -> Result<Timestamp, Fault> {
    Timestamp::parse(text).ok_or_else(|| unexpected("a listed time is not RFC 3339 in UTC"))
}

fn minor(minor: u64, currency: &str) -> Result<Minor, Fault> {
    Ok(amount(wit::Money { minor, currency: currency.to_owned() })?.minor)
}

impl TryFrom<v1::ListedTransaction> for ListedTransaction {
    type Error = Fault;

    fn try_from(listed: v1::ListedTransaction) -> Result<ListedTransaction, Fault> {
        let currency = &listed.amount.currency;
        let fees = listed.fees_minor.map(|fees| minor(fees, currency)).transpose()?;
        Ok(ListedTransaction {
            kind: match listed.kind {
                v1::ListedKind::Payment => ListedKind::Payment,
                v1::ListedKind::Refund => ListedKind::Refund,
                v1::ListedKind::Dispute => ListedKind::Dispute,
            },
            id: id(listed.id, 1)?,
            service_ref: id(listed.service_ref, 0)?,
            transaction_id: id(listed.transaction_id, 0)?,
            fees,
            amount: amount(listed.amount)?,
            at: time(&listed.at)?,
        })
    }
}

impl TryFrom<v1::Settlement> for ProviderSettlement {
    type Error = Fault;

    fn try_from(settlement: v1::Settlement) -> Result<ProviderSettlement, Fault> {
        let currency = &settlement.amount.currency;
        Ok(ProviderSettlement {
            id: id(settlement.id, 1)?,
            status: match settlement.status {
                v1::SettlementStatus::Pending => SettlementStatus::Pending,
                v1::SettlementStatus::Paid => SettlementStatus::Paid,
                v1::SettlementStatus::Failed => SettlementStatus::Failed,
            },
            gross: minor(settlement.gross_minor, currency)?,
            fees: minor(settlement.fees_minor, currency)?,
            deductions: minor(settlement.deductions_minor, currency)?,
            amount: amount(settlement.amount)?,
            at: time(&settlement.at)?,
        })
    }
}

fn page<W, T: TryFrom<W, Error = Fault>>(
    items: Vec<W>,
    next: Option<String>,
) -> Result<(Vec<T>, Option<String>), Fault> {
    if items.len() > MAX_ITEMS {
        return Err(unexpected("a page may have at most 100 transactions or settlements"));
    }
    if next.as_ref().is_some_and(|next| next.len() > MAX_CURSOR_BYTES) {
        return Err(unexpected("a cursor may have at most 1,000 bytes"));
    }
    Ok((items.into_iter().map(T::try_from).collect::<Result<_, _>>()?, next))
}

pub fn transaction_page(
    result: Result<v1::TransactionPage, wit::Fault>,
) -> Result<TransactionPage, Fault> {
    let v1::TransactionPage { transactions, next } = result?;
    let (transactions, next) = page(transactions, next)?;
    Ok(TransactionPage { transactions, next })
}

pub fn settlement_page(
    result: Result<v1::SettlementPage, wit::Fault>,
) -> Result<SettlementPage, Fault> {
    let v1::SettlementPage { settlements, next } = result?;
    let (settlements, next) = page(settlements, next)?;
    Ok(SettlementPage { settlements, next })
}
