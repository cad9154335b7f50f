//! Whose turn it is: those who need little processor time are not kept waiting by those who need much.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

/// Processor time after which a call goes on in the slow lane.
const FAST: Duration = Duration::from_millis(5);

/// Half of the processors, for calls that need much.
pub fn slow_lane() -> Semaphore {
    let half = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
    Semaphore::new(half.max(1))
}

/// Adds the time that a future is polled to `spent`: a guest runs in its polls, and never waits but for its turn. Who has spent much
/// goes on in the slow lane.
pub async fn paced<F: Future>(future: F, spent: &mut Duration, lane: &Semaphore) -> F::Output {
    let mut future = pin!(future);
    let mut in_lane = None;
    loop {
        let polled = poll_fn(|context| {
            let began = Instant::now();
            let polled = future.as_mut().poll(context);
            *spent += began.elapsed();
            Poll::Ready(polled)
        });
        if let Poll::Ready(output) = polled.await {
            return output;
        }
        match *spent > FAST && in_lane.is_none() {
            true => in_lane = lane.acquire().await.ok(),
            false => tokio::task::yield_now().await,
        }
    }
}
