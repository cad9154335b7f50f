//! Export files, served by signed links that need no API key and expire after 15 minutes.

use std::{convert::Infallible, fmt::Display};

use bytes::Bytes;
use csv::{Terminator, WriterBuilder};
use futures::stream::BoxStream;
use tokio::{io::AsyncWriteExt, sync::oneshot};

use super::{
    api::UserFilter,
    quota::{self, Reservation},
    store::{exports, list},
    table::{COLUMNS, SAMPLE, cells},
};
use crate::state::prelude::*;
use tollhouse_platform::outbound::files::{BufWriter, new_name};

pub const REMOVE_JOB: &str = "export.remove";

const LINK_LIFETIME_SECONDS: i64 = 15 * 60;
/// A finished file is removed one minute after its link expires.
pub(super) const FILE_LIFETIME_SECONDS: i64 = LINK_LIFETIME_SECONDS + 60;
/// Age of a stale row, counted from the planned removal: some hosts remove a file but not its row.
const STALE_SECONDS: i64 = 24 * 3600;
/// Maximum number of ids in memory; each further batch needs another search.
const IDS_PER_BATCH: i64 = 100_000;
/// Maximum number of users in memory.
const USERS_PER_BATCH: usize = 1_000;
/// Name of the sample file, which is the same for all companies.
const SAMPLE_NAME: &str = "sample.csv";

/// A signed link to a file.
#[derive(Serialize, JsonSchema)]
pub struct Link {
    /// Absolute URL that needs no API key.
    path: String,
    expires_at: Timestamp,
}

/// The users to export: at most `most` that match.
pub struct ExportQuery {
    pub company_id: CompanyId,
    pub filter: UserFilter,
    pub most: i64,
}

/// Writes users to a file. If the client disconnects, the file is removed. 503 on a host that runs
/// no jobs, because a job removes the file.
pub async fn export(app: &App, users: ExportQuery) -> Result<Link> {
    if !app.workers.enabled {
        let message = "this host runs with no_jobs and cannot export users: use another host";
        return Err(Error::Unavailable(message));
    }
    let (waiting, gone) = oneshot::channel::<Infallible>();
    let host = app.clone();
    let name = app.tasks.spawn(async move { write_file(&host, users, gone).await });
    let name = name.await.map_err(Error::internal)?;
    drop(waiting);
    Ok(sign_link(app, &name?))
}

/// Returns the name of the file. If writing fails, removes the file and releases its reservation.
async fn write_file(
    app: &App,
    users: ExportQuery,
    gone: oneshot::Receiver<Infallible>,
) -> Result<String> {
    let (company_id, name) = (users.company_id.clone(), new_name(&app.random));
    let space = Reservation::begin(app, &company_id, &name).await?;
    let file = match app.files.create(&name) {
        Ok(file) => file,
        Err(error) => {
            release(app, &company_id, &name).await;
            return Err(storage_unavailable(error));
        }
    };
    if let Err(error) = write_and_finish(app, users, file, space, gone).await {
        discard(app, &company_id, &name).await;
        return Err(error);
    }
    Ok(name)
}

/// Writes and finishes the file. Aborts it if writing fails or the client disconnects.
async fn write_and_finish(
    app: &App,
    users: ExportQuery,
    mut file: BufWriter,
    mut space: Reservation,
    gone: oneshot::Receiver<Infallible>,
) -> Result<()> {
    let written = tokio::select! {
        biased;
        _ = gone => Err(Error::Unavailable("the client disconnected")),
        written = write(app, users, &mut file, &mut space) => written,
    };
    if let Err(error) = written {
        if let Err(error) = file.abort().await {
            tracing::warn!(%error, "export file could not be aborted");
        }
        return Err(error);
    }
    file.shutdown().await.map_err(storage_unavailable)?;
    space.finish(app).await
}

/// Removes the file of a failed export, which may exist even after an abort or a failed finish. The
/// reservation ends with the file: if the removal fails, its job is due immediately.
async fn discard(app: &App, company_id: &CompanyId, name: &str) {
    let Err(error) = app.files.remove(name).await else {
        return release(app, company_id, name).await;
    };
    tracing::warn!(%error, "file of a failed export could not be removed; its job retries");
    let (now, company_id, name) = (app.clock.now(), company_id.to_owned(), name.to_owned());
    let woken = app
        .store
        .write(async move |tx| jobs::enqueue(tx, &company_id, REMOVE_JOB, &name, now).await);
    if let Err(error) = woken.await {
        tracing::warn!(%error, "removal job of a failed export could not be rescheduled");
    }
}

/// Releases the reservation of a file that does not exist. A failure is only logged: the client
/// receives the error of the export, and the job releases the reservation later.
async fn release(app: &App, company_id: &CompanyId, name: &str) {
    if let Err(error) = quota::release(app, company_id, name).await {
        let error = error.chain();
        tracing::warn!(error, "space reserved for a failed export could not be released");
    }
}

async fn write(
    app: &App,
    ExportQuery { company_id, filter, mut most }: ExportQuery,
    file: &mut BufWriter,
    space: &mut Reservation,
) -> Result<()> {
    let mut last = None;
    write_chunk(app, file, space, csv_lines([COLUMNS.map(str::to_owned)])?).await?;
    loop {
        let some = most.min(IDS_PER_BATCH);
        most -= some;
        let ids =
            async |tx: &mut Tx| list::list_ids(tx, &company_id, &filter, last.as_ref(), some).await;
        let ids = app.store.select(ids).await?;
        for ids in ids.chunks(USERS_PER_BATCH) {
            let users = async |tx: &mut Tx| list::find_by_ids(tx, &company_id, ids).await;
            let mut users = app.store.select(users).await?;
            let now = app.clock.now();
            let rows = users.iter().map(|user| cells(user, now)).collect::<Result<Vec<_>>>()?;
            last = users.pop().or(last);
            write_chunk(app, file, space, csv_lines(rows)?).await?;
        }
        if ids.len() < usize::try_from(some).unwrap_or(usize::MAX) || most == 0 {
            return Ok(());
        }
    }
}

async fn write_chunk(
    app: &App,
    file: &mut BufWriter,
    space: &mut Reservation,
    bytes: Bytes,
) -> Result<()> {
    space.reserve_more(app, bytes.len()).await?;
    file.put(bytes).await.map_err(storage_unavailable)
}

pub fn sample(app: &App) -> Link {
    sign_link(app, SAMPLE_NAME)
}

/// Returns the bytes of a linked file; 403 if the link is invalid or has expired.
pub async fn open(
    app: &App,
    name: &str,
    expires: &str,
    signature: &str,
) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
    let expired = || Error::Forbidden("this link has expired or was altered".to_owned());
    if !app.sealer.verify_digest(signature, &signed_values(name, expires)) {
        return Err(expired());
    }
    let until = expires.parse().ok().map(|seconds: i64| Timestamp(0).plus_seconds(seconds));
    if until.is_none_or(|until| until <= app.clock.now()) {
        return Err(expired());
    }
    if name == SAMPLE_NAME {
        let sample = Bytes::from_static(SAMPLE.as_bytes());
        return Ok(Box::pin(futures::stream::iter([Ok(sample)])));
    }
    app.files.read(name).await.map_err(storage_unavailable)?.ok_or_else(expired)
}

pub async fn remove_job(app: App, job: Job) -> Result<JobResult> {
    app.files.remove(&job.subject).await.map_err(storage_unavailable)?;
    quota::release(&app, &job.company_id, &job.subject).await?;
    Ok(JobResult::Done)
}

/// Removes stale rows, unfinished files, and those whose removal job was lost with the database.
pub async fn sweep(app: App) -> Result<u64> {
    let stale = app.clock.now().plus_seconds(-STALE_SECONDS);
    let rows = app.store.write(async move |tx| exports::delete_stale(tx, stale).await).await?;
    let swept = tokio::task::spawn_blocking(move || app.files.sweep(app.clock.now())).await;
    Ok(rows + swept.map_err(Error::internal)?.map_err(Error::internal)?)
}

fn sign_link(app: &App, name: &str) -> Link {
    let expires_at = app.clock.now().plus_seconds(LINK_LIFETIME_SECONDS);
    let expires = expires_at.unix_seconds().to_string();
    let signature = app.sealer.digest(&signed_values(name, &expires));
    let base = &app.settings.public_url;
    let path = format!("{base}/api/v1/user/file/{name}?expires={expires}&signature={signature}");
    Link { path, expires_at: Timestamp(0).plus_seconds(expires_at.unix_seconds()) }
}

fn signed_values<'p>(name: &'p str, expires: &'p str) -> [&'p str; 3] {
    ["file", name, expires]
}

fn csv_lines(rows: impl IntoIterator<Item = [String; 23]>) -> Result<Bytes> {
    let mut csv = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        csv.write_record(row).map_err(Error::internal)?;
    }
    csv.into_inner().map(Bytes::from).map_err(|error| Error::internal(error.into_error()))
}

fn storage_unavailable(error: impl Display) -> Error {
    let message = "file storage is unavailable, try again later".to_owned();
    Error::Upstream { message, detail: error.to_string() }
}
