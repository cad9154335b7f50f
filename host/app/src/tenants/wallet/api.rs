//! Operator API for wallets.

use std::collections::BTreeMap;

use super::{
    Balance, LedgerAccount, LedgerTransaction, NAMES, Overdraft, PostOutcome, post,
    store::{self, LedgerEntry},
};
use crate::tenants::prelude::*;

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
    companies::find(&app, &company).await?;
    let mut balances = app.store.select(async |tx| store::balances(tx, &company).await).await?;
    let Balance { balance, pending, .. } = *balances.entry(BILLING_CURRENCY.into()).or_default();
    let wallet = Wallet { balance, pending, currency: BILLING_CURRENCY, balances };
    DataResponse::data(wallet, "Wallet fetched successfully")
}

fields! {
    /// Filter of ledger entries.
    Query EntryFilter {
        /// Ledger account: `wallet`, `pending`, `billing`, `operator`, `verification`, `disputed`,
        /// `fees`, `suspense` or `provider:NAME`.
        account: Exactly => match &account {
            Some(name) if !LedgerAccount::is_name(name) => {
                let names = NAMES.join(", ");
                Err(Error::invalid(format!("the account field must be {names} or provider:NAME")))
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
    companies::find(&app, &company).await?;
    let list = async |tx: &mut Tx| store::list_entries(tx, &company, &filter, page).await;
    let entries = app.store.read(list).await?;
    DataResponse::data(entries, "Wallet entries fetched successfully")
}

fields! {
    /// A credit or debit by an operator.
    Body Transfer(body) {
        amount: Amount,
        /// Currency code of three capital letters; default: the billing currency.
        #[schemars(extend("pattern" = "^[A-Z]{3}$", "examples" = ["NGN"]))]
        currency: Option<Text<3>> as Currency => check_currency(body, currency),
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

fn check_currency(body: &Fields, sent: Option<String>) -> Result<Currency> {
    let currency = sent.unwrap_or_else(|| BILLING_CURRENCY.to_owned());
    match currency.len() == 3 && currency.bytes().all(|b| b.is_ascii_uppercase()) {
        true => Ok(currency.into()),
        false => Err(body.must_be("currency", "a currency code of three capital letters")),
    }
}

pub async fn credit(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let accounts = [LedgerAccount::Operator, LedgerAccount::Wallet];
    transfer(app, actor, company, "operator.credit", accounts, body.read()?).await
}

pub async fn debit(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let accounts = [LedgerAccount::Wallet, LedgerAccount::Operator];
    transfer(app, actor, company, "operator.debit", accounts, body.read()?).await
}

/// Posts a transfer. A repeated key returns the current balance; with another amount, currency or
/// direction it is rejected with 409.
async fn transfer(
    app: App,
    actor: Actor,
    company: CompanyId,
    kind: &'static str,
    [from, to]: [LedgerAccount; 2],
    Transfer { amount, currency, key }: Transfer,
) -> Result<DataResponse<Transferred>> {
    if amount > app.settings.approvals.approval_amount {
        companies::find(&app, &company).await?;
        let detail = json!({ "key": key, "amount": amount, "currency": currency });
        approvals::require(&app, &actor, ApprovalSubject::Wallet, &company, kind, &detail).await?;
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        companies::get(tx, &company).await?;
        let money = Money { minor: amount, currency: currency.clone() };
        let ledger_key = format!("operator:{key}");
        let transaction = LedgerTransaction { key: ledger_key, kind: kind.into(), from, to, money };
        match post(tx, &app, &company, &transaction, Overdraft::Forbidden).await? {
            PostOutcome::Posted => {
                let detail =
                    json!({ "key": transaction.key, "amount": amount, "currency": currency });
                audit::record(tx, &app, &actor, &company, kind, detail).await?;
            }
            PostOutcome::Duplicate => {
                let before = store::find_posted(tx, &company, &transaction.key).await?;
                if before != Some((kind.to_owned(), currency.clone(), amount)) {
                    let message = "the key was already used for another transaction";
                    return Err(Error::Conflict(message.to_owned()));
                }
            }
        }
        let balances = store::balances(tx, &company).await?;
        let balance = balances.get(&currency).copied().unwrap_or_default().balance;
        let transferred = Transferred { key, amount, currency, balance };
        DataResponse::data(transferred, "Wallet updated successfully")
    })
    .await
}
