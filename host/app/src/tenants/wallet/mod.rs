//! Wallets: one double-entry ledger per company. A ledger transaction moves money between two
//! ledger accounts, so its entries sum to zero, and has a unique key, so it is posted once.

pub mod api;
mod billing;
mod store;

use std::borrow::Cow;

pub use self::billing::{BillingItem, charge_fee, check_fee, is_fee_charged, refund_fee};
use crate::state::prelude::*;

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
    /// Money that providers took and that settled nothing, until an operator decides.
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
const NAMES: [&str; 6] = ["wallet", "pending", "operator", "billing", "verification", "suspense"];

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

/// Posts a ledger transaction. 400 if the wallet does not cover it or a balance would overflow.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    movement: &LedgerTransaction,
    cover: Overdraft,
) -> Result<PostOutcome> {
    let left = post_with_balance(tx, app, company_id, movement, cover).await?;
    Ok(if left.is_some() { PostOutcome::Posted } else { PostOutcome::Duplicate })
}

/// Like [`post`], but returns the new balance of the source account; `None` if the key is already
/// in use. A zero amount has no entries and returns 0: it only reserves the key.
async fn post_with_balance(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    movement: &LedgerTransaction,
    cover: Overdraft,
) -> Result<Option<Minor>> {
    let now = app.clock.now();
    let id = app.random.id(now);
    if !store::insert_transaction(tx, company_id, &id, movement, cover, now).await? {
        return Ok(None);
    }
    let Money { minor, currency } = &movement.money;
    let mut left = Minor(0);
    if *minor == Minor(0) {
        return Ok(Some(left));
    }
    let mut legs = [(1, &movement.from, Minor(-minor.0)), (2, &movement.to, *minor)];
    // Lock balances in one order to prevent deadlocks.
    legs.sort_by_key(|(_, account, _)| account.name());
    for (line, ledger_account, amount) in legs {
        let (account, transaction_id) = (ledger_account.name(), &*id);
        let entry = store::NewEntry { company_id, transaction_id, line, account, currency, amount };
        store::insert_entry(tx, &entry).await?;
        let must_cover = cover == Overdraft::Forbidden
            && *ledger_account == LedgerAccount::Wallet
            && amount < Minor(0);
        let floor = if must_cover { Minor(0) } else { store::MIN_BALANCE };
        let balance = store::add_to_balance(tx, &entry, floor).await?;
        let balance = balance.ok_or_else(|| match must_cover {
            true => Error::InsufficientBalance,
            false => {
                Error::invalid("the amount field must be lower: the balance would be too large")
            }
        })?;
        if ledger_account == &movement.from {
            left = balance;
        }
    }
    Ok(Some(left))
}

/// Balances of a company in one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Balance {
    /// Available balance.
    pub balance: Minor,
    /// Sum of initialized, unsettled payments.
    pub pending: Minor,
}
