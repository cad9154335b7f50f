//! The operator's overview: payments that stay pending, today's collections, queues of work, and
//! wallets that are nearly empty.

use super::store;
use crate::{
    money::prelude::*,
    operations::monitor::{self, Queue},
};

/// Lower bounds of the age groups of pending payments, in hours; the last group is unbounded.
const AGES_H: [i64; 4] = [0, 1, 6, 24];
const MAX_WALLETS: i64 = 20;

/// An overview of what needs an operator's attention.
#[derive(Serialize, JsonSchema)]
pub struct Overview {
    /// Numbers of pending payments by age.
    pending_payments: Vec<PendingPayments>,
    /// Installments whose automatic collection began today (UTC), by currency.
    collections: Vec<store::CollectionTotals>,
    queues: Vec<Queue>,
    /// Wallets below the threshold of their company, lowest first, at most 20.
    low_wallets: Vec<store::LowWallet>,
}

/// The pending payments of an age group.
#[derive(Serialize, JsonSchema)]
pub struct PendingPayments {
    /// Minimum age in hours.
    from_hours: i64,
    /// Upper bound of the age in hours, exclusive; `null` if there is none.
    before_hours: Option<i64>,
    number: i64,
}

pub async fn overview(State(app): State<App>) -> Result<DataResponse<Overview>> {
    let now = app.clock.now();
    let today = Timestamp(now.0 - now.0.rem_euclid(DAY_MS));
    let default = app.settings.service.low_balance;
    let read = async |tx: &mut Tx| -> Result<_> {
        let older = older_than(tx, now).await?;
        let collections = store::collections_since(tx, today).await?;
        let queues = monitor::queues(tx, &app, now).await?;
        Ok((older, collections, queues, store::low_wallets(tx, default, MAX_WALLETS).await?))
    };
    let (older, collections, queues, low_wallets) = app.store.read(read).await?;
    let group = |n: usize| PendingPayments {
        from_hours: AGES_H[n],
        before_hours: AGES_H.get(n + 1).copied(),
        number: older[n] - older.get(n + 1).copied().unwrap_or_default(),
    };
    let pending_payments = (0..AGES_H.len()).map(group).collect();
    let overview = Overview { pending_payments, collections, queues, low_wallets };
    DataResponse::data(overview, "Overview fetched successfully")
}

/// Returns, for each of `AGES_H`, the number of pending payments that are at least that old.
async fn older_than(tx: &mut Tx, now: Timestamp) -> Result<Vec<i64>> {
    let mut numbers = Vec::new();
    for hours in AGES_H {
        numbers.push(store::pending_since(tx, now.plus_seconds(-hours * 3600)).await?);
    }
    Ok(numbers)
}
