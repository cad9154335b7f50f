//! Outgoing webhooks: their order, retries by the clock, and faults of sending.
//!
//! Webhooks of one subject (its lane) are sent one after another; lanes are concurrent.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use tollhouse_platform::{clock::Timestamp, crypto::tls};

use crate::{
    faults::{FaultKind, Faults},
    locked,
};

/// Providers time out after this long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_CONCURRENT: usize = 64;
/// Released webhooks share a lane, to keep their order.
const RELEASED_KEY: &str = "released";

#[derive(Clone)]
pub(crate) struct Delivery {
    pub ordering_key: String,
    pub method: reqwest::Method,
    pub url: String,
    pub body: String,
    pub signatures: Vec<SignatureHeader>,
    /// Milliseconds until the next attempt after this many failures; `None` gives up.
    pub retry_ms: fn(u32) -> Option<i64>,
}

/// A header that authenticates the sender, computed from the body when it is sent.
#[derive(Clone)]
pub(crate) struct SignatureHeader {
    header: &'static str,
    sign: fn(key: &str, body: &[u8]) -> String,
    key: String,
}

impl SignatureHeader {
    pub(crate) fn new(
        header: &'static str,
        sign: fn(key: &str, body: &[u8]) -> String,
        key: &str,
    ) -> SignatureHeader {
        SignatureHeader { header, sign, key: key.to_owned() }
    }
}

struct QueuedDelivery {
    delivery: Delivery,
    failures: u32,
    due: Timestamp,
    delay: Duration,
}

#[derive(Default)]
struct State {
    queue: VecDeque<QueuedDelivery>,
    active_keys: HashSet<String>,
    held: Vec<Delivery>,
    reordered: Vec<Delivery>,
}

pub(crate) struct Outbox {
    state: Mutex<State>,
    faults: Faults,
    client: reqwest::Client,
    slots: Semaphore,
    done: AtomicUsize,
    wake: Notify,
    finished: Notify,
}

impl Outbox {
    pub(crate) fn new(faults: Faults) -> Outbox {
        let client = tls::http_client()
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client without files or addresses can be built");
        Outbox {
            state: Mutex::default(),
            faults,
            client,
            slots: Semaphore::new(MAX_CONCURRENT),
            done: AtomicUsize::new(0),
            wake: Notify::new(),
            finished: Notify::new(),
        }
    }

    /// Queues a webhook, or applies the next fault to it.
    pub(crate) fn enqueue(&self, mut delivery: Delivery, now: Timestamp) {
        let fault = self.faults.take("notification", |_| true);
        let state = &mut *locked(&self.state);
        match fault.as_ref().map(|fault| fault.kind) {
            Some(FaultKind::Cut) => return,
            Some(FaultKind::Hold) => return state.held.push(delivery),
            Some(FaultKind::Reorder) => {
                state.reordered.push(delivery);
                if fault.is_some_and(|fault| fault.times == 0) {
                    state.release_reordered(now);
                }
            }
            Some(FaultKind::Duplicate) => {
                state.queue.push_back(QueuedDelivery::new(delivery.clone(), now));
                state.queue.push_back(QueuedDelivery::new(delivery, now));
            }
            kind => {
                if kind == Some(FaultKind::Malformed) {
                    delivery.body.truncate(delivery.body.len().saturating_sub(2));
                }
                let delay = Duration::from_millis(fault.map_or(0, |fault| fault.delay_ms));
                state
                    .queue
                    .push_back(QueuedDelivery { delay, ..QueuedDelivery::new(delivery, now) });
            }
        }
        self.wake.notify_one();
    }

    pub(crate) fn release(&self, now: Timestamp) -> usize {
        let mut state = locked(&self.state);
        let count = state.held.len() + state.reordered.len();
        let held = std::mem::take(&mut state.held);
        state
            .queue
            .extend(held.into_iter().map(|delivery| QueuedDelivery::released(delivery, now)));
        state.release_reordered(now);
        drop(state);
        self.wake.notify_one();
        count
    }

    /// Starts sending every webhook that is due and whose lane is free.
    pub(crate) fn dispatch_due(self: &Arc<Self>, now: Timestamp) {
        let mut state = locked(&self.state);
        let mut waiting = VecDeque::new();
        while let Some(queued) = state.queue.pop_front() {
            if queued.due <= now && state.active_keys.insert(queued.delivery.ordering_key.clone()) {
                tokio::spawn(self.clone().send(queued, now));
            } else {
                waiting.push_back(queued);
            }
        }
        state.queue = waiting;
    }

    async fn send(self: Arc<Self>, mut queued: QueuedDelivery, now: Timestamp) {
        let delivered = {
            let _slot = self.slots.acquire().await;
            tokio::time::sleep(queued.delay).await;
            self.deliver(&queued.delivery).await
        };
        let mut state = locked(&self.state);
        state.active_keys.remove(&queued.delivery.ordering_key);
        if !delivered {
            queued.failures += 1;
            if let Some(wait) = (queued.delivery.retry_ms)(queued.failures) {
                queued.due = now.plus_ms(wait);
                queued.delay = Duration::ZERO;
                state.queue.push_back(queued);
            }
        }
        // Counted before the lane becomes free, so that a caller who waits for idleness sees it.
        self.record_done();
        drop(state);
        self.wake.notify_one();
        self.finished.notify_waiters();
    }

    /// Sends a webhook. Providers accept only 200 as confirmation.
    async fn deliver(&self, delivery: &Delivery) -> bool {
        let mut request = self
            .client
            .request(delivery.method.clone(), &delivery.url)
            .header("content-type", "application/json")
            .body(delivery.body.clone());
        for signature in &delivery.signatures {
            let value = (signature.sign)(&signature.key, delivery.body.as_bytes());
            request = request.header(signature.header, value);
        }
        match request.send().await {
            Ok(response) => response.status() == reqwest::StatusCode::OK,
            Err(error) => {
                tracing::debug!(%error, "webhook was not delivered");
                false
            }
        }
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            // Registered before the check, so that a change between the two is not missed.
            finished.as_mut().enable();
            if locked(&self.state).active_keys.is_empty() {
                return;
            }
            finished.await;
        }
    }

    pub(crate) fn has_due(&self, now: Timestamp) -> bool {
        locked(&self.state).queue.iter().any(|queued| queued.due <= now)
    }

    /// Counts a change that was processed.
    pub(crate) fn record_done(&self) {
        self.done.fetch_add(1, SeqCst);
    }

    pub(crate) fn take_done(&self) -> usize {
        self.done.swap(0, SeqCst)
    }

    pub(crate) async fn wait_for_work(&self) {
        self.wake.notified().await;
    }
}

impl State {
    fn release_reordered(&mut self, now: Timestamp) {
        let reordered = std::mem::take(&mut self.reordered);
        self.queue.extend(reordered.into_iter().rev().map(|d| QueuedDelivery::released(d, now)));
    }
}

impl QueuedDelivery {
    fn new(delivery: Delivery, now: Timestamp) -> QueuedDelivery {
        QueuedDelivery { delivery, failures: 0, due: now, delay: Duration::ZERO }
    }

    fn released(delivery: Delivery, now: Timestamp) -> QueuedDelivery {
        QueuedDelivery::new(Delivery { ordering_key: RELEASED_KEY.to_owned(), ..delivery }, now)
    }
}
