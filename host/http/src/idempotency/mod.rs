//! Idempotency keys: a repeated request takes effect once, and its stored response is replayed.
//!
//! A key has one row. Its running request holds a lease on the row, in which the sealed response is
//! then stored. The lease of a crashed host expires: a repeated request runs again, and finds
//! earlier effects by its reference or by the id that all its runs share. Key, path and content are
//! not stored in readable form.

pub mod header;
mod store;

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};

pub use self::store::SEALED;
use crate::server::Server;
use tollhouse_platform::{
    clock::Timestamp,
    crypto::seal::fingerprint,
    error::{Error, Result},
    values::id::Owner,
};

/// Time for which a response is stored.
const RETENTION_SECONDS: i64 = 24 * 3600;
/// Time for which a request may run after its client's timeout.
const GRACE: Duration = Duration::from_secs(15);
/// Time by which a lease exceeds the longest run, so that two runs never overlap.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// The identity of a request: the principal's key for one route.
pub struct RequestKey<'r> {
    /// The company; for operators, the service.
    pub owner: &'r Owner,
    /// The id of an operator; otherwise empty.
    pub operator: &'r str,
    pub method: &'r str,
    pub path: &'r str,
    pub key: &'r str,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: String,
}

/// The right to run a request.
#[derive(Clone)]
pub struct Claim {
    /// An id that all runs of the request share: 24 hexadecimal characters.
    run: String,
    /// True if it ran before, and may have had effects.
    is_rerun: bool,
    owner: Owner,
    id: String,
    lease: String,
}

/// The end of a run.
pub enum Completion {
    /// The response is replayed for a day, or until an earlier time.
    StoreResponse(StoredResponse, Option<Timestamp>),
    /// There was no effect: the key may be used for another request.
    Release,
    /// Effects are possible: the same request may run again immediately, no other may use the key.
    AllowRetry,
}

pub enum ClaimOutcome {
    Run(Claim),
    Replay(StoredResponse),
}

/// The state of a known key, for a new request.
#[derive(Debug, PartialEq, Eq)]
enum KeyState {
    /// The row is expired, and counts as absent.
    Expired,
    /// The lease has expired without a response.
    LeaseExpired,
    Replay,
    InProgress,
    DifferentRequest,
}

fn key_state(row: &store::Row, same: bool, now: Timestamp) -> KeyState {
    match (&row.answer, same) {
        _ if row.expires_at <= now => KeyState::Expired,
        (_, false) => KeyState::DifferentRequest,
        (Some(_), true) => KeyState::Replay,
        (None, true) if row.lease_until <= now => KeyState::LeaseExpired,
        (None, true) => KeyState::InProgress,
    }
}

/// Returns the maximum duration of a run. Beyond it, another run might begin.
#[must_use]
pub fn max_run_time(server: &Server) -> Duration {
    server.limits.request_timeout + GRACE
}

/// Claims a key. 409 if it was used with another request, or if its request is in progress.
/// `content` is the digest of what was sent.
pub async fn claim(server: &Server, name: RequestKey<'_>, content: String) -> Result<ClaimOutcome> {
    let mut claim = Claim {
        run: server.random.id(server.clock.now()),
        is_rerun: false,
        owner: name.owner.clone(),
        id: match name.operator {
            "" => fingerprint(&[name.method, name.path, name.key]),
            operator => fingerprint(&[name.method, name.path, name.key, operator]),
        },
        lease: server.random.token(""),
    };
    let (server, db) = (server.clone(), server.store.clone());
    db.write(async move |tx| {
        let now = server.clock.now();
        let lasting = (max_run_time(&server) + LEASE_MARGIN).as_secs();
        let lease_until = now.plus_seconds(i64::try_from(lasting).unwrap_or(i64::MAX));
        let mut row = store::Row {
            run_id: claim.run.clone(),
            content: server.sealer.seal(&claim.context("content"), &content),
            lease: Some(claim.lease.clone()),
            lease_until,
            answer: None,
            expires_at: now.plus_seconds(RETENTION_SECONDS),
        };
        let Some(found) = store::lock(tx, &claim.owner, &claim.id).await? else {
            let first = store::insert(tx, &claim.owner, &claim.id, &row).await?;
            return if first { Ok(ClaimOutcome::Run(claim)) } else { Err(in_progress_error()) };
        };
        // An expired row may be sealed under a key that was removed since.
        let is_same = found.expires_at <= now
            || server.sealer.open(&claim.context("content"), &found.content)? == content;
        match key_state(&found, is_same, now) {
            KeyState::LeaseExpired => {
                row.run_id.clone_from(&found.run_id);
                (claim.run, claim.is_rerun) = (found.run_id, true);
                store::update(tx, &claim.owner, &claim.id, &row).await?;
                Ok(ClaimOutcome::Run(claim))
            }
            KeyState::Expired => {
                store::update(tx, &claim.owner, &claim.id, &row).await?;
                Ok(ClaimOutcome::Run(claim))
            }
            KeyState::Replay => {
                let sealed = found.answer.unwrap_or_default();
                let response = server.sealer.open(&claim.context("answer"), &sealed)?;
                Ok(ClaimOutcome::Replay(serde_json::from_str(&response).map_err(Error::internal)?))
            }
            KeyState::InProgress => Err(in_progress_error()),
            KeyState::DifferentRequest => {
                Err(Error::Conflict("the Idempotency-Key was used with another request".to_owned()))
            }
        }
    })
    .await
}

fn in_progress_error() -> Error {
    Error::Conflict("the request with this Idempotency-Key is in progress".to_owned())
}

/// Ends a run. No effect if its lease was lost.
pub async fn complete(server: &Server, claim: Claim, end: Completion) -> Result<()> {
    let (sealed, until) = match &end {
        Completion::StoreResponse(response, until) => {
            let text = serde_json::to_string(response).map_err(Error::internal)?;
            (Some(server.sealer.seal(&claim.context("answer"), &text)), *until)
        }
        Completion::Release | Completion::AllowRetry => (None, None),
    };
    let until = until.unwrap_or(Timestamp(i64::MAX));
    // The row still identifies what an earlier run may have left.
    let frees = matches!(end, Completion::Release) && !claim.is_rerun;
    let (db, now) = (server.store.clone(), server.clock.now());
    db.write(async move |tx| {
        let Claim { owner, id, lease, .. } = &claim;
        match frees {
            true => store::delete(tx, owner, id, lease).await?,
            false => store::complete(tx, owner, id, lease, sealed.as_deref(), [now, until]).await?,
        };
        Ok(())
    })
    .await
}

/// Removes expired rows. Returns their number.
pub fn sweep(server: Server) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = server.clock.now();
        let swept =
            server.store.write_in_batches(async move |tx, most| store::sweep(tx, now, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}

impl Claim {
    fn context(&self, column: &str) -> String {
        context(self.owner.column(), &self.id, column)
    }
}

/// Returns the seal context of a column.
fn context(owner: &str, id: &str, column: &str) -> String {
    format!("idempotency_keys/{owner}/{id}/{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_a_known_key() {
        let row = |is_completed: bool, lease_until, expires_at| store::Row {
            run_id: String::new(),
            content: String::new(),
            lease: (!is_completed).then(String::new),
            lease_until: Timestamp(lease_until),
            answer: is_completed.then(String::new),
            expires_at: Timestamp(expires_at),
        };
        for (row, same, verdict) in [
            (row(true, 5, 20), true, KeyState::Replay),
            (row(true, 5, 20), false, KeyState::DifferentRequest),
            (row(true, 5, 10), true, KeyState::Expired),
            (row(true, 5, 10), false, KeyState::Expired),
            (row(false, 11, 20), true, KeyState::InProgress),
            (row(false, 11, 20), false, KeyState::DifferentRequest),
            (row(false, 10, 20), true, KeyState::LeaseExpired),
            (row(false, 10, 20), false, KeyState::DifferentRequest),
            (row(false, 5, 10), true, KeyState::Expired),
        ] {
            assert_eq!(key_state(&row, same, Timestamp(10)), verdict, "{row:?} {same}");
        }
    }
}
