//! Records settlements, and compares each with its payments.

use super::{
    CLOSED_DAY_CHANGED, SETTLEMENT_DIFFERS,
    compare::Recorded,
    differences::{self, Difference},
    store::{self, Settlement, SettlementState},
};
use crate::money::{charges::ExceptionState, prelude::*};
use tollhouse_plugins::{ProviderSettlement, SettlementStatus};

/// Records the settlements of a page in one transaction.
pub async fn record(app: &App, account: &Account, page: Vec<ProviderSettlement>) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        for listed in page {
            let before = store::find_settlement(tx, &account.id, &listed.id).await?;
            let settlement = updated(&account, before.clone(), listed, app.clock.now());
            if before.as_ref().is_some_and(|before| is_same(before, &settlement)) {
                compare_again(tx, &account, settlement).await?;
                continue;
            }
            store::save_settlement(tx, &settlement).await?;
            raise_if_closed(tx, &app, &account, before.as_ref(), &settlement).await?;
        }
        Ok(())
    })
    .await
}

/// Has the payments of a settlement listed again if it differs from them.
async fn compare_again(tx: &mut Tx, account: &Account, settlement: Settlement) -> Result<()> {
    let subject = subject(&settlement);
    let found = charges::find_difference(tx, &account.id, SETTLEMENT_DIFFERS, &subject).await?;
    if found.is_some_and(|found| found.state == ExceptionState::Open) {
        store::save_settlement(tx, &Settlement { is_listed: false, ..settlement }).await?;
    }
    Ok(())
}

/// Returns a settlement as the list shows it. Its payments are listed again if it has changed.
fn updated(
    account: &Account,
    before: Option<Settlement>,
    listed: ProviderSettlement,
    now: Timestamp,
) -> Settlement {
    let settlement = Settlement {
        account_id: account.id.clone(),
        provider_id: listed.id,
        state: match listed.status {
            SettlementStatus::Pending => SettlementState::Pending,
            SettlementStatus::Paid => SettlementState::Paid,
            SettlementStatus::Failed => SettlementState::Failed,
        },
        amount: listed.amount.minor,
        gross: listed.gross,
        fees: listed.fees,
        deductions: listed.deductions,
        currency: listed.amount.currency,
        at: listed.at,
        is_listed: false,
        created_at: before.as_ref().map_or(now, |before| before.created_at),
        updated_at: now,
    };
    let is_listed = before.is_some_and(|before| before.is_listed && is_same(&before, &settlement));
    Settlement { is_listed, ..settlement }
}

fn is_same(one: &Settlement, other: &Settlement) -> bool {
    let values = |settlement: &Settlement| {
        let Settlement { state, amount, gross, fees, deductions, at, .. } = *settlement;
        (state, amount, gross, fees, deductions, at)
    };
    values(one) == values(other) && one.currency == other.currency
}

fn subject(settlement: &Settlement) -> String {
    format!("settlement:{}", settlement.provider_id)
}

fn recorded(minor: Minor, settlement: &Settlement) -> Recorded {
    Recorded { money: Money { minor, currency: settlement.currency.clone() }, fees: None }
}

/// Raises an exception if a settlement was listed, or changed, after its day was closed.
async fn raise_if_closed(
    tx: &mut Tx,
    app: &App,
    account: &Account,
    before: Option<&Settlement>,
    after: &Settlement,
) -> Result<()> {
    let difference = Difference {
        account,
        kind: CLOSED_DAY_CHANGED,
        subject: &subject(after),
        at: after.at,
        service_ref: "",
        charge: None,
        expected: recorded(before.map_or(Minor(0), |before| before.amount), after),
        seen: Some(recorded(after.amount, after)),
        excess: Minor(0),
    };
    differences::raise_if_closed(tx, app, difference, before.map(|before| before.at)).await
}

/// Compares the net amount of a paid settlement with its listed payments, and the payout with that
/// amount less the stated deductions.
pub async fn compare(app: &App, account: &Account, settlement: Settlement) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let sums = store::sum_settled(tx, &settlement).await?;
        let subject = &subject(&settlement);
        // The stated gross amount and fees include fees that payers paid on top. Payments do not.
        let stated = Minor(settlement.gross.0 - settlement.fees.0);
        let net = if sums.without_fees > 0 { stated } else { sums.net };
        let payout = Minor(net.0 - settlement.deductions.0);
        match (stated, settlement.amount) == (net, payout) {
            true => {
                differences::agree(tx, &app, &account, SETTLEMENT_DIFFERS, subject).await?;
            }
            false => {
                let difference = Difference {
                    account: &account,
                    kind: SETTLEMENT_DIFFERS,
                    subject,
                    at: settlement.at,
                    service_ref: "",
                    charge: None,
                    expected: recorded(payout, &settlement),
                    seen: Some(recorded(settlement.amount, &settlement)),
                    excess: Minor(0),
                };
                differences::raise(tx, &app, difference).await?;
            }
        }
        let listed = Settlement { is_listed: true, updated_at: app.clock.now(), ..settlement };
        Ok(store::save_settlement(tx, &listed).await?)
    })
    .await
}
