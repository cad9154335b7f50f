//! Work that nobody may wait for: what outlives the request it came from, for which a host that stops waits, and what goes on for
//! as long as the host serves. A panic of either is counted.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::{sync::watch, task::JoinHandle};
use tracing::Instrument;

use crate::{error::panicked, telemetry::TaskMetrics};

/// Before work that panicked is begun again: a bug that shows at once must not take a processor.
const PAUSE: Duration = Duration::from_secs(1);

/// What metrics call all work that has no name of its own.
const OTHER: &str = "other";

/// Counts what is under way. Cheap to clone; the clones count together.
#[derive(Clone)]
pub struct Tasks {
    pub metrics: TaskMetrics,
    under_way: Arc<watch::Sender<usize>>,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let metrics = TaskMetrics::default();
        metrics.began(OTHER);
        Tasks { metrics, under_way: Arc::new(watch::Sender::new(0)) }
    }
}

impl Tasks {
    /// Runs `work` to its end, whether or not anybody waits for that. It keeps the caller's span.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let counted = Counted::new(self);
        let work = async move {
            let done = AssertUnwindSafe(work).catch_unwind().await;
            done.unwrap_or_else(|panic| {
                counted.0.metrics.panicked(OTHER);
                std::panic::resume_unwind(panic)
            })
        };
        tokio::spawn(work.in_current_span())
    }

    /// Runs what `work` makes, which does not end, until the handle is aborted. When it panics it is begun again: it keeps what it
    /// knows in the database, and the requests that the host serves meanwhile have no part in the bug.
    pub fn keep<F>(
        &self,
        name: &'static str,
        work: impl Fn() -> F + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send,
    {
        let metrics = self.metrics.clone();
        metrics.began(name);
        tokio::spawn(async move {
            while let Err(panic) = AssertUnwindSafe(async { work().await }).catch_unwind().await {
                metrics.panicked(name);
                let error = panicked(panic).chain();
                tracing::error!(task = name, error, "a background task is begun again");
                tokio::time::sleep(PAUSE).await;
            }
        })
    }

    /// Resolves when nothing is under way any more.
    pub async fn finished(&self) {
        let none = self.under_way.subscribe().wait_for(|count| *count == 0).await.is_ok();
        debug_assert!(none, "the sender lives in self");
    }
}

struct Counted(Tasks);

impl Counted {
    fn new(tasks: &Tasks) -> Counted {
        tasks.under_way.send_modify(|count| *count += 1);
        Counted(tasks.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use tokio::sync::{Notify, oneshot};

    use super::*;
    use crate::clock::Timestamp;
    use crate::telemetry::Telemetry;

    fn scrape(tasks: &Tasks) -> String {
        Telemetry::new(Timestamp(0)).with(|registry| tasks.metrics.register(registry)).scrape()
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_finished() {
        let tasks = Tasks::default();
        let (go, gone) = oneshot::channel::<()>();
        drop(tasks.spawn(gone));
        let mut finished = Box::pin(tasks.finished());
        assert!(futures::poll!(&mut finished).is_pending());
        go.send(()).unwrap();
        finished.await;
        tasks.finished().await;
    }

    #[tokio::test]
    async fn a_panic_is_counted_and_an_end() {
        let tasks = Tasks::default();
        assert!(scrape(&tasks).contains("tollhouse_task_panics_total{task=\"other\"} 0"));
        assert!(tasks.spawn(async { panic!("of a task") }).await.is_err());
        tasks.finished().await;
        assert!(scrape(&tasks).contains("tollhouse_task_panics_total{task=\"other\"} 1"));
    }

    #[tokio::test]
    async fn what_is_kept_is_begun_again_after_each_panic() {
        let (tasks, runs, third) =
            (Tasks::default(), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (counted, begun) = (runs.clone(), third.clone());
        let kept = tasks.keep("clockwork", move || {
            // The first panics before it waits for anything, the second after that.
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
