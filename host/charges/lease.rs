//! Leases on records for which a provider is asked.
//!
//! A lease is short, and its holder extends it while the call to the provider runs: a host that dies
//! blocks its records for seconds. The token is random and never changes while a lease is held, so
//! that every write of the holder can check that no other request acquired the lease meanwhile.

use std::{convert::Infallible, pin::pin, time::Duration};

use futures::future::{Either, select};

use super::store;
use crate::{
    app::App,
    clock::Timestamp,
    error::Error,
    store::{FromRow, Tx},
};

/// Lease duration after the last extension.
const LEASE_SECONDS: i64 = 20;
/// The holder extends a lease that has less than this left. The clocks of two hosts may differ by
/// almost this much before one acquires the lease of a live request of the other.
const EXTEND_BELOW_SECONDS: i64 = 17;
/// How often the holder compares the lease with the clock. A comparison costs no query.
const EXTEND_INTERVAL: Duration = Duration::from_secs(1);

/// The lease columns of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Lease {
    /// The end of the lease, whoever holds it.
    #[sqlx(rename = "starting_until")]
    pub until: Option<Timestamp>,
    /// The fencing token of the host that acquired the lease last.
    #[sqlx(rename = "lease")]
    pub token: Option<String>,
    /// The end of the lease as the holder of the token wrote it. Hosts of the previous version
    /// write `until` alone.
    #[sqlx(rename = "lease_until")]
    pub token_until: Option<Timestamp>,
}

impl Lease {
    /// Returns a new lease from now on.
    #[must_use]
    pub fn acquire(app: &App) -> Lease {
        let until = Some(app.clock.now().plus_seconds(LEASE_SECONDS));
        Lease { until, token: Some(app.random.token("")), token_until: until }
    }

    #[must_use]
    pub fn is_free(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Returns whether the record still has the lease `mine`, extended or not.
    #[must_use]
    pub fn is_held_as(&self, mine: &Lease) -> bool {
        let is_mine = self.token.is_some() && self.token == mine.token;
        is_mine && self.until.is_some() && self.until == self.token_until
    }

    /// The conflict that a request gets while another one holds the lease.
    #[must_use]
    pub fn conflict(&self, now: Timestamp, message: &str) -> Error {
        let left_ms = self.until.map_or(0, |until| until.0 - now.0);
        let retry_after_s = u32::try_from(((left_ms + 999) / 1_000).max(1)).unwrap_or(u32::MAX);
        Error::InProgress { message: message.to_owned(), retry_after_s }
    }
}

/// The tables whose records are leased.
#[derive(Clone, Copy, Debug)]
pub enum LeasedTable {
    Payments,
    Refunds,
    Recollections,
}

/// A record with the lease that this request holds on it.
#[derive(Clone, Debug)]
pub struct Leased {
    pub table: LeasedTable,
    pub company_id: String,
    /// The record's id; of a refund, its payment's.
    pub id: String,
    pub lease: Lease,
}

impl Leased {
    /// Runs `work`, and extends the lease until it ends.
    pub async fn hold<T>(self, app: &App, work: impl Future<Output = T>) -> T {
        // Boxed: `work` is large, and what awaits this need not hold it on the stack.
        match select(Box::pin(work), pin!(self.keep_extending(app))).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn keep_extending(mut self, app: &App) -> Infallible {
        loop {
            tokio::time::sleep(EXTEND_INTERVAL).await;
            let now = app.clock.now();
            if self.lease.until.is_some_and(|until| until > now.plus_seconds(EXTEND_BELOW_SECONDS))
            {
                continue;
            }
            let (record, until) = (self.clone(), now.plus_seconds(LEASE_SECONDS));
            let extend = async move |tx: &mut Tx| store::extend(tx, &record, until).await;
            match app.store.write(extend).await {
                Ok(true) => self.lease.until = Some(until),
                // Released, or another request's by now: the next write of `work` notices.
                Ok(false) => return std::future::pending().await,
                Err(error) => {
                    let (table, id) = (self.table, &self.id);
                    tracing::warn!(?table, id, %error, "a lease was not extended");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(until: Option<i64>, token: Option<&str>, token_until: Option<i64>) -> Lease {
        let (until, token_until) = (until.map(Timestamp), token_until.map(Timestamp));
        Lease { until, token: token.map(str::to_owned), token_until }
    }

    #[test]
    fn a_lease_is_held_until_it_is_released_or_acquired_by_another() {
        let mine = lease(Some(10), Some("mine"), Some(10));
        for (row, held) in [
            (lease(Some(10), Some("mine"), Some(10)), true),
            (lease(Some(20), Some("mine"), Some(20)), true), // extended
            (lease(None, None, None), false),
            (lease(Some(20), Some("other"), Some(20)), false),
            // Released, acquired and released again by hosts of the previous version.
            (lease(Some(80), Some("mine"), Some(10)), false),
            (lease(None, Some("mine"), Some(10)), false),
        ] {
            assert_eq!(row.is_held_as(&mine), held, "{row:?}");
        }
        assert!(!Lease::default().is_held_as(&Lease::default()));
    }

    #[test]
    fn a_lease_is_free_from_its_end_on() {
        for (until, free) in [(None, true), (Some(9), true), (Some(10), true), (Some(11), false)] {
            assert_eq!(lease(until, Some("t"), until).is_free(Timestamp(10)), free, "{until:?}");
        }
    }

    #[test]
    fn a_conflict_says_when_the_lease_ends() {
        for (until, seconds) in [(None, 1), (Some(500), 1), (Some(1_001), 1), (Some(9_500), 9)] {
            let conflict = lease(until, Some("t"), until).conflict(Timestamp(1_000), "wait");
            let Error::InProgress { retry_after_s, .. } = conflict else { panic!("{conflict:?}") };
            assert_eq!(retry_after_s, seconds, "{until:?}");
        }
    }
}
