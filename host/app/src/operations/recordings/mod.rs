//! Recordings of plugin calls, for `tollhouse plugin replay` with another version.
//!
//! A call hands over its input and transcript without waiting. In the background, private data is
//! masked, the call is replayed with the same version, and the result is sealed and kept for a
//! limited time. Calls to identity registers are never recorded. Overload and shutdown drop queued
//! calls.

pub mod api;
mod store;

use std::{future::pending, sync::Arc};

use tokio::sync::{Mutex, mpsc};

pub use self::store::SEALED;
use crate::state::prelude::*;
use tollhouse_platform::telemetry::{Counter, Registry};
use tollhouse_plugins::{CompletedCall, Recorder, recording::Recording};

/// Maximum number of queued calls, of a few MiB each; further ones are dropped.
const MAX_QUEUED: usize = 64;
const BATCH_SIZE: usize = 32;
const MAX_RECORDING_BYTES: usize = 4 << 20;

/// Queue of calls to record.
pub struct RecordingQueue {
    receiver: Mutex<mpsc::Receiver<CompletedCall>>,
    /// Dropped calls: too many were queued, or they were too large.
    dropped: Counter,
}

impl RecordingQueue {
    /// Returns the number of queued calls.
    pub async fn count(&self) -> usize {
        self.receiver.lock().await.len()
    }

    pub fn register(&self, registry: &mut Registry) {
        let what = "Plugin calls that were not recorded: queue full or call too large";
        registry.register("plugin_recordings_dropped", what, self.dropped.clone());
    }
}

/// Returns the recorder of calls, and the queue that it fills.
pub fn recorder() -> (Recorder, RecordingQueue) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    let forgotten = Counter::default();
    let waiting = RecordingQueue { receiver: Mutex::new(receiver), dropped: forgotten.clone() };
    let recorder = move |recorded: CompletedCall| {
        if sender.try_send(recorded).is_err() {
            forgotten.inc();
        }
    };
    (Arc::new(recorder), waiting)
}

/// Records queued calls until the server stops.
pub async fn persist(app: App) {
    loop {
        if let Err(error) = persist_batch(&app).await {
            tracing::error!(error = %error.chain(), "plugin calls could not be recorded");
        }
    }
}

/// Waits for calls and records them. Returns the number of recordings.
pub async fn persist_batch(app: &App) -> Result<usize> {
    let queue = app.slot::<RecordingQueue>();
    let mut waiting = Vec::new();
    if queue.receiver.lock().await.recv_many(&mut waiting, BATCH_SIZE).await == 0 {
        return pending().await; // this host does not record calls
    }
    let mut rows = Vec::new();
    for recorded in waiting {
        match seal_row(app, recorded).await {
            Some(row) => rows.push(row),
            None => drop(queue.dropped.inc()),
        }
    }
    let count = rows.len();
    if count > 0 {
        app.store.write(async move |tx| store::insert(tx, &rows).await).await?;
    }
    Ok(count)
}

/// Returns `None` if the recording is too large: requests and output of plugins are not limited.
async fn seal_row(app: &App, recorded: CompletedCall) -> Option<store::NewRecording> {
    let company_id = CompanyId::from(&*recorded.company);
    let (function, outcome) = (recorded.call.function().to_owned(), recorded.outcome.to_owned());
    let began_at = recorded.began;
    let recording = Recording::of(recorded, &app.random).await;
    let id = app.random.id(began_at);
    let text = json!(recording).to_string();
    (text.len() <= MAX_RECORDING_BYTES).then(|| store::NewRecording {
        recording: app.sealer.seal(&store::context(&company_id, &id), &text),
        call: store::RecordedCall {
            id,
            plugin: recording.plugin,
            version: recording.version,
            digest: recording.digest,
            function,
            outcome,
            faithful: recording.faithful,
            company_id,
            began_at,
        },
        keep_until: app.clock.now().plus_seconds(3600 * app.settings.recording_hours),
    })
}

/// Deletes expired recordings and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let now = app.clock.now();
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, now, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}
