//! Idempotency keys: a request that is sent again under its key is answered again, and runs once.
//!
//! A key has one row. Whoever runs its request holds the row by a lease; what the request answered is then kept in it, sealed. A
//! host that dies meanwhile leaves a lease that ends: the request sent again then runs again, and finds by its reference, or by the
//! [`RunId`] that all its runs share, what the first one left. Nothing in a row can be read without the master key: neither the key nor the path, nor what was sent.

mod store;

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};

pub use self::store::SEALED;
use crate::{
    app::App,
    clock::Timestamp,
    error::{Error, Result},
    seal::fingerprint,
};

/// How long an answer is kept.
const KEPT_SECONDS: i64 = 24 * 3600;
/// How much longer than its caller waits a request may run.
const GRACE: Duration = Duration::from_secs(15);
/// Beyond what a request may run, so that nobody runs it while it runs.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// What one key names: a caller's request to one route.
pub struct Name<'r> {
    /// The company; of operators, the empty text.
    pub company_id: &'r str,
    pub method: &'r str,
    pub path: &'r str,
    pub key: &'r str,
}

/// An answer, as it is given again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: String,
}

/// Shared by all runs of one request: 24 hexadecimal characters.
#[derive(Clone, Debug)]
pub struct RunId(pub String);

/// The right to run a request.
#[derive(Clone)]
pub struct Claim {
    pub run: RunId,
    /// Whether it ran before, and may have left something.
    is_rerun: bool,
    company_id: String,
    id: String,
    lease: String,
}

/// What becomes of a key when its request has run.
pub enum End {
    /// It is answered again, for a day, or until a time before that.
    Keep(Answer, Option<Timestamp>),
    /// The request had no effect: its key may come with another.
    Free,
    /// Something of it may stand: the same request may run again at once, and no other may have its key.
    GiveBack,
}

pub enum Claimed {
    Run(Claim),
    Replay(Answer),
}

/// What follows for a request whose key has a row.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The row is out of date: as if it were not there.
    Forgotten,
    /// Whoever ran it is gone.
    Retake,
    Replay,
    UnderWay,
    OtherRequest,
}

fn judge(row: &store::Row, same: bool, now: Timestamp) -> Verdict {
    match (&row.answer, same) {
        _ if row.expires_at <= now => Verdict::Forgotten,
        (_, false) => Verdict::OtherRequest,
        (Some(_), true) => Verdict::Replay,
        (None, true) if row.lease_until <= now => Verdict::Retake,
        (None, true) => Verdict::UnderWay,
    }
}

/// Who runs a request for longer may no longer be the only one.
#[must_use]
pub fn longest_run(app: &App) -> Duration {
    app.settings.http.request + GRACE
}

/// 409 when the key was used with another request, or its request is under way. `content` is all that was sent: two requests of
/// one name are the same when it is.
pub async fn claim(app: &App, name: Name<'_>, content: String) -> Result<Claimed> {
    let mut claim = Claim {
        run: RunId(app.new_id()),
        is_rerun: false,
        company_id: name.company_id.to_owned(),
        id: fingerprint(&[name.method, name.path, name.key]),
        lease: app.random.token(""),
    };
    let (app, db) = (app.clone(), app.store.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let lasting = (longest_run(&app) + LEASE_MARGIN).as_secs();
        let lease_until = now.plus_seconds(i64::try_from(lasting).unwrap_or(i64::MAX));
        let mut row = store::Row {
            run_id: claim.run.0.clone(),
            content: app.sealer.seal(&claim.context("content"), &content),
            lease: Some(claim.lease.clone()),
            lease_until,
            answer: None,
            expires_at: now.plus_seconds(KEPT_SECONDS),
        };
        let Some(found) = store::lock(tx, &claim.company_id, &claim.id).await? else {
            let first = store::insert(tx, &claim.company_id, &claim.id, &row).await?;
            return if first { Ok(Claimed::Run(claim)) } else { Err(under_way()) };
        };
        // One that is out of date may be sealed under a key that was taken away since.
        let is_same = found.expires_at <= now
            || app.sealer.open(&claim.context("content"), &found.content)? == content;
        match judge(&found, is_same, now) {
            Verdict::Retake => {
                row.run_id.clone_from(&found.run_id);
                (claim.run, claim.is_rerun) = (RunId(found.run_id), true);
                store::update(tx, &claim.company_id, &claim.id, &row).await?;
                Ok(Claimed::Run(claim))
            }
            Verdict::Forgotten => {
                store::update(tx, &claim.company_id, &claim.id, &row).await?;
                Ok(Claimed::Run(claim))
            }
            Verdict::Replay => {
                let sealed = found.answer.unwrap_or_default();
                let answer = app.sealer.open(&claim.context("answer"), &sealed)?;
                Ok(Claimed::Replay(serde_json::from_str(&answer).map_err(Error::internal)?))
            }
            Verdict::UnderWay => Err(under_way()),
            Verdict::OtherRequest => {
                Err(Error::Conflict("the Idempotency-Key was used with another request".to_owned()))
            }
        }
    })
    .await
}

fn under_way() -> Error {
    Error::Conflict("the request with this Idempotency-Key is under way".to_owned())
}

/// Ends a run. A lease that was lost meanwhile is left alone.
pub async fn end(app: &App, claim: Claim, end: End) -> Result<()> {
    let (sealed, until) = match &end {
        End::Keep(answer, until) => {
            let text = serde_json::to_string(answer).map_err(Error::internal)?;
            (Some(app.sealer.seal(&claim.context("answer"), &text)), *until)
        }
        End::Free | End::GiveBack => (None, None),
    };
    let until = until.unwrap_or(Timestamp(i64::MAX));
    // What an earlier run may have left is still named by the row.
    let frees = matches!(end, End::Free) && !claim.is_rerun;
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        let Claim { company_id, id, lease, .. } = &claim;
        match frees {
            true => store::release(tx, company_id, id, lease).await?,
            false => store::end(tx, company_id, id, lease, sealed.as_deref(), [now, until]).await?,
        }
        Ok(())
    })
    .await
}

/// Removes what is out of date; answers how many rows that were.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = app.clock.now();
        let swept =
            app.store.write_in_pieces(async move |tx, most| store::sweep(tx, now, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}

impl Claim {
    fn context(&self, column: &str) -> String {
        context(&self.company_id, &self.id, column)
    }
}

/// What a column of a row is sealed for.
fn context(company_id: &str, id: &str, column: &str) -> String {
    format!("idempotency_keys/{company_id}/{id}/{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_for_a_key_that_is_known() {
        let row = |answered: bool, lease_until, expires_at| store::Row {
            run_id: String::new(),
            content: String::new(),
            lease: (!answered).then(String::new),
            lease_until: Timestamp(lease_until),
            answer: answered.then(String::new),
            expires_at: Timestamp(expires_at),
        };
        for (row, same, verdict) in [
            (row(true, 5, 20), true, Verdict::Replay),
            (row(true, 5, 20), false, Verdict::OtherRequest),
            (row(true, 5, 10), true, Verdict::Forgotten),
            (row(true, 5, 10), false, Verdict::Forgotten),
            (row(false, 11, 20), true, Verdict::UnderWay),
            (row(false, 11, 20), false, Verdict::OtherRequest),
            (row(false, 10, 20), true, Verdict::Retake),
            (row(false, 10, 20), false, Verdict::OtherRequest),
            (row(false, 5, 10), true, Verdict::Forgotten),
        ] {
            assert_eq!(judge(&row, same, Timestamp(10)), verdict, "{row:?} {same}");
        }
    }
}
