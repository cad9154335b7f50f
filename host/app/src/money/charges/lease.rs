//! Leases on records during a call to a provider.
//!
//! A lease is short and its holder extends it during the call, so a crashed host blocks its records
//! for seconds only. The token is random and stays the same while the lease is held: each write of
//! the holder compares it and so detects that another request has acquired the lease.

use std::{convert::Infallible, pin::pin};

use futures::future::{Either, select};

use super::store;
use crate::money::prelude::*;
use tollhouse_platform::store::FromRow;

/// Lease duration after the last extension.
const LEASE_SECONDS: i64 = 20;
/// The holder extends a lease with less than this left. Almost this much clock skew between two
/// hosts is tolerated before one acquires a lease that the other still holds.
const EXTEND_BELOW_SECONDS: i64 = 17;
/// Interval at which the holder compares the lease with the clock, without a query.
const EXTEND_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Lease {
    /// The end of the lease.
    #[sqlx(rename = "starting_until")]
    pub until: Option<Timestamp>,
    /// The fencing token of the last lease that a host acquired.
    #[sqlx(rename = "lease")]
    pub token: Option<String>,
    /// The end of the lease as its holder wrote it. Hosts of the previous version write only
    /// `until`.
    #[sqlx(rename = "lease_until")]
    pub token_until: Option<Timestamp>,
}

impl Lease {
    /// Returns a new lease that starts now.
    pub fn acquire(app: &App) -> Lease {
        let until = Some(app.clock.now().plus_seconds(LEASE_SECONDS));
        Lease { until, token: Some(app.random.token("")), token_until: until }
    }

    pub fn is_free(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Returns whether the record still has the lease `mine`, even if extended since.
    pub fn is_held_as(&self, mine: &Lease) -> bool {
        let is_mine = self.token.is_some() && self.token == mine.token;
        is_mine && self.until.is_some() && self.until == self.token_until
    }

    /// The error of a request while another one holds the lease.
    pub fn conflict(&self, now: Timestamp, message: &str) -> Error {
        let left_ms = self.until.map_or(0, |until| until.0 - now.0);
        let retry_after_s = u32::try_from(((left_ms + 999) / 1_000).max(1)).unwrap_or(u32::MAX);
        Error::InProgress { message: message.to_owned(), retry_after_s }
    }
}

/// The tables with lease columns.
#[derive(Clone, Copy, Debug)]
pub enum LeasedTable {
    Payments,
    Refunds,
    Recollections,
}

/// A record and the lease that this request holds on it.
#[derive(Clone, Debug)]
pub struct Leased {
    pub table: LeasedTable,
    pub company_id: CompanyId,
    /// The record's id; for a refund, the id of its payment.
    pub id: String,
    pub lease: Lease,
}

impl Leased {
    /// Runs `work` and extends the lease until it ends.
    pub async fn hold<T>(self, app: &App, work: impl Future<Output = T>) -> T {
        // Boxed: `work` is large, and the futures that await this one would contain it.
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
                // Released, or acquired by another request: the next write of `work` detects it.
                Ok(false) => return std::future::pending().await,
                Err(error) => {
                    let (table, id) = (self.table, &self.id);
                    tracing::warn!(?table, id, %error, "lease could not be extended");
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
    fn a_lease_is_free_from_its_end() {
        for (until, free) in [(None, true), (Some(9), true), (Some(10), true), (Some(11), false)] {
            assert_eq!(lease(until, Some("t"), until).is_free(Timestamp(10)), free, "{until:?}");
        }
    }

    #[test]
    fn a_conflict_has_the_seconds_until_the_lease_ends() {
        for (until, seconds) in [(None, 1), (Some(500), 1), (Some(1_001), 1), (Some(9_500), 9)] {
            let conflict = lease(until, Some("t"), until).conflict(Timestamp(1_000), "wait");
            let Error::InProgress { retry_after_s, .. } = conflict else { panic!("{conflict:?}") };
            assert_eq!(retry_after_s, seconds, "{until:?}");
        }
    }
}
