//! What companies are charged for, once per key, and what of it they get back.

use std::borrow::Cow;

use serde_json::json;

use super::{Account, Cover, Moved, Movement, begin, enter, post, store};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    money::{BILLING_CURRENCY, Minor, Money},
    operator_events::{self, LOW_BALANCE},
    plans,
    store::Tx,
};

/// What is charged for.
#[derive(Clone, Debug)]
pub struct Item {
    /// `otp.email`.
    pub name: Cow<'static, str>,
    /// What it costs where no plan says.
    pub otherwise: Minor,
}

impl From<&'static str> for Item {
    fn from(name: &'static str) -> Item {
        Item { name: name.into(), otherwise: Minor(0) }
    }
}

/// Charges `quantity` of an item by the company's plan, in the caller's transaction and once per key: the same key again moves
/// nothing, whatever it cost. 403 when the plan lacks the item's feature, 400 when the wallet does not cover the charge.
pub async fn charge(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    item: impl Into<Item>,
    quantity: i64,
    key: &str,
) -> Result<Moved> {
    let item = item.into();
    let amount = cost(tx, company, &item, quantity).await?;
    let movement = Movement {
        key: charge_key(key),
        kind: item.name,
        from: Account::Wallet,
        to: Account::Billing,
        money: Money { minor: amount, currency: BILLING_CURRENCY.to_owned() },
    };
    let begun = begin(tx, app, &company.id, &movement, Cover::Required).await?;
    let Some(id) = begun else { return Ok(Moved::Before) };
    if let Some(left) = enter(tx, &company.id, &id, &movement, Cover::Required).await? {
        tell_when_low(tx, app, company, left, amount).await?;
    }
    Ok(Moved::Now)
}

/// Whether a charge would be made now: 403 and 400 as for the charge. Nothing is reserved.
pub async fn check(
    tx: &mut Tx,
    company: &Company,
    item: impl Into<Item>,
    quantity: i64,
) -> Result<()> {
    let amount = cost(tx, company, &item.into(), quantity).await?;
    let balances = store::balances(tx, &company.id).await?;
    let balance = balances.get(BILLING_CURRENCY).copied().unwrap_or_default().balance;
    if balance < amount { Err(Error::NotCovered) } else { Ok(()) }
}

async fn cost(tx: &mut Tx, company: &Company, item: &Item, quantity: i64) -> Result<Minor> {
    let Some(feature) = plans::feature_of(&item.name).filter(|_| quantity >= 0) else {
        return Err(Error::internal(format!("{quantity} of {} cannot be charged", item.name)));
    };
    company.check_feature(feature)?;
    let price = plans::price(tx, &company.id, &item.name).await?.unwrap_or(item.otherwise);
    // No balance covers what is beyond an amount.
    price.0.checked_mul(quantity).map(Minor).ok_or(Error::NotCovered)
}

/// Whether there is a charge under this key, given back or not.
pub async fn was_charged(tx: &mut Tx, company_id: &str, key: &str) -> Result<bool> {
    Ok(store::is_posted(tx, company_id, &charge_key(key)).await?)
}

/// Gives a charge back in full, in the caller's transaction and once. Nothing, if there was no charge under this key, or it cost
/// nothing.
pub async fn give_back(tx: &mut Tx, app: &App, company_id: &str, key: &str) -> Result<()> {
    let charged = store::posted(tx, company_id, &charge_key(key)).await?;
    let Some((item, currency, minor)) = charged else { return Ok(()) };
    let movement = Movement {
        key: format!("refund:{key}"),
        kind: format!("{item}.refund").into(),
        from: Account::Billing,
        to: Account::Wallet,
        money: Money { minor, currency },
    };
    post(tx, app, company_id, &movement, Cover::Required).await?;
    Ok(())
}

fn charge_key(key: &str) -> String {
    format!("charge:{key}")
}

/// `left` is what the wallet holds after `amount` was taken out of it.
async fn tell_when_low(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    left: Minor,
    amount: Minor,
) -> Result<()> {
    let threshold = company.low_balance.unwrap_or(app.settings.low_balance);
    if crosses(threshold, left, amount) {
        let data = json!({ "balance": left, "threshold": threshold, "currency": BILLING_CURRENCY });
        operator_events::tell(tx, app, &company.id, LOW_BALANCE, data).await?;
    }
    Ok(())
}

/// A threshold of 0 is none: nothing that is covered goes below it.
fn crosses(threshold: Minor, left: Minor, amount: Minor) -> bool {
    left < threshold && left.0.saturating_add(amount.0) >= threshold.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_crossed_from_at_or_above_it_to_below() {
        for (threshold, left, amount, expected) in [
            (100, 100, 50, false),
            (100, 99, 1, true),
            (100, 99, 50, true),
            (100, 0, 100, true),
            (100, 98, 1, false), // it was below before
            (100, 0, 99, false),
            (0, 0, 100, false),
        ] {
            let crossed = crosses(Minor(threshold), Minor(left), Minor(amount));
            assert_eq!(crossed, expected, "{threshold} {left} {amount}");
        }
    }
}
