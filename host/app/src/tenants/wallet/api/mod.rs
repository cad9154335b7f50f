//! Operator API for wallets.

mod transfer;

use std::collections::BTreeMap;

pub use self::transfer::{credit, debit};
use super::{
    Balance, LedgerAccount,
    store::{self, LedgerEntry},
};
use crate::{state::prelude::*, tenants::companies};
use tollhouse_platform::values::{
    id::CompanyId,
    money::{BILLING_CURRENCY, Currency, Minor},
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

fields! {
    /// Filter of ledger entries.
    Query EntryFilter {
        /// Ledger account: `wallet`, `pending`, `billing`, `operator` or `provider:NAME`.
        account: Exactly => match &account {
            Some(name) if !LedgerAccount::is_name(name) => {
                let names = "wallet, pending, billing, operator or provider:NAME";
                Err(Error::invalid(format!("the account field must be {names}")))
            }
            _ => Ok(account),
        },
        /// One day in UTC, or the first and last day of a range.
        created_at: Days,
    }
}

pub async fn entries(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    pages: Query<Pages>,
    query: Query<EntryFilter>,
) -> Result<DataResponse<ListPage<LedgerEntry>>> {
    let (page, filter) = (PageRequest::from(pages.read()?), query.read()?);
    let (total, entries) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::list_entries(tx, &company, &filter, page).await?)
        })
        .await?;
    DataResponse::data(page.to_list_page(total, entries), "Wallet entries fetched successfully")
}
