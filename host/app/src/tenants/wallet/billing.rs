//! Fees: charged once per key and refunded at most once.

use std::borrow::Cow;

use serde_json::json;

use super::{Account, Cover, Moved, Movement, begin, enter, post, store};
use crate::{
    operations::operator_events::{self, LOW_BALANCE},
    state::App,
    tenants::{companies::Company, plans},
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
    values::money::{BILLING_CURRENCY, Minor, Money},
};

/// A billing item.
#[derive(Clone, Debug)]
pub struct Item {
    /// Name, for example `otp.email`.
    pub name: Cow<'static, str>,
    /// Price if no plan names the item.
    pub otherwise: Minor,
}

impl From<&'static str> for Item {
    fn from(name: &'static str) -> Item {
        Item { name: name.into(), otherwise: Minor(0) }
    }
}

/// Charges the fee for `quantity` of an item by the company's plan, in the caller's transaction. A
/// repeated key posts nothing, even if the price has changed. 403 if the plan lacks the item's
/// feature; 400 if the balance is insufficient.
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

/// Checks whether [`charge`] would succeed now, with the same errors. Reserves nothing.
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
    // An amount that overflows exceeds every balance.
    price.0.checked_mul(quantity).map(Minor).ok_or(Error::NotCovered)
}

/// Returns whether a fee was charged under this key, refunded or not.
pub async fn was_charged(tx: &mut Tx, company_id: &str, key: &str) -> Result<bool> {
    Ok(store::is_posted(tx, company_id, &charge_key(key)).await?)
}

/// Refunds a fee in full, once, in the caller's transaction. Does nothing if no fee was charged
/// under this key, or the fee was zero.
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

/// Emits an event if taking `amount` from the wallet, which leaves `left`, crossed the threshold.
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

/// Returns whether a fee took the balance below the threshold. 0 disables the threshold.
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
            (100, 98, 1, false), // already below
            (100, 0, 99, false),
            (0, 0, 100, false),
        ] {
            let crossed = crosses(Minor(threshold), Minor(left), Minor(amount));
            assert_eq!(crossed, expected, "{threshold} {left} {amount}");
        }
    }
}
