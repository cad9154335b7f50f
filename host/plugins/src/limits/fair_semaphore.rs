//! A semaphore that companies share. A company holds at most its maximum. Calls in progress are
//! served first, because their outcome would be unknown after a timeout; then companies by the
//! number of permits that they hold, and in turn, however many calls of each wait.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

pub struct FairSemaphore(Mutex<State>);

struct State {
    free: usize,
    max_per_company: usize,
    /// Companies that hold or wait for permits and, while any company waits, those that did.
    companies: HashMap<Arc<str>, Company>,
    /// Some companies may be idle.
    keeps_idle: bool,
    waiting: usize,
    /// Number of permits granted and of calls that waited so far.
    events: u64,
}

#[derive(Default)]
struct Company {
    held: usize,
    /// The value of [`State::events`] when it was last granted a permit.
    last_granted: u64,
    /// The value of [`State::events`] when its calls last began to wait.
    waits_since: u64,
    in_progress: VecDeque<oneshot::Sender<()>>,
    new: VecDeque<oneshot::Sender<()>>,
}

/// A permit, released when dropped.
#[must_use]
pub struct FairPermit<'s> {
    semaphore: &'s FairSemaphore,
    company: Arc<str>,
}

/// A place in the queue. Dropping it leaves the queue.
pub struct Waiting<'s> {
    semaphore: &'s FairSemaphore,
    company: Arc<str>,
    granted: oneshot::Receiver<()>,
    /// Whether the company held no permit and waited for none before.
    pub is_only: bool,
    is_done: bool,
}

impl FairSemaphore {
    pub fn new(permits: usize, max_per_company: usize) -> FairSemaphore {
        FairSemaphore(Mutex::new(State {
            free: permits,
            max_per_company,
            companies: HashMap::new(),
            keeps_idle: false,
            waiting: 0,
            events: 0,
        }))
    }

    pub fn available_permits(&self) -> usize {
        self.lock().free
    }

    /// Acquires a permit if the company may have one now.
    pub fn try_acquire(&self, company: &Arc<str>) -> Option<FairPermit<'_>> {
        self.lock().try_take(company).then(|| self.permit(company.clone()))
    }

    /// Waits for a permit.
    pub async fn acquire(&self, company: &Arc<str>, in_progress: bool) -> FairPermit<'_> {
        match self.try_acquire_or_wait(company, in_progress) {
            Ok(permit) => permit,
            Err(waiting) => waiting.permit().await,
        }
    }

    /// Acquires a permit if the company may have one now, else a place in the queue.
    pub fn try_acquire_or_wait(
        &self,
        company: &Arc<str>,
        in_progress: bool,
    ) -> Result<FairPermit<'_>, Waiting<'_>> {
        let mut state = self.lock();
        let is_only = state.companies.get(company).is_none_or(Company::is_idle);
        if state.try_take(company) {
            return Ok(self.permit(company.clone()));
        }
        let granted = state.wait(company, in_progress);
        let company = company.clone();
        Err(Waiting { semaphore: self, company, granted, is_only, is_done: false })
    }

    fn permit(&self, company: Arc<str>) -> FairPermit<'_> {
        FairPermit { semaphore: self, company }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'s> Waiting<'s> {
    pub async fn permit(mut self) -> FairPermit<'s> {
        // The sender is dropped only after it has sent.
        let _ = (&mut self.granted).await;
        self.is_done = true;
        self.semaphore.permit(self.company.clone())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.semaphore.lock();
        self.granted.close();
        match self.granted.try_recv() {
            Ok(()) => state.release(&self.company),
            Err(_) => state.leave(&self.company),
        }
    }
}

impl Drop for FairPermit<'_> {
    fn drop(&mut self) {
        self.semaphore.lock().release(&self.company);
    }
}

impl State {
    fn try_take(&mut self, name: &Arc<str>) -> bool {
        let held = self.companies.get(name).map_or(0, |company| company.held);
        let takes = self.free > 0 && held < self.max_per_company;
        if takes {
            self.take(name);
        }
        takes
    }

    fn take(&mut self, name: &Arc<str>) {
        self.free -= 1;
        self.events += 1;
        let company = self.companies.entry(name.clone()).or_default();
        company.held += 1;
        company.last_granted = self.events;
    }

    fn wait(&mut self, name: &Arc<str>, in_progress: bool) -> oneshot::Receiver<()> {
        let (grant, granted) = oneshot::channel();
        self.events += 1;
        let company = self.companies.entry(name.clone()).or_default();
        if company.waiting() == 0 {
            company.waits_since = self.events;
        }
        match in_progress {
            true => company.in_progress.push_back(grant),
            false => company.new.push_back(grant),
        }
        self.waiting += 1;
        granted
    }

    /// Removes the calls that no longer wait.
    fn leave(&mut self, name: &Arc<str>) {
        if let Some(company) = self.companies.get_mut(name) {
            let before = company.waiting();
            company.in_progress.retain(|grant| !grant.is_closed());
            company.new.retain(|grant| !grant.is_closed());
            self.waiting -= before - company.waiting();
        }
        self.forget_idle(name);
    }

    fn release(&mut self, name: &Arc<str>) {
        self.free += 1;
        if let Some(company) = self.companies.get_mut(name) {
            company.held -= 1;
        }
        while self.free > 0 && self.waiting > 0 {
            let Some((name, grant)) = self.next() else { break };
            self.waiting -= 1;
            // Else it was dropped at this moment.
            if grant.send(()).is_ok() {
                self.take(&name);
            }
        }
        self.forget_idle(name);
    }

    /// Removes the call to serve next from its queue. `None`: all companies that wait hold their
    /// maximum.
    fn next(&mut self) -> Option<(Arc<str>, oneshot::Sender<()>)> {
        let max = self.max_per_company;
        let may_have_one = self.companies.iter_mut().filter(|(_, company)| company.held < max);
        let waits = may_have_one.filter(|(_, company)| company.waiting() > 0);
        let order = |company: &Company| {
            let Company { held, last_granted, waits_since, .. } = company;
            (company.in_progress.is_empty(), *held, *last_granted, *waits_since)
        };
        let (name, company) = waits.min_by_key(|(_, company)| order(company))?;
        let grant = company.in_progress.pop_front().or_else(|| company.new.pop_front())?;
        Some((name.clone(), grant))
    }

    /// Forgets a company that is idle. While any company waits, it is kept with its last grant.
    fn forget_idle(&mut self, name: &Arc<str>) {
        if self.waiting > 0 {
            self.keeps_idle = true;
        } else if std::mem::take(&mut self.keeps_idle) {
            self.companies.retain(|_, company| !company.is_idle());
        } else if self.companies.get(name).is_some_and(Company::is_idle) {
            self.companies.remove(name);
        }
    }
}

impl Company {
    fn waiting(&self) -> usize {
        self.in_progress.len() + self.new.len()
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting() == 0
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn companies() -> [Arc<str>; 2] {
        ["a", "b"].map(Arc::from)
    }

    #[test]
    fn calls_in_progress_are_served_before_new_ones() {
        let (semaphore, [a, b]) = (FairSemaphore::new(1, 1), companies());
        let taken = semaphore.try_acquire(&a).expect("a permit");
        let new = [&a, &b].map(|company| semaphore.try_acquire_or_wait(company, false).err());
        let begun = [&a, &b].map(|company| semaphore.try_acquire_or_wait(company, true).err());
        drop(taken);
        let [mut new, mut begun] = [new, begun]
            .map(|all| all.map(|waiting| Box::pin(waiting.expect("none is free").permit())));
        for company in [1, 0] {
            assert!(new.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
            drop(begun[company].as_mut().now_or_never().expect("the call in progress"));
        }
        for company in [1, 0] {
            drop(new[company].as_mut().now_or_never().expect("then the new one"));
        }
        assert_eq!(semaphore.available_permits(), 1);
    }

    #[test]
    fn a_company_waits_for_no_queue_of_another() {
        for in_progress in [false, true] {
            let (semaphore, [busy, quiet]) = (FairSemaphore::new(1, 1), companies());
            let taken = semaphore.try_acquire(&busy).expect("a permit");
            let wait = |company| semaphore.try_acquire_or_wait(company, in_progress).err();
            let many: Vec<_> = (0..100).map(|_| wait(&busy)).collect();
            let one = wait(&quiet).expect("none is free");
            assert!(one.is_only && many.iter().flatten().all(|waiting| !waiting.is_only));
            drop(taken);
            assert!(one.permit().now_or_never().is_some(), "before all of the other company");
            let next = many.into_iter().next().flatten().expect("none was free");
            assert!(next.permit().now_or_never().is_some());
        }
    }

    #[test]
    fn a_company_with_a_queue_gets_its_turn_beside_those_that_come_again() {
        let (semaphore, busy) = (FairSemaphore::new(1, 1), Arc::from("busy"));
        let wait = |company| semaphore.try_acquire_or_wait(company, false).err();
        let mut held = semaphore.try_acquire(&busy);
        let mut queue = wait(&busy).expect("none is free").permit().boxed();
        let others: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).into();
        let mut again: Vec<_> = others.iter().map(|other| (other, wait(other))).collect();
        for turn in 0.. {
            drop(held.take());
            if queue.as_mut().now_or_never().is_some() {
                assert_eq!(turn, others.len());
                break;
            }
            let (other, waiting) = again.remove(0);
            held = waiting.and_then(|waiting| waiting.permit().now_or_never());
            assert!(held.is_some(), "in the order of arrival");
            again.push((other, wait(other)));
        }
    }

    #[test]
    fn a_company_that_holds_fewer_permits_is_served_first() {
        let (semaphore, [many, few]) = (FairSemaphore::new(4, 4), companies());
        let held = [&many, &many, &many, &few].map(|company| semaphore.try_acquire(company));
        let wait = |company| semaphore.try_acquire_or_wait(company, false).err();
        let [of_many, of_few] = [&many, &few].map(|company| wait(company).expect("none is free"));
        let [released, _rest @ ..] = held;
        drop(released);
        assert!(of_few.permit().now_or_never().is_some(), "though it was the last to get one");
        assert!(of_many.permit().now_or_never().is_some(), "after the other permit was released");
    }

    #[test]
    fn a_company_holds_at_most_its_maximum() {
        let (semaphore, [a, b]) = (FairSemaphore::new(2, 1), companies());
        let of_a = semaphore.try_acquire(&a);
        assert!(of_a.is_some() && semaphore.try_acquire(&a).is_none());
        let mut waits = Box::pin(semaphore.acquire(&a, true));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(semaphore.try_acquire(&b).is_some(), "half is left for others");
        assert!(waits.as_mut().now_or_never().is_none());
        drop(of_a);
        assert!(waits.now_or_never().is_some());
    }

    #[test]
    fn a_call_that_does_not_wait_any_more_gets_nothing() {
        let (semaphore, [a, b]) = (FairSemaphore::new(1, 1), companies());
        let wait = |company| semaphore.try_acquire_or_wait(company, false).err();
        let taken = semaphore.try_acquire(&a);
        let (first, second, third) = (wait(&a), wait(&b), wait(&b));
        drop(second);
        drop(taken);
        drop(third);
        let first = first.expect("none was free");
        assert!(first.permit().now_or_never().is_some(), "after a granted permit was not taken");
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.lock().companies.is_empty() && semaphore.lock().waiting == 0);
    }
}
