//! Operator events: a feed for operators and internal consumers, see `feeds`. An event is written
//! in the transaction of the change that it reports, and never contains personal data.

pub mod api;
mod store;

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use crate::state::App;
use tollhouse_platform::{
    error::Error,
    random::id_lower_bound,
    store::{Result, Tx},
    values::id::Owner,
};

/// A fee took a company's balance below its threshold: `{balance, threshold, currency}`.
pub const LOW_BALANCE: &str = "wallet.low_balance";
/// The verification charge of a card could not be refunded: `{card, refund}`.
pub const CARD_REFUND_FAILED: &str = "card.refund_failed";
/// An installment was not collected on its due date: `{loan, amount, reason}`.
pub const NOT_COLLECTED: &str = "loan.not_collected";

/// Emits an event about a company or the service.
pub async fn emit(
    tx: &mut Tx,
    app: &App,
    owner: impl Into<Owner>,
    kind: &'static str,
    data: Value,
) -> Result<()> {
    let now = app.clock.now();
    store::insert(tx, &owner.into(), &app.random.id(now), kind, data, now).await?;
    app.metrics.alarms.count_operator_event(kind);
    Ok(())
}

/// Deletes events before the retention period, and returns their number.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64, Error>> {
    async move {
        let before = id_lower_bound(app.settings.retention_cutoff(app.clock.now()));
        let swept =
            app.store.write_in_batches(async move |tx, most| store::sweep(tx, &before, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}
