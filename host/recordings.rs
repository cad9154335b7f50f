//! Calls of plugins that are written down, so that an operator sees what another version would have done: `tollhouse plugin replay`.
//!
//! A call hands over what it was and what it heard, and goes on. Beside it, people and what is private are masked, the call is
//! made once more with that by the same version, and what comes of it is sealed and kept for a while. What is asked of a
//! country's registers is never written down. A host that stops, or has too much to write down, forgets what waits.

pub mod api;
mod difference;
mod mask;
mod names;
mod recording;
mod repeat;
mod replay;
mod store;

use std::{future::pending, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

pub use self::{
    recording::Recording,
    replay::{Replayed, Replayer},
    store::SEALED,
};
use crate::{
    app::App,
    error::{Error, Result},
    plugins::{Recorded, Recorder},
    telemetry::{Counter, Registry},
};

/// Calls that wait to be written down, of a few MiB each at most; more are forgotten.
const MOST_WAITING: usize = 64;
/// Written in one transaction.
const AT_ONCE: usize = 32;
/// Of a recording.
const MOST_BYTES: usize = 4 << 20;

/// What waits to be written down.
pub struct Waiting {
    receiver: Mutex<mpsc::Receiver<Recorded>>,
    /// Calls that nobody wrote down: too many waited, or they were too large.
    forgotten: Counter,
}

impl Waiting {
    /// How many.
    pub async fn count(&self) -> usize {
        self.receiver.lock().await.len()
    }

    pub fn register(&self, registry: &mut Registry) {
        let what = "Calls that were to be written down, and were too many at once or too large";
        registry.register("plugin_recordings_forgotten", what, self.forgotten.clone());
    }
}

/// Who hears of calls, and what it has heard of.
#[must_use]
pub fn recorder() -> (Recorder, Waiting) {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    let forgotten = Counter::default();
    let waiting = Waiting { receiver: Mutex::new(receiver), forgotten: forgotten.clone() };
    let recorder = move |recorded: Recorded| {
        if sender.try_send(recorded).is_err() {
            forgotten.inc();
        }
    };
    (Arc::new(recorder), waiting)
}

/// Writes down what comes, for as long as the server lives.
pub async fn write_down(app: App) {
    loop {
        if let Err(error) = write_some(&app).await {
            tracing::error!(error = %error.chain(), "calls of plugins could not be written down");
        }
    }
}

/// Waits for calls and writes them down; answers how many it has kept.
pub async fn write_some(app: &App) -> Result<usize> {
    let mut waiting = Vec::new();
    let came = app.recordings.receiver.lock().await.recv_many(&mut waiting, AT_ONCE).await;
    if came == 0 {
        return pending().await; // nobody writes calls down on this host
    }
    let mut rows = Vec::new();
    for recorded in waiting {
        match row(app, recorded).await {
            Some(row) => rows.push(row),
            None => drop(app.recordings.forgotten.inc()),
        }
    }
    let count = rows.len();
    if count > 0 {
        app.store.write(async move |tx| store::insert(tx, &rows).await).await?;
    }
    Ok(count)
}

/// `None` when it is too large: what a plugin asks of its upstream, and what it says, knows no other bound.
async fn row(app: &App, recorded: Recorded) -> Option<store::New> {
    let company_id = recorded.company.to_string();
    let (function, outcome, began_at) =
        (recorded.call.function(), recorded.outcome, recorded.began);
    let recording = Recording::of(recorded, &app.random).await;
    let id = app.random.id(began_at);
    let text = json!(recording).to_string();
    (text.len() <= MOST_BYTES).then(|| store::New {
        recording: app.sealer.seal(&store::context(&company_id, &id), &text),
        company_id,
        id,
        plugin: recording.plugin,
        version: recording.version,
        digest: recording.digest,
        function,
        outcome,
        faithful: recording.faithful,
        began_at,
        keep_until: app.clock.now().plus_seconds(3600 * app.settings.recording_hours),
    })
}

/// Forgets calls that were kept for long enough; answers how many those were.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = app.clock.now();
        let swept =
            app.store.write_in_pieces(async move |tx, most| store::sweep(tx, now, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}
