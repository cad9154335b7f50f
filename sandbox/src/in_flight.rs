//! How many messages are being taken, so that whoever waits for quiet waits for them, too.

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct InFlight(watch::Sender<usize>);

/// One message under way, until it is dropped.
pub(crate) struct Flight(watch::Sender<usize>);

impl InFlight {
    pub(crate) fn begin(&self) -> Flight {
        self.0.send_modify(|count| *count += 1);
        Flight(self.0.clone())
    }

    /// Waits until nothing is under way.
    pub(crate) async fn none(&self) {
        // An error would say that the sender is gone, which is borrowed here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
