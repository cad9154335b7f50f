//! The ledger transactions of charges at the service account. A company's own account has none.
//!
//! | Cause | From | To | Key |
//! |---|---|---|---|
//! | payment initialized | provider | pending | `payment:ID:pending` |
//! | provider replaced before a session | provider | former provider | `taken:C:moved` |
//! | payment ended | pending | provider | `payment:ID:settled` |
//! | success that settles its owner | provider | wallet; card: verification | `KIND:ID:success` |
//! | any other money taken | provider | suspense | `taken:C:suspense` |
//! | the same for a card | provider | verification | `taken:C:verification` |
//! | success after a mismatch | suspense | provider | `taken:C:returned` |
//! | surplus after a mismatch | provider | suspense | `taken:C:surplus` |
//! | exception resolved in the company's favor | suspense | wallet | `taken:C:credited` |
//! | refund requested | where the money is | provider | `KIND:ID:refund:R` |
//! | provider's fees on the refund | wallet or fees | provider | `KIND:ID:refund:R:fee` |
//! | refund refused, or retried | provider | where it was | `KIND:ID:refund:R:refused` |
//! | fees of that refund | provider | where they were | `KIND:ID:refund:R:fee_returned` |
//! | dispute opened | where the money is | disputed | `taken:C:dispute:D:N` |
//! | dispute lost | disputed | provider | the same |
//! | provider's fees on the dispute | wallet or fees | provider | the same |
//! | dispute won, or amount reduced | disputed | where it was | the same |
//! | reversal | where the money is | provider | `KIND:ID:reversed`; `taken:C:reversed` |
//! | provider's fees on the reversal | wallet or fees | provider | `taken:C:reversed:fee` |
//!
//! ID is the owner's id, so that only one charge settles it. C, R and D are the ids of the charge,
//! the refund and the dispute. N is the number of a dispute's ledger transaction, from 1. Amounts
//! are net of the provider's fees.

use super::{Charge, ChargeId, OwnerKind, Refund, fees, store};
use crate::{money::prelude::*, state::config::FeeBearer};
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

/// The ledger account that holds the money of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FundsAccount {
    Wallet,
    /// Verification charges of cards, which are always refunded.
    Verification,
    /// Money that settled nothing, until an operator decides.
    Suspense,
}

text_columns!(FundsAccount);

impl FundsAccount {
    fn account(self) -> Ledger {
        match self {
            FundsAccount::Wallet => Ledger::Wallet,
            FundsAccount::Verification => Ledger::Verification,
            FundsAccount::Suspense => Ledger::Suspense,
        }
    }
}

impl Charge {
    fn provider_account(&self) -> Ledger {
        Ledger::Provider(self.provider.clone())
    }

    /// The key of a ledger transaction that is unique per owner.
    fn owner_key(&self, key: &str) -> String {
        format!("{}:{}:{key}", self.owner_kind.name(), self.owner_id)
    }

    /// Returns whether an operator must decide about its money.
    pub fn is_in_suspense(&self) -> bool {
        self.credited > Minor(0) && self.credited_to == FundsAccount::Suspense
    }

    fn own_key(&self, key: &str) -> String {
        format!("taken:{}:{key}", self.id)
    }
}

fn compose(
    charge: &Charge,
    (key, kind): (String, &str),
    [from, to]: [Ledger; 2],
    minor: Minor,
) -> LedgerTransaction {
    let currency = charge.taken_currency.as_ref().unwrap_or(&charge.currency).clone();
    let kind = format!("{}.{kind}", charge.owner_kind.name()).into();
    LedgerTransaction { key, kind, from, to, money: Money { minor, currency } }
}

/// Posts a ledger transaction of a charge. Returns `false` if the charge has no ledger, or if the
/// key was posted before.
async fn post(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    names: (String, &str),
    accounts: [Ledger; 2],
    minor: Minor,
    overdraft: Overdraft,
) -> Result<bool> {
    if !charge.in_books {
        return Ok(false);
    }
    let transaction = compose(charge, names, accounts, minor);
    let posted = wallet::post(tx, app, &charge.company_id, &transaction, overdraft).await?;
    Ok(posted == PostOutcome::Posted)
}

/// Adds an initialized payment to the pending balance.
pub async fn begin_pending(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    if !charge.in_books {
        return Ok(());
    }
    let names = (charge.owner_key("pending"), "pending");
    let accounts = [charge.provider_account(), Ledger::Pending];
    let transaction = compose(charge, names, accounts, charge.amount);
    wallet::post_new(tx, app, &charge.company_id, &transaction).await
}

/// Removes a payment that ended from the pending balance. No effect for other owners.
pub async fn end_pending(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    if charge.owner_kind != OwnerKind::Payment || !charge.in_books {
        return Ok(());
    }
    let requested = Charge { taken_currency: None, ..charge.clone() };
    let names = (charge.owner_key("settled"), "settled");
    let accounts = [Ledger::Pending, charge.provider_account()];
    let transaction = compose(&requested, names, accounts, charge.amount);
    wallet::post_once(tx, app, &charge.company_id, &transaction).await
}

/// Moves the pending balance of a payment to the account of another charge. Other owners have none.
pub async fn move_pending(tx: &mut Tx, app: &App, from: &Charge, to: &Charge) -> Result<()> {
    if to.owner_kind != OwnerKind::Payment {
        return Ok(());
    }
    let accounts = match (from.in_books, to.in_books) {
        (true, true) => [to.provider_account(), from.provider_account()],
        (true, false) => [Ledger::Pending, from.provider_account()],
        (false, true) => [to.provider_account(), Ledger::Pending],
        (false, false) => return Ok(()),
    };
    let names = (format!("taken:{}:moved", to.id), "moved");
    let transaction = compose(to, names, accounts, to.amount);
    wallet::post_new(tx, app, &to.company_id, &transaction).await
}

/// Posts the amount taken: to the owner that it settles, or to suspense. `before`: the charge
/// before this success. An earlier amount, perhaps in another currency, may be in suspense.
pub async fn post_taken(
    tx: &mut Tx,
    app: &App,
    before: &Charge,
    charge: &mut Charge,
    seen: &ProviderPayment,
) -> Result<()> {
    let allowed = Overdraft::Allowed;
    let was_posted = before.credited > Minor(0);
    if was_posted {
        let accounts = [before.credited_to.account(), before.provider_account()];
        let names = (before.own_key("returned"), "returned");
        post(tx, app, before, names, accounts, before.credited, allowed).await?;
        charge.credited = Minor(0);
    }
    let (holder, names) = match (charge.owner_kind, charge.counts) {
        (OwnerKind::Card, true) => {
            (FundsAccount::Verification, (charge.owner_key("success"), "success"))
        }
        (_, true) => (FundsAccount::Wallet, (charge.owner_key("success"), "success")),
        (OwnerKind::Card, false) => {
            (FundsAccount::Verification, (charge.own_key("verification"), "verification"))
        }
        (_, false) => {
            let key = if was_posted { "surplus" } else { "suspense" };
            (FundsAccount::Suspense, (charge.own_key(key), "suspense"))
        }
    };
    let net = Minor((charge.taken.unwrap_or_default().0 - fees(seen).0).max(0));
    let accounts = [charge.provider_account(), holder.account()];
    if post(tx, app, charge, names, accounts, net, allowed).await? {
        (charge.credited, charge.credited_to) = (net, holder);
    }
    Ok(())
}

/// Returns the provider's fees on a charge that no refund or dispute has booked.
pub async fn unbooked_fees(tx: &mut Tx, charge: &Charge) -> Result<Minor> {
    let Some(taken) = charge.taken.filter(|_| charge.in_books) else { return Ok(Minor(0)) };
    let returned = store::sum_of_returns(tx, charge).await?;
    let most = charge.fees.unwrap_or(taken);
    Ok(Minor((taken.0 - charge.credited.0 - returned.0).clamp(0, most.0.max(0))))
}

/// Returns who pays the provider's fees when a charge is returned to its payer.
pub fn fee_bearer(app: &App, charge: &Charge) -> FeeBearer {
    match charge.credited_to {
        FundsAccount::Wallet => app.settings.service.refund_fees,
        FundsAccount::Verification | FundsAccount::Suspense => FeeBearer::Service,
    }
}

/// Debits the net amount of a reversed charge, and the fees from their bearer.
pub async fn reverse(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    let names = match charge.counts {
        true => (charge.owner_key("reversed"), "refund"),
        false => (charge.own_key("reversed"), "reversed"),
    };
    let fees = unbooked_fees(tx, charge).await?;
    let accounts = [charge.credited_to.account(), charge.provider_account()];
    let credited = std::mem::take(&mut charge.credited);
    post(tx, app, charge, names, accounts, credited, Overdraft::Allowed).await?;
    if fees > Minor(0) {
        let names = (charge.own_key("reversed:fee"), "reversed.fee");
        let accounts = [account_of(fee_bearer(app, charge)), charge.provider_account()];
        post(tx, app, charge, names, accounts, fees, Overdraft::Allowed).await?;
    }
    Ok(())
}

/// Credits money in suspense to the company.
pub async fn credit(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    let names = (charge.own_key("credited"), "credited");
    let accounts = [Ledger::Suspense, Ledger::Wallet];
    post(tx, app, charge, names, accounts, charge.credited, Overdraft::Allowed).await?;
    charge.credited_to = FundsAccount::Wallet;
    charge.updated_at = app.clock.now();
    Ok(store::update(tx, charge).await?)
}

/// Returns the part of `credited` that a refund of `amount` debits, and the provider's fees on the
/// refund. `left` is the amount that can be refunded. The last refund debits what the others left.
pub fn shares(credited: Minor, amount: Minor, left: Minor) -> (Minor, Minor) {
    let share = i128::from(credited.0) * i128::from(amount.0) / i128::from(left.0.max(1));
    let share = i64::try_from(share).map_or(amount, |share| Minor(share.min(amount.0)));
    let held = if amount == left { credited } else { share };
    (held, Minor((amount.0 - held.0).max(0)))
}

/// Debits a refund from the account that holds the money, and the fees from their bearer.
pub async fn hold(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    refund: &Refund,
    overdraft: Overdraft,
) -> Result<()> {
    charge.credited.0 -= refund.held.0;
    if refund.held > Minor(0) {
        let names = (charge.owner_key(&format!("refund:{}", refund.id)), "refund");
        let accounts = [charge.credited_to.account(), charge.provider_account()];
        post(tx, app, charge, names, accounts, refund.held, overdraft).await?;
    }
    if refund.fee > Minor(0) {
        let names = (charge.owner_key(&format!("refund:{}:fee", refund.id)), "refund.fee");
        let accounts = [account_of(refund.fee_bearer), charge.provider_account()];
        post(tx, app, charge, names, accounts, refund.fee, overdraft).await?;
    }
    Ok(())
}

/// Credits back the money and the fees of a refund that was refused, or that a retry replaces.
pub async fn release(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    refund: &mut Refund,
) -> Result<()> {
    let (held, fee) = (std::mem::take(&mut refund.held), std::mem::take(&mut refund.fee));
    if held > Minor(0) {
        let names = (charge.owner_key(&format!("refund:{}:refused", refund.id)), "refund.refused");
        let accounts = [charge.provider_account(), charge.credited_to.account()];
        post(tx, app, charge, names, accounts, held, Overdraft::Allowed).await?;
    }
    if fee > Minor(0) {
        let key = charge.owner_key(&format!("refund:{}:fee_returned", refund.id));
        let accounts = [charge.provider_account(), account_of(refund.fee_bearer)];
        let names = (key, "refund.fee_returned");
        post(tx, app, charge, names, accounts, fee, Overdraft::Allowed).await?;
    }
    charge.credited.0 += held.0;
    Ok(())
}

fn account_of(bearer: FeeBearer) -> Ledger {
    match bearer {
        FeeBearer::Service => Ledger::Fees,
        FeeBearer::Company => Ledger::Wallet,
    }
}

/// A ledger transaction of disputed money.
#[derive(Clone, Copy, Debug)]
pub enum DisputedMoney {
    /// From the account that holds the money of the charge.
    Held,
    /// To the provider, for the payer.
    Lost,
    /// From the bearer of the provider's fees to the provider, for the payer.
    Fee,
    /// Back to the account that held it.
    Released,
}

/// Returns the key of the `n`th ledger transaction of a dispute.
pub fn dispute_key(charge_id: &ChargeId, dispute_id: &str, n: i64) -> String {
    format!("taken:{charge_id}:dispute:{dispute_id}:{n}")
}

/// Posts a ledger transaction of a dispute. The wallet may become negative: the provider has
/// deducted the money. The caller writes the charge.
pub async fn post_disputed(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    key: String,
    what: DisputedMoney,
    minor: Minor,
) -> Result<()> {
    let holder = charge.credited_to.account();
    let (kind, accounts) = match what {
        DisputedMoney::Held => ("dispute.held", [holder, Ledger::Disputed]),
        DisputedMoney::Lost => ("dispute.lost", [Ledger::Disputed, charge.provider_account()]),
        DisputedMoney::Fee => {
            let bearer = account_of(fee_bearer(app, charge));
            ("dispute.fee", [bearer, charge.provider_account()])
        }
        DisputedMoney::Released => ("dispute.released", [Ledger::Disputed, holder]),
    };
    post(tx, app, charge, (key, kind), accounts, minor, Overdraft::Allowed).await?;
    match what {
        DisputedMoney::Held => charge.credited.0 -= minor.0,
        DisputedMoney::Released => charge.credited.0 += minor.0,
        DisputedMoney::Lost | DisputedMoney::Fee => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_parts_add_up_to_what_was_credited() {
        for (credited, parts) in [
            (236_299, vec![250_050]),
            (236_299, vec![100_000, 50_050, 100_000]),
            (236_299, vec![1, 1, 250_048]),
            (0, vec![100_000, 150_050]),
            // More than what can be refunded.
            (250_100, vec![100_000, 150_050]),
        ] {
            let (mut of_wallet, mut left, mut fees) = (credited, 250_050, 0);
            for part in parts {
                let (held, fee) = shares(Minor(of_wallet), Minor(part), Minor(left));
                of_wallet -= held.0;
                left -= part;
                fees += fee.0;
            }
            assert_eq!((of_wallet, fees), (0, (250_050 - credited).max(0)));
        }
    }
}
