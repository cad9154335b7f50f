//! Wallets: a double-entry ledger. Every company has a book of its own; each movement goes from one account of it to another,
//! so every transaction sums to zero, and each has a key, so none happens twice.

pub mod api;
mod billing;
mod store;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::billing::{Item, charge, check, give_back, was_charged};
use crate::{
    app::App,
    error::{Error, Result},
    money::{Minor, Money},
    store::Tx,
};

/// The accounts of a book. A positive balance of `Wallet` is what the company may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    Wallet,
    /// Payments that were begun and not settled yet.
    Pending,
    /// What a provider holds for, or has taken from, the service on the company's behalf.
    Provider(String),
    /// What operators put in and took out.
    Operator,
    /// What the service was paid for what it does.
    Billing,
}

impl Account {
    fn name(&self) -> String {
        match self {
            Account::Wallet => "wallet".to_owned(),
            Account::Pending => "pending".to_owned(),
            Account::Provider(name) => format!("provider:{name}"),
            Account::Operator => "operator".to_owned(),
            Account::Billing => "billing".to_owned(),
        }
    }

    /// Whether an account can have this name.
    fn is_name(name: &str) -> bool {
        let provider = name.strip_prefix("provider:").is_some_and(|name| !name.is_empty());
        provider || ["wallet", "pending", "operator", "billing"].contains(&name)
    }
}

/// Money that goes from one account of a company's book to another.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Unique in the book: a movement whose key was used before has happened.
    pub key: String,
    pub kind: Cow<'static, str>,
    pub from: Account,
    pub to: Account,
    pub money: Money,
}

/// Whether a movement may take the wallet below zero. The ledger transaction records it, and the schema
/// refuses an overdraft that no ledger transaction allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The wallet must cover it.
    Required,
    /// It has happened, or an operator insists.
    Waived,
}

/// What became of a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    Now,
    Before,
}

/// Posts a movement in the caller's transaction. 400 when the wallet does not cover it, or a balance would grow out of bounds.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    company_id: &str,
    movement: &Movement,
    cover: Cover,
) -> Result<Moved> {
    let begun = begin(tx, app, company_id, movement, cover).await?;
    let Some(id) = begun else { return Ok(Moved::Before) };
    enter(tx, company_id, &id, movement, cover).await?;
    Ok(Moved::Now)
}

/// The id of a new ledger transaction; `None` when the movement's key was used before.
async fn begin(
    tx: &mut Tx,
    app: &App,
    company_id: &str,
    movement: &Movement,
    cover: Cover,
) -> Result<Option<String>> {
    let now = app.clock.now();
    let id = app.random.id(now);
    let is_new = store::begin(tx, company_id, &id, movement, cover, now).await?;
    Ok(is_new.then_some(id))
}

/// Moves the money; answers what is left where it came from. Of nothing no entry is made: the transaction keeps the key alone.
async fn enter(
    tx: &mut Tx,
    company_id: &str,
    id: &str,
    movement: &Movement,
    cover: Cover,
) -> Result<Option<Minor>> {
    let Money { minor, currency } = &movement.money;
    if *minor == Minor(0) {
        return Ok(None);
    }
    let mut legs = [(1, &movement.from, Minor(-minor.0)), (2, &movement.to, *minor)];
    // Balances are locked in one order, so that two movements never wait for each other.
    legs.sort_by_key(|(_, account, _)| account.name());
    let mut left = None;
    for (line, account, amount) in legs {
        let name = account.name();
        store::enter(tx, company_id, id, line, &name, currency, amount).await?;
        let must_cover =
            cover == Cover::Required && *account == Account::Wallet && amount < Minor(0);
        let floor = if must_cover { Minor(0) } else { store::LEAST };
        let balance = store::add(tx, company_id, id, &name, currency, amount, floor).await?;
        let balance = balance.ok_or_else(|| match must_cover {
            true => Error::NotCovered,
            false => Error::invalid("the amount field must be less: no balance can hold the sum"),
        })?;
        if account == &movement.from {
            left = Some(balance);
        }
    }
    Ok(left)
}

/// A company's money in one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Balance {
    /// What it may use.
    pub balance: Minor,
    /// What payments that were begun may bring.
    pub pending: Minor,
}
