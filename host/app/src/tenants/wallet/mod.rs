//! Wallets: one double-entry ledger per company. A ledger transaction moves money between two
//! ledger accounts, so its entries sum to zero, and has a unique key, so it is posted once.

pub mod api;
mod billing;
mod store;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::billing::{BillingItem, charge_fee, check_fee, is_fee_charged, refund_fee};
use crate::state::App;
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
    values::{
        id::CompanyId,
        money::{Minor, Money},
    },
};

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
}

impl LedgerAccount {
    fn name(&self) -> String {
        match self {
            LedgerAccount::Wallet => "wallet".to_owned(),
            LedgerAccount::Pending => "pending".to_owned(),
            LedgerAccount::Provider(name) => format!("provider:{name}"),
            LedgerAccount::Operator => "operator".to_owned(),
            LedgerAccount::Billing => "billing".to_owned(),
        }
    }

    /// Returns whether a ledger account can have this name.
    fn is_name(name: &str) -> bool {
        let provider = name.strip_prefix("provider:").is_some_and(|name| !name.is_empty());
        provider || ["wallet", "pending", "operator", "billing"].contains(&name)
    }
}

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

/// Outcome of posting a ledger transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOutcome {
    Posted,
    Duplicate,
}

/// Posts a ledger transaction. 400 if the wallet does not cover it or a balance would overflow.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    movement: &LedgerTransaction,
    cover: Overdraft,
) -> Result<PostOutcome> {
    let begun = insert_transaction(tx, app, company_id, movement, cover).await?;
    let Some(id) = begun else { return Ok(PostOutcome::Duplicate) };
    post_entries(tx, company_id, &id, movement, cover).await?;
    Ok(PostOutcome::Posted)
}

/// Returns the id of the new ledger transaction; `None` if its key is already in use.
async fn insert_transaction(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    movement: &LedgerTransaction,
    cover: Overdraft,
) -> Result<Option<String>> {
    let now = app.clock.now();
    let id = app.random.id(now);
    let is_new = store::insert_transaction(tx, company_id, &id, movement, cover, now).await?;
    Ok(is_new.then_some(id))
}

/// Posts the entries and returns the new balance of the source account. A zero amount has no
/// entries and returns `None`: the ledger transaction only reserves the key.
async fn post_entries(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    movement: &LedgerTransaction,
    cover: Overdraft,
) -> Result<Option<Minor>> {
    let Money { minor, currency } = &movement.money;
    if *minor == Minor(0) {
        return Ok(None);
    }
    let mut legs = [(1, &movement.from, Minor(-minor.0)), (2, &movement.to, *minor)];
    // Lock balances in one order to prevent deadlocks.
    legs.sort_by_key(|(_, account, _)| account.name());
    let mut left = None;
    for (line, account, amount) in legs {
        let name = account.name();
        store::insert_entry(tx, company_id, id, line, &name, currency, amount).await?;
        let must_cover =
            cover == Overdraft::Forbidden && *account == LedgerAccount::Wallet && amount < Minor(0);
        let floor = if must_cover { Minor(0) } else { store::MIN_BALANCE };
        let balance =
            store::add_to_balance(tx, company_id, id, &name, currency, amount, floor).await?;
        let balance = balance.ok_or_else(|| match must_cover {
            true => Error::InsufficientBalance,
            false => {
                Error::invalid("the amount field must be lower: the balance would be too large")
            }
        })?;
        if account == &movement.from {
            left = Some(balance);
        }
    }
    Ok(left)
}

/// Balances of a company in one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Balance {
    /// Available balance.
    pub balance: Minor,
    /// Sum of initialized, unsettled payments.
    pub pending: Minor,
}
