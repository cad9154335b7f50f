//! Monitoring: size and age of backlogs, and consistency of the ledger.
//!
//! Each host polls the database with queries of bounded cost and publishes the results as gauges.
//! So a scrape does not wait, and shows the last results while the database is unavailable.

mod ledger;
mod store;

use std::time::Duration;

use self::ledger::Sweep;
pub use self::store::plugin_uses;
use crate::state::{
    App,
    metrics::gauges::{CHARGE_CHANNELS, MESSAGE_CHANNELS},
};
use tollhouse_platform::{clock::Timestamp, error::Result, store::Tx};

const PAUSE: Duration = Duration::from_secs(15);

/// Age limits of the gauge of pending payments in seconds; the last one ends their verification.
const AGES: [(&str, i64); 4] =
    [("5m", 300), ("1h", 3_600), ("24h", 24 * 3_600), ("72h", 72 * 3_600)];

/// Polls until the server stops.
pub async fn watch(app: App) {
    let mut watch = Watch::default();
    loop {
        watch.look(&app).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// State of a host's monitoring.
#[derive(Default)]
pub struct Watch {
    sweep: Sweep,
    /// Unbalanced ledgers of the last poll, so that each is logged once.
    off: Vec<store::Off>,
}

impl Watch {
    /// Polls once. An error is logged, and reported as the database being unavailable.
    pub async fn look(&mut self, app: &App) {
        let seen = async {
            see_what_waits(app).await?;
            self.check_books(app).await?;
            self.sweep.go_on(app).await
        };
        let seen = seen.await;
        if let Err(error) = &seen {
            tracing::error!(error = %error.chain(), "the database could not be polled");
        }
        app.metrics.watched.store_up.set(seen.is_ok().into());
    }

    /// Checks that each ledger sums to zero in each currency.
    async fn check_books(&mut self, app: &App) -> Result<()> {
        let (sums, off) = app
            .store
            .read(async |tx| -> Result<_> {
                Ok((store::imbalance(tx).await?, store::books_that_are_off(tx).await?))
            })
            .await?;
        for book in off.iter().filter(|book| !self.off.contains(book)) {
            let store::Off { company_id, currency, minor } = book;
            tracing::error!(
                alarm = "ledger",
                company = company_id,
                currency,
                minor,
                "a ledger does not sum to zero"
            );
        }
        self.off = off;
        app.metrics.watched.ledger_checked(sums, app.clock.now());
        Ok(())
    }
}

async fn see_what_waits(app: &App) -> Result<()> {
    let now = app.clock.now();
    let begins = AGES.map(|(_, seconds)| now.plus_seconds(-seconds));
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
            let messages = store::waiting_messages(tx).await?;
            Ok((jobs, [("no", untried), ("yes", retried)], payments, charges, messages))
        })
        .await?;
    let watched = &app.metrics.watched;
    for (kind, (count, oldest)) in jobs {
        watched.jobs.set(kind, count, oldest, now);
    }
    for (attempted, (count, oldest)) in deliveries {
        watched.deliveries.set(attempted, count, oldest, now);
    }
    for (n, (age, _)) in AGES.into_iter().enumerate() {
        let aged = payments.iter().find(|(aged, ..)| usize::try_from(*aged) == Ok(n));
        let (count, oldest) = aged.map_or((0, None), |(_, count, oldest)| (*count, *oldest));
        watched.payments.set(age, count, oldest, now);
    }
    for channel in CHARGE_CHANNELS {
        let (count, oldest) = of(channel, &charges);
        watched.charges.set(channel, count, oldest, now);
    }
    for channel in MESSAGE_CHANNELS {
        let (count, oldest) = of(channel, &messages);
        watched.messages.set(channel, count, oldest, now);
    }
    watched.looked(now);
    Ok(())
}

/// Returns the count of a channel, and the time of its oldest item.
fn of(channel: &str, seen: &[(String, i64, Option<Timestamp>)]) -> (i64, Option<Timestamp>) {
    let these = seen.iter().find(|(of, ..)| of == channel);
    these.map_or((0, None), |(_, count, oldest)| (*count, *oldest))
}
