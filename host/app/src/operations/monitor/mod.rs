//! Monitoring: size and age of backlogs, and consistency of the ledger.
//!
//! Each host polls the database with queries of bounded cost and publishes the results as gauges.
//! So a scrape does not wait, and shows the last results while the database is unavailable.

mod ledger;
mod store;

use std::time::Duration;

use self::ledger::LedgerScan;
pub use self::store::plugin_uses;
use crate::state::{
    App,
    metrics::gauges::{CHARGE_CHANNELS, MESSAGE_CHANNELS},
};
use tollhouse_platform::{clock::Timestamp, error::Result, store::Tx};

const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Age limits of the gauge of pending payments in seconds; the last one ends their verification.
const PENDING_AGES: [(&str, i64); 4] =
    [("5m", 300), ("1h", 3_600), ("24h", 24 * 3_600), ("72h", 72 * 3_600)];

/// Polls until the server stops.
pub async fn run(app: App) {
    let mut watch = Monitor::default();
    loop {
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
            poll_backlogs(app).await?;
            self.check_ledgers(app).await?;
            self.scan.advance(app).await
        };
        let seen = seen.await;
        if let Err(error) = &seen {
            tracing::error!(error = %error.chain(), "the database could not be polled");
        }
        app.metrics.monitor.store_up.set(seen.is_ok().into());
    }

    /// Checks that each ledger sums to zero in each currency.
    async fn check_ledgers(&mut self, app: &App) -> Result<()> {
        let (sums, off) = app
            .store
            .read(async |tx| -> Result<_> {
                Ok((store::imbalance(tx).await?, store::unbalanced_ledgers(tx).await?))
            })
            .await?;
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
        app.metrics.monitor.set_imbalances(sums, app.clock.now());
        Ok(())
    }
}

async fn poll_backlogs(app: &App) -> Result<()> {
    let now = app.clock.now();
    let begins = PENDING_AGES.map(|(_, seconds)| now.plus_seconds(-seconds));
    let (jobs, deliveries, payments, charges, messages) = app
        .store
        .read(async |tx: &mut Tx| -> Result<_> {
            let mut jobs = Vec::new();
            for kind in app.workers.kinds() {
                jobs.push((kind, store::due_jobs(tx, kind, now).await?));
            }
            let untried = store::untried_deliveries(tx).await?;
            let retried = store::retried_deliveries(tx).await?;
            let payments = store::pending_payments(tx, begins).await?;
            let charges = store::pending_charges(tx).await?;
            let messages = store::queued_messages(tx).await?;
            Ok((jobs, [("no", untried), ("yes", retried)], payments, charges, messages))
        })
        .await?;
    let watched = &app.metrics.monitor;
    for (kind, (count, oldest)) in jobs {
        watched.jobs.set(kind, count, oldest, now);
    }
    for (attempted, (count, oldest)) in deliveries {
        watched.deliveries.set(attempted, count, oldest, now);
    }
    for (n, (age, _)) in PENDING_AGES.into_iter().enumerate() {
        let aged = payments.iter().find(|(aged, ..)| usize::try_from(*aged) == Ok(n));
        let (count, oldest) = aged.map_or((0, None), |(_, count, oldest)| (*count, *oldest));
        watched.payments.set(age, count, oldest, now);
    }
    for channel in CHARGE_CHANNELS {
        let (count, oldest) = count_of_channel(channel, &charges);
        watched.charges.set(channel, count, oldest, now);
    }
    for channel in MESSAGE_CHANNELS {
        let (count, oldest) = count_of_channel(channel, &messages);
        watched.messages.set(channel, count, oldest, now);
    }
    watched.set_polled(now);
    Ok(())
}

/// Returns the count of a channel, and the time of its oldest item.
fn count_of_channel(
    channel: &str,
    seen: &[(String, i64, Option<Timestamp>)],
) -> (i64, Option<Timestamp>) {
    let these = seen.iter().find(|(of, ..)| of == channel);
    these.map_or((0, None), |(_, count, oldest)| (*count, *oldest))
}
