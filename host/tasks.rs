//! Work that outlives the request it came from. A host that stops waits for it.

use std::sync::Arc;

use tokio::{sync::watch, task::JoinHandle};
use tracing::Instrument;

/// Counts what is under way. Cheap to clone; the clones count together.
#[derive(Clone)]
pub struct Tasks(Arc<watch::Sender<usize>>);

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks(Arc::new(watch::Sender::new(0)))
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
            let _counted = counted;
            work.await
        };
        tokio::spawn(work.in_current_span())
    }

    /// Resolves when nothing is under way.
    pub async fn finished(&self) {
        let none = self.0.subscribe().wait_for(|count| *count == 0).await.is_ok();
        debug_assert!(none, "the sender lives in self");
    }
}

struct Counted(Tasks);

impl Counted {
    fn new(tasks: &Tasks) -> Counted {
        tasks.0.send_modify(|count| *count += 1);
        Counted(tasks.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

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
    async fn a_panic_is_counted_as_an_end() {
        let tasks = Tasks::default();
        assert!(tasks.spawn(async { panic!("of a task") }).await.is_err());
        tasks.finished().await;
    }
}
