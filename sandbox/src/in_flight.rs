//! How many messages are being taken, so that whoever waits for quiet waits for them, too.

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct InFlightCounter(watch::Sender<usize>);

/// One message under way, until it is dropped.
pub(crate) struct InFlightGuard(watch::Sender<usize>);

impl InFlightCounter {
    pub(crate) fn begin(&self) -> InFlightGuard {
        self.0.send_modify(|count| *count += 1);
        InFlightGuard(self.0.clone())
    }

    /// Waits until nothing is under way.
    pub(crate) async fn wait_until_idle(&self) {
        // An error would say that the sender is gone, which is borrowed here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
