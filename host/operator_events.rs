//! What operators and neighbouring systems are told: a stream that they read by cursor, as `streams` says. An event is written in the transaction of
//! what it tells of, and never holds anything about a person.

pub mod api;
mod store;

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use crate::{
    app::App,
    error::Error,
    random::first_id,
    store::{Result, Tx},
};

/// A charge took a company's wallet below its threshold: `{balance, threshold, currency}`.
pub const LOW_BALANCE: &str = "wallet.low_balance";
/// A card's verification charge could not be given back: `{card, refund}`.
pub const CARD_REFUND_FAILED: &str = "card.refund_failed";
/// An installment was not collected on its due date, since the company cannot pay for it: `{loan, amount, reason}`.
pub const NOT_COLLECTED: &str = "loan.not_collected";

/// Tells of something that has happened to a company.
pub async fn tell(
    tx: &mut Tx,
    app: &App,
    company_id: &str,
    kind: &'static str,
    data: Value,
) -> Result<()> {
    let now = app.clock.now();
    store::insert(tx, company_id, &app.random.id(now), kind, data, now).await?;
    app.telemetry.noted.told(kind);
    Ok(())
}

/// Forgets what was told long ago; answers how many events that were.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64, Error>> {
    async move {
        let before = first_id(app.settings.history_begins(app.clock.now()));
        let swept =
            app.store.write_in_pieces(async move |tx, most| store::sweep(tx, &before, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}
