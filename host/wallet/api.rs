//! Wallets, for operators.

use axum::extract::State;
use serde_json::json;

use super::{Account, Cover, Moved, Movement, post, store};
use crate::{
    app::App,
    audit, companies,
    error::{Error, Result},
    http::{answer::Answer, body::Fields, path::Path, query::Query},
    money::{BILLING_CURRENCY, Money},
};

pub async fn fetch(State(app): State<App>, Path(company): Path<String>) -> Result<Answer> {
    let mut balances = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::balances(tx, &company).await?)
        })
        .await?;
    let billing = *balances.entry(BILLING_CURRENCY.to_owned()).or_default();
    let data = json!({
        "balance": billing.balance,
        "pending": billing.pending,
        "currency": BILLING_CURRENCY,
        "balances": balances,
    });
    Answer::data(data, "Wallet fetched successfully")
}

pub async fn credit(
    State(app): State<App>,
    Path(company): Path<String>,
    body: Fields,
) -> Result<Answer> {
    let ordered = Ordered::read(&body)?;
    let (from, to) = (Account::Operator, Account::Wallet);
    move_by_hand(app, company, "operator.credit", ordered, from, to).await
}

pub async fn debit(
    State(app): State<App>,
    Path(company): Path<String>,
    body: Fields,
) -> Result<Answer> {
    let ordered = Ordered::read(&body)?;
    let (from, to) = (Account::Wallet, Account::Operator);
    move_by_hand(app, company, "operator.debit", ordered, from, to).await
}

/// `{amount, currency?, key}`.
struct Ordered {
    money: Money,
    key: String,
}

impl Ordered {
    fn read(body: &Fields) -> Result<Ordered> {
        let minor = body.amount("amount")?;
        let currency = body.text("currency", 3)?.unwrap_or_else(|| BILLING_CURRENCY.to_owned());
        if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(body.must_be("currency", "a currency code of three capital letters"));
        }
        let key = body.visible("key", 100)?.ok_or_else(|| body.required("key"))?;
        Ok(Ordered { money: Money { minor, currency }, key })
    }
}

/// The same key again changes nothing and answers the same; with another amount or direction it is a conflict.
async fn move_by_hand(
    app: App,
    company: String,
    kind: &'static str,
    ordered: Ordered,
    from: Account,
    to: Account,
) -> Result<Answer> {
    let db = app.store.clone();
    db.write(async move |tx| {
        companies::get(tx, &company).await?;
        let Ordered { money, key } = ordered;
        let movement = Movement { key: format!("operator:{key}"), kind, from, to, money };
        if post(tx, &app, &company, &movement, Cover::Required).await? == Moved::Before {
            let before = store::posted(tx, &company, &movement.key).await?;
            let same =
                before == (kind.to_owned(), movement.money.currency.clone(), movement.money.minor);
            if !same {
                let message = "the key was used before for another movement";
                return Err(Error::Conflict(message.to_owned()));
            }
        } else {
            let Money { minor, currency } = &movement.money;
            let detail = json!({ "key": movement.key, "amount": minor, "currency": currency });
            audit::record(tx, &app, &company, kind, detail).await?;
        }
        let balances = store::balances(tx, &company).await?;
        let currency = &movement.money.currency;
        let balance = balances.get(currency).copied().unwrap_or_default();
        let data = json!({
            "key": key,
            "amount": movement.money.minor,
            "currency": currency,
            "balance": balance.balance,
        });
        Answer::data(data, "Wallet updated successfully")
    })
    .await
}

pub async fn entries(
    State(app): State<App>,
    Path(company): Path<String>,
    query: Query,
) -> Result<Answer> {
    let page = query.page(50, 1_000)?;
    let (total, entries) = app
        .store
        .read(async |tx| -> Result<_> {
            companies::get(tx, &company).await?;
            Ok(store::entries(tx, &company, page).await?)
        })
        .await?;
    Answer::data(page.of(total, entries), "Wallet entries fetched successfully")
}
