//! Fees: charged once per key and refunded at most once.

use std::borrow::Cow;

use super::{
    LedgerAccount, LedgerTransaction, Overdraft, PostOutcome, post, post_covered, post_new, store,
};
use crate::{
    operations::operator_events::{self, LOW_BALANCE},
    tenants::plans,
    tenants::prelude::*,
};

/// A billing item.
#[derive(Clone, Debug)]
pub struct BillingItem {
    /// Name, for example `otp.email`.
    pub name: Cow<'static, str>,
    /// Price if no plan names the item.
    pub default_price: Minor,
}

impl From<&'static str> for BillingItem {
    fn from(name: &'static str) -> BillingItem {
        BillingItem { name: name.into(), default_price: Minor(0) }
    }
}

/// Charges the fee for `quantity` of an item by the company's plan, in the caller's transaction. A
/// repeated key posts nothing, even if the price has changed. 403 if the plan lacks the item's
/// feature; 400 if the balance is insufficient.
pub async fn charge_fee(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    item: impl Into<BillingItem>,
    quantity: i64,
    key: &str,
) -> Result<PostOutcome> {
    let fee = quote_fee(tx, company, item, quantity).await?;
    charge_quoted(tx, app, company, &fee, key).await
}

/// The fee for an item at its present price, and the available balance of its payer.
#[derive(Clone, Debug)]
pub struct Fee {
    item: BillingItem,
    amount: Minor,
    balance: Minor,
}

impl Fee {
    pub fn amount(&self) -> Minor {
        self.amount
    }

    /// Checks whether the quoted balance covers the fee.
    pub fn check_balance(&self) -> Result<()> {
        if self.balance < self.amount { Err(Error::InsufficientBalance) } else { Ok(()) }
    }

    fn transaction(&self, key: &str) -> LedgerTransaction {
        LedgerTransaction {
            key: fee_key(key),
            kind: self.item.name.clone(),
            from: LedgerAccount::Wallet,
            to: LedgerAccount::Billing,
            money: Money { minor: self.amount, currency: BILLING_CURRENCY.into() },
        }
    }
}

/// Returns the fee for `quantity` of an item. 403 if the plan lacks the item's feature.
pub async fn quote_fee(
    tx: &mut Tx,
    company: &Company,
    item: impl Into<BillingItem>,
    quantity: i64,
) -> Result<Fee> {
    let item = item.into();
    let Some(feature) = plans::feature_of(&item.name).filter(|_| quantity >= 0) else {
        return Err(Error::internal(format!("{quantity} of {} cannot be charged", item.name)));
    };
    company.check_feature(feature)?;
    let (price, balance) = store::price_and_balance(tx, &company.id, &item.name).await?;
    // An amount that overflows exceeds every balance.
    let amount = price.unwrap_or(item.default_price).0.checked_mul(quantity);
    let amount = amount.map(Minor).ok_or(Error::InsufficientBalance)?;
    Ok(Fee { item, amount, balance: balance.unwrap_or_default() })
}

/// Like [`charge_fee`], for a quoted fee. Locks the balance until the transaction ends.
pub async fn charge_quoted(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    fee: &Fee,
    key: &str,
) -> Result<PostOutcome> {
    let transaction = fee.transaction(key);
    let outcome = post(tx, app, &company.id, &transaction, Overdraft::Forbidden).await?;
    if outcome == PostOutcome::Posted && fee.amount > Minor(0) {
        report_low_balance(tx, app, company, fee.amount).await?;
    }
    Ok(outcome)
}

/// Defers fees under new keys to the commit, which fails if a key is in use, or if the fees might
/// take the balance below zero or the company's threshold: then charge each with
/// [`charge_quoted`]. Returns `false`, and defers nothing, if the quoted balance is too low.
pub async fn charge_ample_fees(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    fees: &[(Fee, String)],
) -> Result<bool> {
    let remaining = low_balance_threshold(app, company).0.max(0);
    let needed = fees.iter().fold(remaining, |sum, (fee, _)| sum.saturating_add(fee.amount.0));
    let needed = Minor(needed);
    if fees.iter().any(|(fee, _)| fee.amount > Minor(0) && fee.balance < needed) {
        return Ok(false);
    }
    for (fee, key) in fees {
        match fee.transaction(key) {
            free if fee.amount == Minor(0) => post_new(tx, app, &company.id, &free).await?,
            transaction => post_covered(tx, app, &company.id, &transaction, needed).await?,
        }
    }
    Ok(true)
}

/// Returns the balance below which an event is emitted; 0 if never.
fn low_balance_threshold(app: &App, company: &Company) -> Minor {
    company.low_balance.unwrap_or(app.settings.service.low_balance)
}

/// Emits an event if taking `amount`, which has been posted, took the balance below the company's
/// threshold. The lock on the balance orders concurrent fees.
async fn report_low_balance(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    amount: Minor,
) -> Result<()> {
    let threshold = low_balance_threshold(app, company);
    if threshold <= Minor(0) {
        return Ok(());
    }
    let left = available(tx, &company.id).await?;
    if crosses_threshold(threshold, left, amount) {
        let data = json!({ "balance": left, "threshold": threshold, "currency": BILLING_CURRENCY });
        operator_events::emit(tx, app, &company.id, LOW_BALANCE, data).await?;
    }
    Ok(())
}

/// Returns the available balance in the billing currency.
async fn available(tx: &mut Tx, company_id: &CompanyId) -> Result<Minor> {
    let balances = store::balances(tx, company_id).await?;
    Ok(balances.get(BILLING_CURRENCY).copied().unwrap_or_default().balance)
}

/// Returns whether a fee was charged under this key, refunded or not.
pub async fn is_fee_charged(tx: &mut Tx, company_id: &CompanyId, key: &str) -> Result<bool> {
    Ok(store::is_posted(tx, company_id, &fee_key(key)).await?)
}

/// Refunds a fee in full, once, in the caller's transaction. Does nothing if no fee was charged
/// under this key, or the fee was zero.
pub async fn refund_fee(tx: &mut Tx, app: &App, company_id: &CompanyId, key: &str) -> Result<()> {
    let charged = store::find_posted(tx, company_id, &fee_key(key)).await?;
    let Some((item, currency, minor)) = charged else { return Ok(()) };
    let transaction = LedgerTransaction {
        key: format!("refund:{key}"),
        kind: format!("{item}.refund").into(),
        from: LedgerAccount::Billing,
        to: LedgerAccount::Wallet,
        money: Money { minor, currency },
    };
    post(tx, app, company_id, &transaction, Overdraft::Forbidden).await?;
    Ok(())
}

fn fee_key(key: &str) -> String {
    format!("charge:{key}")
}

/// Returns whether taking `amount`, which leaves `left`, took the balance below the threshold. 0
/// disables the threshold.
fn crosses_threshold(threshold: Minor, left: Minor, amount: Minor) -> bool {
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
            let crossed = crosses_threshold(Minor(threshold), Minor(left), Minor(amount));
            assert_eq!(crossed, expected, "{threshold} {left} {amount}");
        }
    }
}
