//! The slots of a kind of job on this host, and how companies and destinations share them.
//!
//! **Companies**: a company starts another run only while it has fewer than the number of free
//! slots. Alone, it gets half of them; each of *n* companies gets one part in *n* + 1, and the last
//! part is free for a company that has none. A run is never preempted.
//!
//! **Destinations** share what their company may still take by the same rule, in two lanes. Runs
//! start in the quick lane. A run that takes longer than [`QUICK`] moves to the slow lane, whose
//! runs mostly wait; it holds a slot of the quick lane only until then. Until a run for its
//! destination succeeds quickly, the next ones start in the slow lane: the destination's circuit is
//! open. As long as nothing is known about a destination, it has one run in progress at a time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::values::id::CompanyId;

/// Slots of the quick lane, which all jobs without a destination use.
pub const QUICK_SLOTS: usize = 64;
/// Slots of the slow lane.
const SLOW_SLOTS: usize = 256;
/// Longest duration of a run in the quick lane, if it has a destination.
pub const QUICK: Duration = Duration::from_millis(100);
/// Maximum number of jobs of a kind per claim.
const MAX_PER_CLAIM: usize = 64;
/// Number of destinations, and of companies, that a kind remembers.
const MAX_REMEMBERED: usize = 10_000;

/// Company and destination.
pub type Queue = (CompanyId, String);

/// The slots of one kind.
pub struct Slots {
    state: Mutex<State>,
    /// Due jobs wait for a slot.
    wanted: AtomicBool,
    /// Notified when a slot is released while one is wanted.
    freed: Arc<Notify>,
}

struct State {
    quick: Lane,
    slow: Lane,
    /// Lane of the next run for a destination.
    lanes: HashMap<Queue, LaneName>,
    /// Number of the last grant per queue, and per company under an empty destination.
    turns: HashMap<Queue, u64>,
    grants: u64,
    /// Where the next scan of waiting companies begins.
    scan: ScanPosition,
}

/// The last queue that a scan visited; without a destination, all of the company were visited.
pub type ScanPosition = (CompanyId, Option<String>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LaneName {
    Quick,
    Slow,
}

/// Runs in progress of a lane.
struct Lane {
    size: usize,
    running: usize,
    companies: HashMap<CompanyId, usize>,
    destinations: HashMap<Queue, usize>,
}

impl Lane {
    fn new(size: usize) -> Lane {
        Lane { size, running: 0, companies: HashMap::new(), destinations: HashMap::new() }
    }

    fn free(&self) -> usize {
        self.size.saturating_sub(self.running)
    }

    fn of_company(&self, company_id: &CompanyId) -> usize {
        self.companies.get(company_id).copied().unwrap_or_default()
    }

    fn of_queue(&self, queue: &Queue) -> usize {
        self.destinations.get(queue).copied().unwrap_or_default()
    }

    fn has_room(&self, queue: &Queue) -> bool {
        let left = self.free().saturating_sub(self.of_company(&queue.0));
        left > if queue.1.is_empty() { 0 } else { self.of_queue(queue) }
    }

    fn add(&mut self, queue: &Queue) {
        self.running += 1;
        *self.companies.entry(queue.0.clone()).or_default() += 1;
        *self.destinations.entry(queue.clone()).or_default() += 1;
    }

    fn remove(&mut self, queue: &Queue) {
        self.running -= 1;
        decrement(&mut self.companies, &queue.0);
        decrement(&mut self.destinations, queue);
    }
}

fn decrement<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl State {
    fn lane(&mut self, name: LaneName) -> &mut Lane {
        match name {
            LaneName::Quick => &mut self.quick,
            LaneName::Slow => &mut self.slow,
        }
    }

    /// Takes a slot for a queue, if it may have another one.
    fn take(&mut self, queue: &Queue) -> Option<LaneName> {
        let is_idle = || self.quick.of_queue(queue) + self.slow.of_queue(queue) == 0;
        let name = match (queue.1.is_empty(), self.lanes.get(queue)) {
            (true, _) => LaneName::Quick,
            (false, Some(LaneName::Slow)) => LaneName::Slow,
            // A quick run may move to the slow lane, however many run there.
            (false, _) if self.slow.of_company(&queue.0) >= SLOW_SLOTS => return None,
            (false, Some(LaneName::Quick)) => LaneName::Quick,
            (false, None) if is_idle() => LaneName::Quick,
            (false, None) => return None,
        };
        let lane = self.lane(name);
        if !lane.has_room(queue) {
            return None;
        }
        lane.add(queue);
        self.grants += 1;
        let (company, grants) = ((queue.0.clone(), String::new()), self.grants);
        remember(&mut self.turns, company, grants);
        remember(&mut self.turns, queue.clone(), grants);
        Some(name)
    }

    /// Sorts queues by turns: the company that was granted a slot least recently is first, each
    /// with its least recent destination, then each with its next one.
    fn sort_by_turn(&self, waiting: Vec<(Queue, usize)>) -> Vec<(Queue, usize)> {
        let turn = |queue: &Queue| self.turns.get(queue).copied().unwrap_or_default();
        let mut companies: BTreeMap<CompanyId, Vec<(u64, Queue, usize)>> = BTreeMap::new();
        for (queue, count) in waiting {
            companies.entry(queue.0.clone()).or_default().push((turn(&queue), queue, count));
        }
        let mut sorted = Vec::new();
        for (company_id, mut queues) in companies {
            let turn = turn(&(company_id, String::new()));
            queues.sort();
            let places = queues.into_iter().enumerate();
            sorted.extend(places.map(|(n, (_, queue, count))| (n, turn, queue, count)));
        }
        sorted.sort();
        sorted.into_iter().map(|(_, _, queue, count)| (queue, count)).collect()
    }
}

/// Forgets everything before it exceeds its bound.
fn remember<V>(map: &mut HashMap<Queue, V>, queue: Queue, value: V) {
    if map.len() >= MAX_REMEMBERED && !map.contains_key(&queue) {
        map.clear();
    }
    map.insert(queue, value);
}

impl Slots {
    pub fn new(freed: Arc<Notify>) -> Slots {
        let state = State {
            quick: Lane::new(QUICK_SLOTS),
            slow: Lane::new(SLOW_SLOTS),
            lanes: HashMap::new(),
            turns: HashMap::new(),
            grants: 0,
            scan: Default::default(),
        };
        Slots { state: Mutex::new(state), wanted: AtomicBool::new(false), freed }
    }

    /// Declares whether due jobs wait for a slot. While they do, each release notifies.
    pub fn set_wanted(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::SeqCst);
    }

    pub fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Returns the number of runs in progress.
    pub fn running(&self) -> usize {
        let state = self.lock();
        state.quick.running + state.slow.running
    }

    pub fn are_full(&self) -> bool {
        let state = self.lock();
        state.quick.free() == 0 && (state.lanes.is_empty() || state.slow.free() == 0)
    }

    /// Takes slots in turn for queues with these numbers of waiting jobs, or upper bounds of them.
    /// More slots are wanted if not all jobs get one.
    pub fn grant(self: &Arc<Slots>, waiting: Vec<(Queue, usize)>) -> BTreeMap<Queue, Vec<Slot>> {
        let mut state = self.lock();
        let all = waiting.iter().fold(0_usize, |all, (_, count)| all.saturating_add(*count));
        let mut left = state.sort_by_turn(waiting);
        let (mut granted, mut total) = (BTreeMap::<Queue, Vec<Slot>>::new(), 0);
        while !left.is_empty() {
            // A queue that cannot get another slot now cannot get one later in this call.
            left.retain_mut(|(queue, count)| {
                let lane = (*count > 0 && total < MAX_PER_CLAIM).then(|| state.take(queue));
                let Some(lane) = lane.flatten() else { return false };
                let slot = self.slot(queue.clone(), lane);
                granted.entry(queue.clone()).or_default().push(slot);
                (*count, total) = (*count - 1, total + 1);
                true
            });
        }
        self.set_wanted(total < all);
        granted
    }

    /// Takes a slot for a job that is claimed already.
    pub fn exceed(self: &Arc<Slots>, queue: Queue) -> Slot {
        self.lock().quick.add(&queue);
        self.slot(queue, LaneName::Quick)
    }

    fn slot(self: &Arc<Slots>, queue: Queue, lane: LaneName) -> Slot {
        Slot { slots: self.clone(), queue, lane, is_used: false }
    }

    pub fn scan_position(&self) -> ScanPosition {
        self.lock().scan.clone()
    }

    pub fn set_scan_position(&self, at: ScanPosition) {
        self.lock().scan = at;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        if self.are_wanted() {
            self.freed.notify_one();
        }
    }
}

/// A slot of this host, released when it is dropped.
pub struct Slot {
    slots: Arc<Slots>,
    queue: Queue,
    lane: LaneName,
    /// A job runs in this slot.
    is_used: bool,
}

impl Slot {
    /// Assigns a job. Releasing a slot without a job notifies no worker: its queue is empty, or its
    /// jobs are locked.
    pub fn start(mut self) -> Slot {
        self.is_used = true;
        self
    }

    pub fn has_destination(&self) -> bool {
        !self.queue.1.is_empty()
    }

    /// Moves the run to the slow lane: it takes longer than [`QUICK`], and may be hanging.
    pub fn move_to_slow_lane(&mut self) {
        if self.has_destination() && self.lane == LaneName::Quick {
            let mut state = self.slots.lock();
            state.quick.remove(&self.queue);
            state.slow.add(&self.queue);
            remember(&mut state.lanes, self.queue.clone(), LaneName::Slow);
            drop(state);
            self.lane = LaneName::Slow;
            self.slots.notify();
        }
    }

    /// Records for the destination whether the run has succeeded quickly.
    pub fn record(&self, is_healthy: bool) {
        if self.has_destination() {
            let lane = if is_healthy { LaneName::Quick } else { LaneName::Slow };
            remember(&mut self.slots.lock().lanes, self.queue.clone(), lane);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().lane(self.lane).remove(&self.queue);
        if self.is_used {
            self.slots.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 1_000;

    fn slots() -> Arc<Slots> {
        Arc::new(Slots::new(Arc::default()))
    }

    fn queue(company: &str, destination: &str) -> Queue {
        (company.into(), destination.to_owned())
    }

    /// Grants slots to queues of which many jobs wait.
    fn grant(slots: &Arc<Slots>, queues: &[Queue]) -> BTreeMap<Queue, Vec<Slot>> {
        slots.grant(queues.iter().map(|queue| (queue.clone(), MANY)).collect())
    }

    fn counts(granted: &BTreeMap<Queue, Vec<Slot>>) -> Vec<usize> {
        granted.values().map(Vec::len).collect()
    }

    /// Runs a quick job of each queue.
    fn prove(slots: &Arc<Slots>, queues: &[Queue]) {
        for slot in grant(slots, queues).into_values().flatten() {
            slot.record(true);
        }
    }

    #[test]
    fn a_company_gets_half_and_each_of_several_an_equal_part() {
        let slots = slots();
        assert_eq!(counts(&grant(&slots, &[queue("a", "")])), [32]);
        let three = ["a", "b", "c"].map(|company| queue(company, ""));
        assert_eq!(counts(&grant(&slots, &three)), [16, 16, 16]);
        let busy = grant(&slots, &[queue("a", "")]);
        assert_eq!(counts(&grant(&slots, &three)), [11, 11]);
        drop(busy);
    }

    #[test]
    fn destinations_share_what_their_company_may_take() {
        let slots = slots();
        let queues = [queue("a", "x"), queue("a", "y")];
        assert_eq!(counts(&grant(&slots, &queues)), [1, 1]); // nothing is known of them
        prove(&slots, &queues);
        let busy = grant(&slots, &queues[..1]);
        assert_eq!(counts(&busy), [22]);
        assert_eq!(counts(&grant(&slots, &queues)), [7]);
    }

    #[test]
    fn a_slow_run_leaves_the_quick_lane_and_its_destination_stays_in_the_slow_one() {
        let slots = slots();
        let (hanging, healthy) = (queue("a", "x"), queue("a", "y"));
        prove(&slots, &[hanging.clone(), healthy.clone()]);
        let mut busy: Vec<Slot> =
            grant(&slots, std::slice::from_ref(&hanging)).into_values().flatten().collect();
        busy.iter_mut().for_each(Slot::move_to_slow_lane);
        assert_eq!((busy.len(), slots.lock().quick.running), (22, 0));
        let queues = [hanging.clone(), healthy];
        // Both lanes grant as many as one claim takes.
        assert_eq!(counts(&grant(&slots, &queues)), [MAX_PER_CLAIM - 22, 22]);
        busy[0].record(true);
        assert_eq!(counts(&grant(&slots, &queues)), [13, 13]);
    }

    #[test]
    fn hanging_destinations_of_a_company_leave_slots_for_its_others() {
        let slots = slots();
        let mut busy = Vec::new();
        for n in 0..1_000 {
            let granted = grant(&slots, &[queue("a", &n.to_string())]);
            busy.extend(granted.into_values().flatten());
            busy.iter_mut().for_each(Slot::move_to_slow_lane);
        }
        assert_eq!(busy.len(), SLOW_SLOTS);
        busy.truncate(SLOW_SLOTS - 1);
        let [own, other] = [queue("a", "healthy"), queue("b", "healthy")];
        assert_eq!(counts(&grant(&slots, &[own, other])), [1, 1]);
    }

    #[test]
    fn known_slow_destinations_of_a_company_get_half_of_the_slow_lane() {
        let slots = slots();
        let queues: Vec<Queue> = (0..100).map(|n| queue("a", &n.to_string())).collect();
        for queue in &queues {
            slots.lock().lanes.insert(queue.clone(), LaneName::Slow);
        }
        let busy: Vec<_> = (0..10).map(|_| grant(&slots, &queues)).collect();
        let running = busy.iter().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>();
        assert_eq!(running, SLOW_SLOTS / 2);
    }

    #[test]
    fn companies_with_few_slots_left_take_turns() {
        let slots = slots();
        let companies: Vec<Queue> = (0..100).map(|n| queue(&format!("c{n:03}"), "")).collect();
        let mut busy: Vec<Slot> = grant(&slots, &companies).into_values().flatten().collect();
        assert_eq!(busy.len(), QUICK_SLOTS);
        let mut seen: std::collections::BTreeSet<Queue> =
            busy.iter().map(|slot| slot.queue.clone()).collect();
        for _ in 0..36 {
            drop(busy.remove(0));
            let granted = grant(&slots, &companies);
            seen.extend(granted.keys().cloned());
            busy.extend(granted.into_values().flatten());
        }
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn destinations_of_a_company_take_turns() {
        let slots = slots();
        let others: Vec<Queue> = (0..62).map(|n| queue(&format!("c{n:03}"), "")).collect();
        let _busy = grant(&slots, &others);
        let queues: Vec<Queue> = (0..5).map(|n| queue("a", &n.to_string())).collect();
        let next = || grant(&slots, &queues).into_keys().map(|queue| queue.1).collect::<Vec<_>>();
        let seen: Vec<Vec<String>> = (0..6).map(|_| next()).collect();
        assert_eq!(seen, [["0"], ["1"], ["2"], ["3"], ["4"], ["0"]]);
    }
}
