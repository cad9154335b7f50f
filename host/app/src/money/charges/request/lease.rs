//! Leases on charges and refunds during a call to a provider.
//!
//! A lease is short and its holder extends it during the call, so a crashed host blocks a record
//! for seconds only; the next request for a refund waits for a minute. The fence grows with each
//! request: each write of a request compares it and so detects that a newer request has begun.

use std::{convert::Infallible, pin::pin};

use futures::future::{Either, select};

use super::super::{
    Charge,
    refund::{self, Refund},
    store,
};
use crate::money::prelude::*;

/// Lease duration after the last extension.
pub const LEASE_SECONDS: i64 = 20;
/// The holder extends a lease with less than this left. Almost this much clock skew between two
/// hosts is tolerated before one acquires a lease that the other still holds.
const EXTEND_BELOW_SECONDS: i64 = 17;
/// Interval at which the holder compares the lease with the clock, without a query.
const EXTEND_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the end of a lease that begins now.
pub fn end(now: Timestamp) -> Timestamp {
    now.plus_seconds(LEASE_SECONDS)
}

/// A record whose lease this request holds.
#[derive(Clone, Debug)]
pub enum Leased {
    Charge(Box<Charge>),
    Refund(Box<Refund>),
}

impl Leased {
    fn until(&self) -> Option<Timestamp> {
        match self {
            Leased::Charge(charge) => charge.lease_until,
            Leased::Refund(refund) => refund.lease_until,
        }
    }

    /// Runs `work` and extends the lease until it ends.
    pub async fn hold<T>(self, app: &App, work: impl Future<Output = T>) -> T {
        // Boxed: `work` is large, and the futures that await this one would contain it.
        match select(Box::pin(work), pin!(self.keep_extending(app))).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn keep_extending(self, app: &App) -> Infallible {
        let mut held_until = self.until();
        loop {
            tokio::time::sleep(EXTEND_INTERVAL).await;
            let now = app.clock.now();
            if held_until.is_some_and(|until| until > now.plus_seconds(EXTEND_BELOW_SECONDS)) {
                continue;
            }
            let (record, until) = (self.clone(), end(now));
            let extend = async move |tx: &mut Tx| match &record {
                Leased::Charge(charge) => store::extend_lease(tx, charge, until).await,
                Leased::Refund(refund) => refund::extend_lease(tx, refund, until).await,
            };
            match app.store.write(extend).await {
                Ok(true) => held_until = Some(until),
                // Released, or acquired by another request: the next write of `work` detects it.
                Ok(false) => return std::future::pending().await,
                Err(error) => tracing::warn!(%error, "lease could not be extended"),
            }
        }
    }
}
