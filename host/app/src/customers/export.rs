//! Export files, served by signed links that need no API key and expire after 15 minutes.

use std::convert::Infallible;

use bytes::Bytes;
use csv::{Terminator, Writer, WriterBuilder};
use futures::{FutureExt, future::BoxFuture, stream::BoxStream};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

use super::{
    User,
    quota::{self, Reservation},
    store::list::{self, Filter, Sort},
    table::{COLUMNS, SAMPLE, cells},
};
use crate::state::App;
use tollhouse_platform::{
    background::jobs::{self, Job, JobResult},
    clock::Timestamp,
    error::{Error, Result},
    outbound::files::{FilesError, NewFile, new_name},
    store::Tx,
    values::id::CompanyId,
};

/// Job kind: removal of an export file.
pub const REMOVE_JOB: &str = "export.remove";

const LINK_LIFETIME_SECONDS: i64 = 15 * 60;
/// A finished file is removed one minute after its link expires.
pub(super) const FILE_LIFETIME_SECONDS: i64 = LINK_LIFETIME_SECONDS + 60;
/// Maximum time for writing a file.
const MAX_WRITE_SECONDS: i64 = 3_600;
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

/// Writes at most `most` matching users to a file. If the client disconnects, the file is removed.
/// 503 on a host that runs no jobs, because a job removes the file.
pub async fn export(
    app: &App,
    company_id: &CompanyId,
    filter: Filter,
    sort: Sort,
    most: i64,
) -> Result<Link> {
    if !app.workers.enabled {
        let message = "this host runs with no_jobs and cannot export users: use another host";
        return Err(Error::Unavailable(message));
    }
    let (waiting, gone) = oneshot::channel::<Infallible>();
    let (host, company_id) = (app.clone(), company_id.to_owned());
    let name = app.tasks.spawn(async move {
        let users = ExportQuery { company_id: &company_id, filter: &filter, sort, most };
        write_file(&host, users, gone).await
    });
    let name = name.await.map_err(Error::internal)?;
    drop(waiting);
    Ok(sign_link(app, &name?))
}

struct ExportQuery<'e> {
    company_id: &'e CompanyId,
    filter: &'e Filter,
    sort: Sort,
    most: i64,
}

/// Returns the name of the file. If writing fails, removes the file and releases its reservation.
async fn write_file(
    app: &App,
    users: ExportQuery<'_>,
    gone: oneshot::Receiver<Infallible>,
) -> Result<String> {
    let (company_id, name) = (users.company_id, new_name(&app.random));
    let mut space = reserve(app, company_id, &name).await?;
    let file = match app.files.create(&name) {
        Ok(file) => file,
        Err(error) => {
            release(app, company_id, &name).await;
            return Err(storage_unavailable(error));
        }
    };
    let written = match write_and_finish(app, users, file, &mut space, gone).await {
        Ok(()) => finish_reservation(app, space, company_id, &name).await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        discard(app, company_id, &name).await;
        return Err(error);
    }
    Ok(name)
}

/// Writes and finishes the file. Aborts it if writing fails or the client disconnects.
async fn write_and_finish(
    app: &App,
    users: ExportQuery<'_>,
    mut file: NewFile,
    space: &mut Reservation,
    gone: oneshot::Receiver<Infallible>,
) -> Result<()> {
    let written = tokio::select! {
        biased;
        _ = gone => Err(Error::Unavailable("the client disconnected")),
        written = write(app, users, &mut file, space) => written,
    };
    if let Err(error) = written {
        if let Err(error) = file.abort().await {
            tracing::warn!(%error, "export file could not be aborted");
        }
        return Err(error);
    }
    file.finish().await.map_err(storage_unavailable)
}

/// Reduces the reservation to the file's size and schedules the removal after the link expires.
async fn finish_reservation(
    app: &App,
    space: Reservation,
    company_id: &CompanyId,
    name: &str,
) -> Result<()> {
    let removed_at = app.clock.now().plus_seconds(FILE_LIFETIME_SECONDS);
    let (company_id, name) = (company_id.to_owned(), name.to_owned());
    app.store
        .write(async move |tx| {
            space.finish(tx, removed_at).await?;
            Ok(jobs::enqueue(tx, &company_id, REMOVE_JOB, &name, removed_at).await?)
        })
        .await
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

/// Reserves space for a file and schedules its removal, in case this host crashes.
async fn reserve(app: &App, company_id: &CompanyId, name: &str) -> Result<Reservation> {
    let removed_at = app.clock.now().plus_seconds(FILE_LIFETIME_SECONDS + MAX_WRITE_SECONDS);
    let (host, company_id, name) = (app.clone(), company_id.to_owned(), name.to_owned());
    app.store
        .write(async move |tx| {
            let space = Reservation::begin(tx, &host, &company_id, &name, removed_at).await?;
            jobs::enqueue(tx, &company_id, REMOVE_JOB, &name, removed_at).await?;
            Ok(space)
        })
        .await
}

async fn write(
    app: &App,
    ExportQuery { company_id, filter, sort, mut most }: ExportQuery<'_>,
    file: &mut NewFile,
    space: &mut Reservation,
) -> Result<()> {
    let mut place = None;
    write_chunk(app, file, space, csv_lines([COLUMNS.map(str::to_owned)])?).await?;
    loop {
        let some = most.min(IDS_PER_BATCH);
        most -= some;
        let ids = async |tx: &mut Tx| {
            list::list_ids(tx, company_id, filter, sort, place.as_ref(), some).await
        };
        let ids = app.store.select(ids).await?;
        for ids in ids.chunks(USERS_PER_BATCH) {
            let users =
                app.store.select(async |tx| list::list_by_ids(tx, company_id, ids).await).await?;
            place = users.last().map(|last| sort.cursor_after(last)).or(place);
            write_chunk(app, file, space, csv_rows(app, &users)?).await?;
        }
        if ids.len() < usize::try_from(some).unwrap_or(usize::MAX) || most == 0 {
            return Ok(());
        }
    }
}

async fn write_chunk(
    app: &App,
    file: &mut NewFile,
    space: &mut Reservation,
    bytes: Bytes,
) -> Result<()> {
    space.reserve_more(app, bytes.len()).await?;
    file.put(bytes).await.map_err(storage_unavailable)
}

#[must_use]
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

pub fn remove_job(app: App, job: Job) -> BoxFuture<'static, Result<JobResult>> {
    async move {
        app.files.remove(&job.subject).await.map_err(storage_unavailable)?;
        quota::release(&app, &job.company_id, &job.subject).await?;
        Ok(JobResult::Done)
    }
    .boxed()
}

/// Removes unfinished files, and those whose removal job was lost with the database.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let rows = quota::sweep(&app).await?;
        let swept = tokio::task::spawn_blocking(move || app.files.sweep(app.clock.now())).await;
        Ok(rows + swept.map_err(Error::internal)?.map_err(Error::internal)?)
    }
    .boxed()
}

fn sign_link(app: &App, name: &str) -> Link {
    let expires_at = app.clock.now().plus_seconds(LINK_LIFETIME_SECONDS);
    let expires = expires_at.unix_seconds().to_string();
    let signature = app.sealer.digest(&signed_values(name, &expires));
    let base = &app.settings.public_url;
    let path = format!("{base}/api/v1/user/file/{name}?expires={expires}&signature={signature}");
    Link { path, expires_at: Timestamp(0).plus_seconds(expires_at.unix_seconds()) }
}

/// The signed values of a link.
fn signed_values<'p>(name: &'p str, expires: &'p str) -> [&'p str; 3] {
    ["file", name, expires]
}

fn csv_rows(app: &App, users: &[User]) -> Result<Bytes> {
    let now = app.clock.now();
    csv_lines(users.iter().map(|user| cells(user, now)))
}

fn csv_lines(rows: impl IntoIterator<Item = [String; 23]>) -> Result<Bytes> {
    let mut csv: Writer<Vec<u8>> =
        WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        csv.write_record(row).map_err(Error::internal)?;
    }
    csv.into_inner().map(Bytes::from).map_err(|error| Error::internal(error.into_error()))
}

fn storage_unavailable(error: FilesError) -> Error {
    let message = "file storage is unavailable, try again later".to_owned();
    Error::Upstream { message, detail: error.to_string() }
}
