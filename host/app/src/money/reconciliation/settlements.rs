//! Records settlements, and compares each with its payments.

use super::{
    differences::{self, Difference},
    store::{self, Settlement, SettlementState},
};
use crate::money::prelude::*;
use tollhouse_plugins::{ProviderSettlement, SettlementStatus};

const SETTLEMENT_DIFFERS: &str = "settlement_differs";

/// Records the settlements of a page in one transaction.
pub async fn record(app: &App, account: &Account, page: Vec<ProviderSettlement>) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        for listed in page {
            let before = store::find_settlement(tx, &account.id, &listed.id).await?;
            let settlement = updated(&account, before.clone(), listed, app.clock.now());
            if !before.is_some_and(|before| is_same(&before, &settlement)) {
                store::save_settlement(tx, &settlement).await?;
            }
        }
        Ok(())
    })
    .await
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

/// Compares a paid settlement with its payments, which have been listed: their amounts and fees, and
/// what was paid out after the stated deductions.
pub async fn compare(app: &App, account: &Account, settlement: Settlement) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let sums = store::sum_settled(tx, &settlement).await?;
        let subject = &settlement.provider_id;
        let currency = settlement.currency.clone();
        let money = |minor| Money { minor, currency: currency.clone() };
        let payout = Minor(sums.gross.0 - sums.fees.0 - settlement.deductions.0);
        let stated = (settlement.gross, settlement.fees, settlement.amount);
        match (sums.gross, sums.fees, payout) == stated {
            true => differences::close(tx, &app, &account, SETTLEMENT_DIFFERS, subject).await?,
            false => {
                let difference = Difference {
                    account: &account,
                    kind: SETTLEMENT_DIFFERS,
                    subject,
                    at: settlement.at,
                    service_ref: "",
                    charge: None,
                    expected: money(payout),
                    seen: Some(&money(settlement.amount)),
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
