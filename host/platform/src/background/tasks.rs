//! Background tasks: those that outlive their request, which shutdown waits for, and supervised
//! ones that run until shutdown. Panics of both are counted.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::{
    error::from_panic,
    limits::owner::{self, on_behalf_of},
    telemetry::metric::{Counter, Family, Label, Registry},
};

/// Pause before a panicked task is restarted, so that an immediate panic does not use up a CPU.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Metric label of tasks without a name.
const UNNAMED: &str = "other";

/// Counts running tasks. Cheap to clone; all clones share the count.
#[derive(Clone)]
pub struct Tasks {
    /// Panics by task. Begins at 0, so that the first panic is visible as an increase.
    panics: Family<Label<&'static str>, Counter>,
    tracker: TaskTracker,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let (panics, tracker) = (Family::default(), TaskTracker::new());
        drop(panics.get_or_create(&[("task", UNNAMED)]));
        // A closed tracker still spawns; closing only lets `wait` return.
        tracker.close();
        Tasks { panics, tracker }
    }
}

impl Tasks {
    pub fn register(&self, registry: &mut Registry) {
        let panics = self.panics.clone();
        registry.register("task_panics", "Panics of background tasks", panics);
    }

    /// Runs `work` to completion, even if the handle is dropped. It keeps the caller's span, and
    /// works on behalf of the same owner.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let panics = self.panics.get_or_create_owned(&[("task", UNNAMED)]);
        let work = async move {
            let done = AssertUnwindSafe(work).catch_unwind().await;
            done.unwrap_or_else(|panic| {
                panics.inc();
                std::panic::resume_unwind(panic)
            })
        };
        let work = work.in_current_span();
        match owner::current() {
            Some(owner) => self.tracker.spawn(on_behalf_of(owner, work)),
            None => self.tracker.spawn(work),
        }
    }

    /// Runs the endless future of `work` until the handle is aborted. Restarts it after a panic:
    /// its state is in the database, and requests are not affected.
    pub fn spawn_supervised<F>(
        &self,
        name: &'static str,
        work: impl Fn() -> F + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send,
    {
        let panics = self.panics.get_or_create_owned(&[("task", name)]);
        tokio::spawn(async move {
            while let Err(panic) = AssertUnwindSafe(async { work().await }).catch_unwind().await {
                panics.inc();
                let error = from_panic(panic).chain();
                tracing::error!(task = name, error, "background task is restarted");
                tokio::time::sleep(RESTART_DELAY).await;
            }
        })
    }

    /// Resolves when no spawned task is running. Supervised tasks are not counted.
    pub async fn wait_until_idle(&self) {
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use tokio::sync::{Notify, oneshot};

    use super::*;
    use crate::clock::Timestamp;
    use crate::telemetry::Telemetry;

    fn scrape(tasks: &Tasks) -> String {
        Telemetry::new(Timestamp(0)).with(|registry| tasks.register(registry)).scrape()
    }

    #[tokio::test]
    async fn detached_tasks_run_to_completion() {
        let tasks = Tasks::default();
        let (go, gone) = oneshot::channel::<()>();
        drop(tasks.spawn(gone));
        let mut finished = Box::pin(tasks.wait_until_idle());
        assert!(futures::poll!(&mut finished).is_pending());
        go.send(()).unwrap();
        finished.await;
        tasks.wait_until_idle().await;
    }

    #[tokio::test]
    async fn a_panic_is_counted_and_ends_the_task() {
        let tasks = Tasks::default();
        assert!(scrape(&tasks).contains("tollhouse_task_panics_total{task=\"other\"} 0"));
        assert!(tasks.spawn(async { panic!("of a task") }).await.is_err());
        tasks.wait_until_idle().await;
        assert!(scrape(&tasks).contains("tollhouse_task_panics_total{task=\"other\"} 1"));
    }

    #[tokio::test]
    async fn a_supervised_task_is_restarted_after_each_panic() {
        let (tasks, runs, third) =
            (Tasks::default(), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (counted, begun) = (runs.clone(), third.clone());
        let kept = tasks.spawn_supervised("clockwork", move || {
            // The first run panics before its first await, the second after it.
            let run = counted.fetch_add(1, SeqCst);
            assert!(run > 0, "of the first run");
            let begun = begun.clone();
            async move {
                tokio::task::yield_now().await;
                assert!(run > 1, "of the second run");
                begun.notify_one();
                std::future::pending().await
            }
        });
        let patience = Duration::from_secs(30);
        tokio::time::timeout(patience, third.notified()).await.expect("a third run");
        assert_eq!(runs.load(SeqCst), 3);
        assert!(scrape(&tasks).contains("tollhouse_task_panics_total{task=\"clockwork\"} 2"));
        kept.abort();
        assert!(kept.await.unwrap_err().is_cancelled());
    }
}
