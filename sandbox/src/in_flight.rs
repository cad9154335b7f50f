//! Counts the messages being processed, so that waiting for idleness includes them.

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct InFlightCounter(watch::Sender<usize>);

/// A message being processed, until it is dropped.
pub(crate) struct InFlightGuard(watch::Sender<usize>);

impl InFlightCounter {
    pub(crate) fn begin(&self) -> InFlightGuard {
        self.0.send_modify(|count| *count += 1);
        InFlightGuard(self.0.clone())
    }

    /// Waits until no message is being processed.
    pub(crate) async fn wait_until_idle(&self) {
        // An error would mean that the sender is dropped, but it is borrowed here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
