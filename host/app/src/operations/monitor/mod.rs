//! Monitoring: size and age of backlogs, and consistency of the ledger.
//!
//! Each host polls the database with queries of bounded cost and publishes the results as gauges.
//! So a scrape does not wait, and shows the last results while the database is unavailable.

pub mod calls;
pub mod hosts;
mod ledger;
mod store;

use self::ledger::LedgerScan;
pub use self::store::{Queue, plugin_uses, queues};
use crate::state::prelude::*;

const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Reports and polls until the server stops.
pub async fn run(app: App) {
    let mut watch = Monitor::default();
    loop {
        if let Err(error) = hosts::report(&app).await {
            tracing::warn!(error = %error.chain(), "this host could not report its state");
        }
        watch.poll(&app).await;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// State of a host's monitoring.
#[derive(Default)]
pub struct Monitor {
    scan: LedgerScan,
    /// Unbalanced ledgers of the last poll, so that each is logged once.
    unbalanced: Vec<store::UnbalancedLedger>,
}

impl Monitor {
    /// Polls once. An error is logged, and reported as the database being unavailable.
    pub async fn poll(&mut self, app: &App) {
        let seen = async {
            let now = app.clock.now();
            let read = async |tx: &mut Tx| store::backlogs(tx, app, now).await;
            app.metrics.set_backlogs(app.store.read(read).await?, now);
            self.check_ledgers(app).await?;
            self.scan.advance(app).await
        };
        let seen = seen.await;
        if let Err(error) = &seen {
            tracing::error!(error = %error.chain(), "the database could not be polled");
        }
        app.metrics.store_up.set(seen.is_ok().into());
    }

    /// Checks that each ledger sums to zero in each currency.
    async fn check_ledgers(&mut self, app: &App) -> Result<()> {
        let read = async |tx: &mut Tx| -> Result<_> {
            Ok((store::imbalance(tx).await?, store::unbalanced_ledgers(tx).await?))
        };
        let (sums, off) = app.store.read(read).await?;
        for book in off.iter().filter(|book| !self.unbalanced.contains(book)) {
            let store::UnbalancedLedger { company_id, currency, minor } = book;
            tracing::error!(
                alarm = "ledger",
                company = company_id.as_str(),
                currency = currency.as_str(),
                minor,
                "a ledger does not sum to zero"
            );
        }
        self.unbalanced = off;
        app.metrics.set_imbalances(sums, app.clock.now());
        Ok(())
    }
}
