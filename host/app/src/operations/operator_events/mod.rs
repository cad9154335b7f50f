//! Operator events: a feed for operators and internal consumers, see `feeds`. An event is written
//! in the transaction of the change that it reports, and never contains personal data.

pub mod api;
mod store;

use crate::state::storage::*;
use tollhouse_platform::{error, random::id_lower_bound};

/// A fee took a company's balance below its threshold: `{balance, threshold, currency}`.
pub const LOW_BALANCE: &str = "wallet.low_balance";
/// The verification charge of a card could not be refunded: `{card, refund}`.
pub const CARD_REFUND_FAILED: &str = "card.refund_failed";
/// A refund of a payment failed or is stalled: `{payment, refund}`.
pub const PAYMENT_REFUND_FAILED: &str = "payment.refund_failed";
/// A payer disputes a charge: `{dispute, payment}`, or `card` or `recollection`.
pub const DISPUTE_OPENED: &str = "dispute.opened";
/// A dispute was won or lost: the same.
pub const DISPUTE_CLOSED: &str = "dispute.closed";
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
    store::insert(tx, app, owner.into(), kind, data).await?;
    app.metrics.count_operator_event(kind);
    Ok(())
}

/// Deletes events before the retention period, and returns their number.
pub async fn sweep(app: App) -> error::Result<u64> {
    let before = id_lower_bound(app.settings.retention_cutoff(app.clock.now()));
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, &before, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}
