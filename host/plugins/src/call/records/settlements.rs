//! Settlements: the charges, refunds and payouts that providers list.

use serde::Serialize;

use crate::Provider;
use tollhouse_platform::{
    clock::Timestamp,
    values::{
        listing::Period,
        money::{Minor, Money},
    },
};

/// The interface of settlements.
const SETTLEMENTS: &str = "settlements";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedKind {
    Payment,
    /// A refund that did not fail, or a reversal.
    Refund,
    /// The money of a dispute that the company lost.
    Dispute,
}

/// A transaction in a list of a provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedTransaction {
    pub kind: ListedKind,
    /// The provider's id of the payment, refund or dispute.
    pub id: String,
    /// The service reference of the payment; "" if it is not known.
    pub service_ref: String,
    /// The provider's id of the payment; "" if it is not known.
    pub transaction_id: String,
    /// The amount without fees that the payer paid on top.
    pub amount: Money,
    /// The fees that the company bears; `None` if they are not known.
    pub fees: Option<Minor>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Serialize)]
pub struct TransactionPage {
    pub transactions: Vec<ListedTransaction>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Which transactions to list.
#[derive(Clone, Debug)]
pub enum TransactionFilter {
    Period(Period),
    /// The payments of a settlement: the provider's id.
    Settlement(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettlementStatus {
    /// Not paid out yet.
    Pending,
    Paid,
    Failed,
}

/// A payout of a provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProviderSettlement {
    /// The provider's id.
    pub id: String,
    pub status: SettlementStatus,
    /// The amount paid out.
    pub amount: Money,
    /// The amounts of its payments.
    pub gross: Minor,
    /// The fees of its payments.
    pub fees: Minor,
    /// Refunds, disputes and other deductions, as the provider states them.
    pub deductions: Minor,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Serialize)]
pub struct SettlementPage {
    pub settlements: Vec<ProviderSettlement>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl Provider {
    #[must_use]
    pub fn has_settlements(&self) -> bool {
        self.exports(SETTLEMENTS)
    }
}
