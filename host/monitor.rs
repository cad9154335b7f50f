//! What is seen by looking: how much waits and for how long, and whether the ledger balances.
//!
//! Now and then each host asks the database a handful of questions, all of bounded cost, and keeps the answers as gauges. So a
//! scrape waits for nothing, and shows the last answers while the database is down.

mod ledger;
mod store;

use std::time::Duration;

use self::ledger::Sweep;
pub use self::store::plugin_uses;
use crate::{
    app::App, clock::Timestamp, error::Result, messages::Channel, recollections, store::Tx,
};

const PAUSE: Duration = Duration::from_secs(15);

/// For how long the reconciler asks about a pending payment, and how its gauge tells ages apart; seconds.
const AGES: [(&str, i64); 4] =
    [("5m", 300), ("1h", 3_600), ("24h", 24 * 3_600), ("72h", 72 * 3_600)];

/// Looks again and again, for as long as the server lives.
pub async fn watch(app: App) {
    let mut watch = Watch::default();
    loop {
        watch.look(&app).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Where a host's looks have got to.
#[derive(Default)]
pub struct Watch {
    sweep: Sweep,
    /// What was off by the last look at the books, so that it is logged once.
    off: Vec<store::Off>,
}

impl Watch {
    /// Never fails: what cannot be seen is logged, and counts as the database being down.
    pub async fn look(&mut self, app: &App) {
        let seen = async {
            see_what_waits(app).await?;
            self.check_books(app).await?;
            self.sweep.go_on(app).await
        };
        let seen = seen.await;
        if let Err(error) = &seen {
            tracing::error!(error = %error.chain(), "the database cannot be looked at");
        }
        app.telemetry.watched.store_up.set(seen.is_ok().into());
    }

    /// Every book must sum to zero in each currency.
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
                "a book does not sum to zero"
            );
        }
        self.off = off;
        app.telemetry.watched.ledger_checked(sums, app.clock.now());
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
    let watched = &app.telemetry.watched;
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
    for channel in [recollections::CARD, recollections::DIRECT_DEBIT] {
        let (count, oldest) = of(channel, &charges);
        watched.charges.set(channel, count, oldest, now);
    }
    for channel in Channel::NAMES {
        let (count, oldest) = of(channel, &messages);
        watched.messages.set(channel, count, oldest, now);
    }
    watched.looked(now);
    Ok(())
}

/// How many were seen of one channel, and since when the oldest is there.
fn of(channel: &str, seen: &[(String, i64, Option<Timestamp>)]) -> (i64, Option<Timestamp>) {
    let these = seen.iter().find(|(of, ..)| of == channel);
    these.map_or((0, None), |(_, count, oldest)| (*count, *oldest))
}
