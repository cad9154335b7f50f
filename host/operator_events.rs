//! What operators and neighbouring systems are told: a stream that they read by cursor. An event is written in the transaction of
//! what it tells of, and never holds anything about a person.
//!
//! Ids tell seconds only, and transactions commit later than they began. So a reader gets an event once nothing that is older can
//! still be committed, and whoever goes on from where it stopped misses none.

pub mod api;
mod store;

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use crate::{
    app::App,
    clock::Timestamp,
    error::Error,
    random::first_id,
    store::{Result, Tx},
};

/// A charge took a company's wallet below its threshold: `{balance, threshold, currency}`.
pub const LOW_BALANCE: &str = "wallet.low_balance";

/// By how much the clocks of hosts may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10);

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

/// Since when events may still be committed.
fn unsettled_since(app: &App) -> Timestamp {
    let longest = app.store.longest_transaction() + CLOCKS_DIFFER;
    app.clock.now().plus_ms(-i64::try_from(longest.as_millis()).unwrap_or(i64::MAX))
}
