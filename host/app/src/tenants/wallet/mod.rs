//! Wallets: one double-entry ledger per company. A ledger transaction is one row that moves money
//! between two ledger accounts, so it sums to zero, and has a unique key, so it is posted once.
//! Triggers add its amount to the balances of both accounts.

pub mod api;
mod billing;
mod fold;
pub mod statement;
mod store;

use std::borrow::Cow;

pub use self::{
    billing::{
        BillingItem, Fee, charge_ample_fees, charge_fee, charge_quoted, is_fee_charged, quote_fee,
        refund_fee,
    },
    fold::fold,
    store::list_posted,
};
use crate::state::prelude::*;
use tollhouse_platform::store::Error as StoreError;

/// Ledger accounts of a company. A positive balance of `Wallet` is available to the company.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerAccount {
    Wallet,
    /// Initialized, unsettled payments.
    Pending,
    /// Amounts that a provider holds for the service, or has deducted, on the company's behalf.
    Provider(String),
    /// Credits and debits by operators.
    Operator,
    /// Fees paid to the service.
    Billing,
    /// Verification charges of cards, until their refund.
    Verification,
    /// Money of charges that payers dispute.
    Disputed,
    /// Providers' fees and differences that the service bears.
    Fees,
    /// Money that settled no record, and differences from providers' listings, until an operator
    /// decides.
    Suspense,
}

impl LedgerAccount {
    fn name(&self) -> String {
        match self {
            LedgerAccount::Wallet => "wallet".to_owned(),
            LedgerAccount::Pending => "pending".to_owned(),
            LedgerAccount::Provider(name) => format!("provider:{name}"),
            LedgerAccount::Operator => "operator".to_owned(),
            LedgerAccount::Billing => "billing".to_owned(),
            LedgerAccount::Verification => "verification".to_owned(),
            LedgerAccount::Disputed => "disputed".to_owned(),
            LedgerAccount::Fees => "fees".to_owned(),
            LedgerAccount::Suspense => "suspense".to_owned(),
        }
    }

    /// Returns whether a ledger account can have this name.
    fn is_name(name: &str) -> bool {
        let provider = name.strip_prefix("provider:").is_some_and(|name| !name.is_empty());
        provider || NAMES.contains(&name)
    }
}

/// The names of the accounts, beside `provider:NAME`.
const NAMES: [&str; 8] =
    ["wallet", "pending", "billing", "operator", "verification", "disputed", "fees", "suspense"];

/// A ledger transaction: a transfer between two ledger accounts of one company.
#[derive(Clone, Debug)]
pub struct LedgerTransaction {
    /// Unique in the company's ledger: a repeated key is not posted again.
    pub key: String,
    pub kind: Cow<'static, str>,
    pub from: LedgerAccount,
    pub to: LedgerAccount,
    pub money: Money,
}

/// Overdraft policy, recorded with the ledger transaction. The schema rejects an overdraft of the
/// wallet without a ledger transaction that allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdraft {
    /// The wallet must cover the amount.
    Forbidden,
    /// The wallet may become negative: the money has already moved, or an operator forces it.
    Allowed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOutcome {
    Posted,
    Duplicate,
}

/// Posts a ledger transaction: the schema adds its amount to the balances. A zero amount only
/// reserves the key. 400 if the wallet does not cover it or a balance would be out of range: after
/// that error, no other statement can follow in `tx`.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    transaction: &LedgerTransaction,
    overdraft: Overdraft,
) -> Result<PostOutcome> {
    let now = app.clock.now();
    let id = app.random.id(now);
    match store::insert_transaction(tx, company_id, &id, transaction, overdraft, now).await {
        Ok(true) => Ok(PostOutcome::Posted),
        Ok(false) => Ok(PostOutcome::Duplicate),
        Err(error) => Err(to_client_error(error)),
    }
}

fn to_client_error(error: StoreError) -> Error {
    match store::rejection(&error) {
        Some(store::Rejection::NotCovered) => Error::InsufficientBalance,
        Some(store::Rejection::OutOfRange) => {
            Error::invalid("the amount field must be lower: the balance would be too large")
        }
        None => error.into(),
    }
}

/// Defers a ledger transaction to the commit. It must not debit the wallet. The commit fails as a
/// duplicate if the key is in use.
pub async fn post_new(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    transaction: &LedgerTransaction,
) -> Result<()> {
    let now = app.clock.now();
    let id = app.random.id(now);
    store::insert_new(tx, company_id, &id, transaction, now).await.map_err(to_client_error)
}

/// Like [`post_new`], without effect if the key is in use.
pub async fn post_once(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    transaction: &LedgerTransaction,
) -> Result<()> {
    let now = app.clock.now();
    let id = app.random.id(now);
    store::insert_once(tx, company_id, &id, transaction, now).await.map_err(to_client_error)
}

/// Defers a debit of the wallet to the commit. The commit fails as a duplicate if the key is in
/// use, and as [`Error::is_not_one_row`] unless the balance, without recent credits, is at least
/// `needed`.
async fn post_covered(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    transaction: &LedgerTransaction,
    needed: Minor,
) -> Result<()> {
    let now = app.clock.now();
    let id = app.random.id(now);
    let posted = store::insert_covered(tx, company_id, &id, transaction, needed, now).await;
    posted.map_err(to_client_error)
}

fn is_zero(amount: &Minor) -> bool {
    *amount == Minor(0)
}

/// Balances of a company in one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Balance {
    /// Available balance. Reversals, disputes and forced refunds can make it negative.
    pub balance: Minor,
    /// Sum of initialized, unsettled payments.
    pub pending: Minor,
    /// Money of disputed payments, held until the disputes end. Absent if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub disputed: Minor,
    /// What the company owes the service: the amount by which `balance` is below zero. Absent if it
    /// owes nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub owed: Minor,
}
