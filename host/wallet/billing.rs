//! What companies are charged for, once per key, and what of it they get back.

use serde_json::json;

use super::{Account, Cover, Moved, Movement, begin, enter, not_covered, post, store};
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
#[derive(Clone, Copy, Debug)]
pub struct Item<'i> {
    /// `otp.email`.
    pub name: &'i str,
    /// What it costs where no plan says.
    pub otherwise: Minor,
}

impl<'i> From<&'i str> for Item<'i> {
    fn from(name: &'i str) -> Item<'i> {
        Item { name, otherwise: Minor(0) }
    }
}

/// Charges `quantity` of an item by the company's plan, in the caller's transaction and once per key: the same key again moves
/// nothing, whatever it cost. 403 when the plan lacks the item's feature, 400 when the wallet does not cover the charge.
pub async fn charge<'i>(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    item: impl Into<Item<'i>>,
    quantity: i64,
    key: &str,
) -> Result<Moved> {
    let Item { name: item, otherwise } = item.into();
    let Some(feature) = plans::feature_of(item).filter(|_| quantity >= 0) else {
        return Err(Error::internal(format!("{quantity} of {item} cannot be charged")));
    };
    company.check_feature(feature)?;
    let price = plans::price(tx, &company.id, item).await?.unwrap_or(otherwise);
    // No balance covers what is beyond an amount.
    let amount = price.0.checked_mul(quantity).map(Minor).ok_or_else(not_covered)?;
    let movement = Movement {
        key: charge_key(key),
        kind: item.to_owned().into(),
        from: Account::Wallet,
        to: Account::Billing,
        money: Money { minor: amount, currency: BILLING_CURRENCY.to_owned() },
    };
    let Some(id) = begin(tx, app, &company.id, &movement).await? else {
        return Ok(Moved::Before);
    };
    if let Some(left) = enter(tx, &company.id, &id, &movement, Cover::Required).await? {
        tell_when_low(tx, app, company, left, amount).await?;
    }
    Ok(Moved::Now)
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
