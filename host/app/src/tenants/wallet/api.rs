//! Operator API for wallets.

use std::collections::BTreeMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    Balance, LedgerAccount, LedgerTransaction, Overdraft, PostOutcome, post,
    store::{self, Filter, LedgerEntry},
};
use crate::{operations::audit, state::App, tenants::companies};
use tollhouse_http::{
    request::{
        body::Body,
        fields::{Amount, Text, Visible, fields},
        path::Path,
        query::{Days, Exactly, Pages, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::{Error, Result},
    values::{
        id::CompanyId,
        listing::ListPage,
        money::{BILLING_CURRENCY, Currency, Minor, Money},
    },
};

/// Balances of a company.
#[derive(Serialize, JsonSchema)]
pub struct Wallet {
    /// Available balance in the billing currency.
    balance: Minor,
    /// Sum of initialized, unsettled payments on service accounts, in the billing currency.
    pending: Minor,
    currency: &'static str,
    /// Balances by currency.
    balances: BTreeMap<Currency, Balance>,
}

pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Wallet>> {
    let mut balances = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::balances(tx, &company).await?)
        })
        .await?;
    let billing = *balances.entry(BILLING_CURRENCY.into()).or_default();
    let wallet = Wallet {
        balance: billing.balance,
        pending: billing.pending,
        currency: BILLING_CURRENCY,
        balances,
    };
    DataResponse::data(wallet, "Wallet fetched successfully")
}

pub async fn credit(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let ordered = read(&body)?;
    let (from, to) = (LedgerAccount::Operator, LedgerAccount::Wallet);
    post_transfer(app, company, "operator.credit", ordered, from, to).await
}

pub async fn debit(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let ordered = read(&body)?;
    let (from, to) = (LedgerAccount::Wallet, LedgerAccount::Operator);
    post_transfer(app, company, "operator.debit", ordered, from, to).await
}

fields! {
    /// A credit or debit by an operator.
    Body Transfer {
        amount: Amount,
        /// Currency code of three capital letters; default: the billing currency.
        #[schemars(extend("pattern" = "^[A-Z]{3}$", "examples" = ["NGN"]))]
        currency: Option<Text<3>>,
        /// Client-chosen key: a transfer is posted once per key.
        key: Visible<100>,
    }
}

/// A posted transfer.
#[derive(Serialize, JsonSchema)]
pub struct Transferred {
    key: String,
    amount: Minor,
    currency: Currency,
    /// Balance of the wallet in this currency.
    balance: Minor,
}

fn read(body: &Body<Transfer>) -> Result<(Money, String)> {
    let minor = body.amount()?;
    let currency = body.currency()?.unwrap_or_else(|| BILLING_CURRENCY.to_owned());
    if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err(body.must_be("currency", "a currency code of three capital letters"));
    }
    Ok((Money { minor, currency: currency.into() }, body.key()?))
}

/// Posts a transfer. A repeated key returns the current balance; with another amount, currency or
/// direction it is rejected with 409.
async fn post_transfer(
    app: App,
    company: CompanyId,
    kind: &'static str,
    (money, key): (Money, String),
    from: LedgerAccount,
    to: LedgerAccount,
) -> Result<DataResponse<Transferred>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        companies::get(tx, &company).await?;
        let movement = LedgerTransaction {
            key: format!("operator:{key}"),
            kind: kind.into(),
            from,
            to,
            money,
        };
        if post(tx, &app, &company, &movement, Overdraft::Forbidden).await?
            == PostOutcome::Duplicate
        {
            let before = store::find_posted(tx, &company, &movement.key).await?;
            let Money { minor, currency } = &movement.money;
            if before != Some((kind.to_owned(), currency.clone(), *minor)) {
                let message = "the key was already used for another transaction";
                return Err(Error::Conflict(message.to_owned()));
            }
        } else {
            let Money { minor, currency } = &movement.money;
            let detail = json!({ "key": movement.key, "amount": minor, "currency": currency });
            audit::record(tx, &app, &company, kind, detail).await?;
        }
        let balances = store::balances(tx, &company).await?;
        let balance = balances.get(&movement.money.currency).copied().unwrap_or_default();
        let transferred = Transferred {
            key,
            amount: movement.money.minor,
            currency: movement.money.currency,
            balance: balance.balance,
        };
        DataResponse::data(transferred, "Wallet updated successfully")
    })
    .await
}

fields! {
    /// Filter of ledger entries.
    Query EntryFilter {
        /// Ledger account: `wallet`, `pending`, `billing`, `operator` or `provider:NAME`.
        account: Exactly,
        /// One day in UTC, or the first and last day of a range.
        created_at: Days,
    }
}

fn read_filter(query: &Query<EntryFilter>) -> Result<Filter> {
    let account = query.account()?;
    if account.as_deref().is_some_and(|name| !LedgerAccount::is_name(name)) {
        let message =
            "the account field must be wallet, pending, billing, operator or provider:NAME";
        return Err(Error::invalid(message));
    }
    Ok(Filter { account, created: query.created_at()? })
}

pub async fn entries(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    pages: Query<Pages>,
    query: Query<EntryFilter>,
) -> Result<DataResponse<ListPage<LedgerEntry>>> {
    let (page, filter) = (pages.read()?, read_filter(&query)?);
    let (total, entries) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list_entries(tx, &company, &filter, page).await?)
        })
        .await?;
    DataResponse::data(page.to_list_page(total, entries), "Wallet entries fetched successfully")
}
