//! Crediting and debiting a wallet.

use crate::{
    operations::audit,
    state::prelude::*,
    tenants::{
        companies,
        wallet::{LedgerAccount, LedgerTransaction, Overdraft, PostOutcome, post, store},
    },
};
use tollhouse_platform::values::{
    id::CompanyId,
    money::{BILLING_CURRENCY, Currency, Minor, Money},
};

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
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let order = body.read()?;
    let (from, to) = (LedgerAccount::Operator, LedgerAccount::Wallet);
    post_transfer(app, company, "operator.credit", order, from, to).await
}

pub async fn debit(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<Transfer>,
) -> Result<DataResponse<Transferred>> {
    let order = body.read()?;
    let (from, to) = (LedgerAccount::Wallet, LedgerAccount::Operator);
    post_transfer(app, company, "operator.debit", order, from, to).await
}

/// Posts a transfer. A repeated key returns the current balance; with another amount, currency or
/// direction it is rejected with 409.
async fn post_transfer(
    app: App,
    company: CompanyId,
    kind: &'static str,
    order: Transfer,
    from: LedgerAccount,
    to: LedgerAccount,
) -> Result<DataResponse<Transferred>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        companies::get(tx, &company).await?;
        let movement = LedgerTransaction {
            key: format!("operator:{}", order.key),
            kind: kind.into(),
            from,
            to,
            money: Money { minor: order.amount, currency: order.currency.clone() },
        };
        if post(tx, &app, &company, &movement, Overdraft::Forbidden).await?
            == PostOutcome::Duplicate
        {
            let before = store::find_posted(tx, &company, &movement.key).await?;
            if before != Some((kind.to_owned(), order.currency.clone(), order.amount)) {
                let message = "the key was already used for another transaction";
                return Err(Error::Conflict(message.to_owned()));
            }
        } else {
            let Transfer { amount, currency, .. } = &order;
            let detail = json!({ "key": movement.key, "amount": amount, "currency": currency });
            audit::record(tx, &app, &company, kind, detail).await?;
        }
        let balances = store::balances(tx, &company).await?;
        let balance = balances.get(&movement.money.currency).copied().unwrap_or_default();
        let Money { minor: amount, currency } = movement.money;
        let transferred =
            Transferred { key: order.key, amount, currency, balance: balance.balance };
        DataResponse::data(transferred, "Wallet updated successfully")
    })
    .await
}
