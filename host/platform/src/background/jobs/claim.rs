//! Claims due jobs: finds the queues in which they wait, takes slots for them in turn, and leases
//! the oldest of each.

use std::collections::BTreeMap;

use super::{
    Job, JobHost, LEASE_SECONDS,
    slots::{Queue, Slot, Slots},
    store,
};
use crate::{clock::Timestamp, error::Result, store::Tx};

/// Number of oldest due jobs that a claim reads per kind. If there are more, they may all be of one
/// company, so others are found by a scan.
const OLDEST: i64 = 256;
/// Number of steps of a scan per claim; a company takes two, and one per destination.
const SCAN_STEPS: i64 = 256;

/// Queues with their number of due jobs; `usize::MAX` if more than those counted may be due.
type Waiting = Vec<(Queue, usize)>;

/// Claims due jobs of these kinds; none on a host whose workers are disabled.
pub async fn claim<H: JobHost>(host: &H, kinds: Vec<&'static str>) -> Result<Vec<(Job, Slot)>> {
    let workers = host.workers();
    if !workers.enabled {
        return Ok(Vec::new());
    }
    let now = workers.clock.now();
    let mut granted: BTreeMap<&'static str, BTreeMap<Queue, Vec<Slot>>> = BTreeMap::new();
    for (kind, waiting) in waiting(host, kinds, now).await? {
        granted.insert(kind, workers.kinds[kind].slots.grant(waiting));
    }
    granted.retain(|_, queues| !queues.is_empty());
    if granted.is_empty() {
        return Ok(Vec::new());
    }
    let (lease, times) = (workers.random.token(""), [now, now.plus_seconds(LEASE_SECONDS)]);
    let share = |(queue, slots): (&Queue, &Vec<Slot>)| (queue.clone(), count(slots.len()));
    let shares = granted.iter().map(|(kind, queues)| (*kind, queues.iter().map(share).collect()));
    let shares: Vec<(&'static str, Vec<(Queue, i64)>)> = shares.collect();
    let claimed = workers.store.write(async move |tx| -> Result<_> {
        let mut jobs = Vec::new();
        for (kind, shares) in shares {
            jobs.extend(store::claim(tx, kind, &lease, times, &shares).await?);
        }
        Ok(jobs)
    });
    let mut jobs: Vec<Job> = claimed.await?;
    jobs.sort_by_key(|job| job.due_at);
    let with_slot = |job: Job| {
        let queue = (job.company_id.clone(), job.destination.clone());
        let slots = granted.get_mut(&*job.kind).and_then(|of_kind| of_kind.get_mut(&queue));
        let slot = slots.and_then(Vec::pop);
        // PostgreSQL may evaluate the limit of a share twice, with different rows.
        let slot = slot.unwrap_or_else(|| workers.kinds[&*job.kind].slots.exceed(queue));
        (job, slot.start())
    };
    Ok(jobs.into_iter().map(with_slot).collect())
}

/// Returns the queues in which jobs of these kinds are due. Their number is bounded.
async fn waiting<H: JobHost>(
    host: &H,
    kinds: Vec<&'static str>,
    now: Timestamp,
) -> Result<Vec<(&'static str, Waiting)>> {
    let store = &host.workers().store;
    let oldest = async |tx: &mut Tx| store::count_oldest_due(tx, &kinds, now, OLDEST).await;
    let oldest = store.select(oldest).await?;
    let mut found = Vec::new();
    for kind in &kinds {
        let of_kind = oldest.iter().filter(|(of, ..)| of == kind);
        let mut waiting: BTreeMap<Queue, usize> = of_kind
            .map(|(_, company_id, destination, due)| {
                ((company_id.clone(), destination.clone()), usize::try_from(*due).unwrap_or(0))
            })
            .collect();
        if waiting.values().sum::<usize>() >= usize::try_from(OLDEST).unwrap_or(0) {
            // More may be due.
            waiting.values_mut().for_each(|due| *due = usize::MAX);
            let others = scan(host, kind, now).await?;
            waiting.extend(others.into_iter().map(|queue| (queue, usize::MAX)));
        }
        if !waiting.is_empty() {
            found.push((*kind, waiting.into_iter().collect()));
        }
    }
    Ok(found)
}

/// Visits the next queues of a kind, and returns those in which a job is due. Successive calls
/// visit all queues in turn; one call suffices if they are few.
async fn scan<H: JobHost>(host: &H, kind: &str, now: Timestamp) -> Result<Vec<Queue>> {
    let workers = host.workers();
    let slots: &Slots = &workers.kinds[kind].slots;
    let (mut found, mut at, mut left) = (Vec::new(), slots.scan_position(), SCAN_STEPS);
    let mut from_first = at == Default::default();
    while left > 0 {
        let from = at.clone();
        let steps = async |tx: &mut Tx| store::scan_queues(tx, kind, &from, now, left).await;
        let steps = workers.store.select(steps).await?;
        left -= count(steps.len()).max(1);
        for (company_id, destination, is_due) in steps {
            let Some(company_id) = company_id else {
                left = if from_first { 0 } else { left };
                (at, from_first) = (Default::default(), true);
                break;
            };
            at = (company_id.clone(), destination.clone());
            found.extend(
                destination.filter(|_| is_due).map(|destination| (company_id, destination)),
            );
        }
    }
    slots.set_scan_position(at);
    Ok(found)
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
