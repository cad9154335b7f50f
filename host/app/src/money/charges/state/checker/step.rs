//! The possible steps of hosts, provider, payer and time.

use super::{
    super::{Decision, Fact, Method, ReferenceSource, State, decide, is_verifiable},
    facts::to_fact,
    world::*,
};
use crate::money::charges::refund::Cause;

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub name: &'static str,
    pub method: Method,
    pub source: ReferenceSource,
    /// Number of charges, and of requests of each.
    pub charges: usize,
    pub requests: u8,
    pub refunds: usize,
    pub cause: Cause,
    /// Two owners share a lane.
    pub has_lane: bool,
    /// Starts with a page without a payer, and a second one that has a payer.
    pub has_lost_page: bool,
    /// Another system has used the first reference.
    pub is_taken: bool,
    /// The network may deliver a request twice.
    pub repeats: bool,
    /// If a provider certainly did not open a page, another one does.
    pub is_routed: bool,
}

/// A guard of the engine that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Late responses count for the current request.
    Fence,
    /// A request with an unknown outcome is forgotten.
    Unsure,
    /// A second success settles the owner again.
    SettledCheck,
    /// Any payment with the reference counts as the host's.
    OwnershipCheck,
    /// A page follows one that may still be opened.
    Supersede,
    /// The provider is called before the request is committed.
    CommitFirst,
    /// A payment that the provider does not know yet is requested again at once.
    Delay,
    /// A lane admits several charges.
    Lane,
    /// A charge takes what was owed when it was recorded.
    AmountCap,
    RefundFence,
    RefundUnsure,
    /// A charge may have two open refunds.
    RefundIndex,
}

/// A description of a step: what happens, and to which charge, refund or host.
pub type Action = (&'static str, usize);
/// The next world, or the invariant that the step violates.
pub type Next = Result<World, &'static str>;

pub struct Steps {
    pub scope: Scope,
    pub mutant: Option<Without>,
}

/// How the provider treats a request: its record, and its response.
type Arrival = (Record, Response);

impl Steps {
    pub fn lacks(&self, guard: Without) -> bool {
        self.mutant == Some(guard)
    }

    /// Returns all next worlds.
    pub fn next(&self, world: &World) -> Vec<(Action, Next)> {
        let mut next = Vec::new();
        self.begin(world, &mut next);
        for host in 0..HOSTS {
            self.advance(world, host, &mut next);
        }
        self.provider(world, &mut next);
        self.pass_time(world, &mut next);
        next
    }

    /// What an idle host may begin.
    fn begin(&self, world: &World, next: &mut Vec<(Action, Next)>) {
        let Some(host) = world.tasks.iter().position(|task| *task == Task::Idle) else { return };
        for (n, row) in world.rows() {
            let may_request = row.fence < self.scope.requests;
            if row.state == State::Queued && row.method != Method::Checkout && may_request {
                next.extend(self.take(world, host, n).map(|world| (("take", n), world)));
            }
            if row.method == Method::Checkout && may_request {
                next.extend(self.resume(world, host, n).map(|world| (("resume", n), Ok(world))));
            }
            let verifies = world.tasks.iter().any(|task| matches!(task, Task::Verifying { .. }));
            if !verifies && is_verifiable(&row.to_charge(n, self.scope.has_lane)) {
                let mut world = *world;
                let response = self.query(&world, n);
                world.tasks[host] = Task::Verifying { charge: n, fence: row.fence, response };
                next.push((("verify", n), Ok(world)));
            }
            for (what, is_part) in [("begin a refund", false), ("begin to refund a part", true)] {
                next.extend(self.begin_refund(world, n, is_part).map(|world| ((what, n), world)));
            }
        }
        for n in 0..REFUNDS {
            let Some(refund) = world.refunds[n] else { continue };
            let is_free = refund.lease != Lease::Held && refund.fence < self.scope.requests;
            // A request with an unknown outcome arrives before the next one of its refund, a minute
            // later (`Refund::busy_until`), or never.
            if refund.state.is_open() && is_free && !world.stray_refund[n] {
                next.push((("take the refund", n), Ok(self.take_refund(world, host, n))));
            }
        }
    }

    /// X2 of a queued charge: `request::take` and the owner's `turn`.
    pub fn take(&self, world: &World, host: usize, n: usize) -> Option<Next> {
        let row = world.charge(n);
        let is_held = world.rows().any(|(other, row)| other != n && row.holds_lane);
        if self.scope.has_lane && is_held && !self.lacks(Without::Lane) {
            return None;
        }
        let owed = match self.scope.has_lane {
            true => world.owed(),
            false if world.is_settled_by_another(n) => 0,
            false => AMOUNT,
        };
        let (mut world, mut row) = (*world, row);
        if owed == 0 && !row.unsure && !self.lacks(Without::AmountCap) {
            let is_certain = self.check_certain(&world, n);
            row.change(n, self.scope.has_lane, |charge, now| charge.cancel(now));
            world.charges[n] = Some(row);
            return Some(is_certain.and(Ok(world)));
        }
        let fence = row.fence + 1;
        if !self.lacks(Without::CommitFirst) {
            row.change(n, self.scope.has_lane, |charge, now| charge.claim(now));
            self.forget(&mut row);
            world.charges[n] = Some(row);
        }
        world.tasks[host] = Task::Request { charge: n, fence };
        Some(Ok(world))
    }

    /// `request::claim_page`.
    fn resume(&self, world: &World, host: usize, n: usize) -> Option<World> {
        let mut row = world.charge(n);
        let is_pending = row.is_undecided() && !world.is_settled_by_another(n);
        let needs_page = world.current(row.owner) == Some(n) && is_pending && !row.has_page;
        if !needs_page || row.leased {
            return None;
        }
        let mut world = *world;
        row.change(n, false, |charge, now| charge.claim(now));
        self.forget(&mut row);
        world.charges[n] = Some(row);
        world.tasks[host] = Task::Resume { charge: n, fence: row.fence };
        Some(world)
    }

    /// The next step of a host's task.
    fn advance(&self, world: &World, host: usize, next: &mut Vec<(Action, Next)>) {
        let with = |task: Task| {
            let mut world = *world;
            world.tasks[host] = task;
            Ok(world)
        };
        let responded = |charge, fence, response| Task::Responded { charge, fence, response };
        match world.tasks[host] {
            Task::Idle => return,
            Task::Request { charge, fence } => {
                let not_sent = responded(charge, fence, Response::Temporary);
                next.push((("cannot send", charge), with(not_sent)));
                next.push((("send", charge), with(Task::Waiting { charge, fence })));
                if self.scope.repeats {
                    let mut world = with(Task::Waiting { charge, fence }).expect("a world");
                    world.stray[charge] = true;
                    next.push((("send twice", charge), Ok(world)));
                }
            }
            Task::Waiting { charge, fence } => {
                for (record, response) in self.arrivals(world, charge) {
                    let mut world = with(responded(charge, fence, response)).expect("a world");
                    world.records[charge] = record;
                    next.push((("arrive", charge), Ok(world)));
                }
                let mut world = with(responded(charge, fence, Response::Lost)).expect("a world");
                world.stray[charge] = true;
                next.push((("time out", charge), Ok(world)));
            }
            Task::Resume { charge, fence } => {
                let response = self.query(world, charge);
                let resuming = Task::Resuming { charge, fence, response };
                next.push((("query", charge), with(resuming)));
                let lost = responded(charge, fence, Response::Lost);
                next.push((("cannot query", charge), with(lost)));
            }
            Task::Responded { charge, .. }
            | Task::Resuming { charge, .. }
            | Task::Verifying { charge, .. } => {
                next.push((("commit", charge), self.commit(world, host)));
            }
            Task::Refund { .. } | Task::RefundWaiting { .. } | Task::RefundResponded { .. } => {
                self.advance_refund(world, host, next);
            }
        }
        next.push((("stop a host", host), Ok(stop(world, host))));
    }

    /// X3 or X4, and what the host does then.
    pub fn commit(&self, world: &World, host: usize) -> Next {
        let mut world = *world;
        let (charge, fence, response) = match world.tasks[host] {
            Task::Responded { charge, fence, response }
            | Task::Resuming { charge, fence, response }
            | Task::Verifying { charge, fence, response } => (charge, fence, response),
            task => unreachable!("{task:?} has no response"),
        };
        let task = std::mem::replace(&mut world.tasks[host], Task::Idle);
        // The owner was deleted meanwhile.
        if world.charges[charge].is_none() {
            return Ok(world);
        }
        let decision = self.record(&mut world, charge, fence, response)?;
        let is_page = world.charges[charge].is_some_and(|row| row.method == Method::Checkout);
        match (task, decision) {
            (Task::Responded { .. }, Decision::Replace | Decision::Supersede) => {
                let fence = 1;
                if let Some(next) = self.follow(&mut world, charge)
                    && is_page
                {
                    world.tasks[host] = Task::Request { charge: next, fence };
                }
            }
            (Task::Responded { .. }, Decision::Requeue) if is_page && self.scope.is_routed => {
                self.fail_over(&mut world, host, charge);
            }
            (Task::Resuming { .. }, _) => self.reopen(&mut world, host, charge, fence, response),
            _ => {}
        }
        Ok(world)
    }

    /// Records a response by the real rules, and compares the decision with the truth.
    pub fn record(
        &self,
        world: &mut World,
        n: usize,
        fence: u8,
        response: Response,
    ) -> Result<Decision, &'static str> {
        let mut row = world.charge(n);
        let queried = match response {
            Response::NotFound { begun, requested } => Row { begun, requested, ..row },
            _ => row,
        };
        let mut charge = queried.to_charge(n, self.scope.has_lane);
        let is_late = fence != row.fence;
        let fence = if self.lacks(Without::Fence) { row.fence } else { fence };
        if self.lacks(Without::OwnershipCheck) {
            charge.reference_source = ReferenceSource::Host;
        }
        let now = match self.lacks(Without::Delay) {
            true => NOW.plus_seconds(3_600),
            false => NOW,
        };
        let fact = to_fact(response, now);
        let is_settled = world.is_settled_by_another(n) && !self.lacks(Without::SettledCheck);
        let decision = decide(&charge, is_settled, fence.into(), &fact, now);
        self.check_decision(world, n, queried, decision, &fact)?;
        if is_late && !is_money(decision) {
            return Err("C8: a late response changed a charge");
        }
        row.change(n, self.scope.has_lane, |charge, now| charge.record(decision, &fact, now));
        self.forget(&mut row);
        world.may_exceed |= decision == Decision::Fail && matches!(fact, Fact::NotFound(_));
        world.charges[n] = (decision != Decision::Forget).then_some(row);
        Ok(decision)
    }

    fn forget(&self, row: &mut Row) {
        row.unsure &= !self.lacks(Without::Unsure);
    }

    /// C6 and C7: a failure needs proof, and only the host's own payment counts.
    fn check_decision(
        &self,
        world: &World,
        n: usize,
        queried: Row,
        decision: Decision,
        fact: &Fact,
    ) -> Result<(), &'static str> {
        use Decision::{Fail, Forget, Mismatch, Replace, Requeue, Succeed, Surplus};
        match (decision, fact) {
            (Fail | Replace | Forget, Fact::Rejected(..)) => self.check_certain(world, n),
            (Requeue, Fact::Rejected(..)) if !queried.unsure => self.check_certain(world, n),
            (Fail, Fact::NotFound(_)) => {
                match queried.begun == Age::Hour
                    && queried.requested >= Age::Minute
                    && !queried.leased
                {
                    true => Ok(()),
                    false => Err("C6: a charge failed while its request was under way"),
                }
            }
            (Succeed | Surplus | Mismatch(_), _) => match world.records[n] {
                Record::Paid | Record::PaidShort | Record::Reversed => Ok(()),
                _ => Err("C7: a payment of another system was counted"),
            },
            _ => Ok(()),
        }
    }

    /// C6: nothing that the host sent can take money.
    fn check_certain(&self, world: &World, n: usize) -> Result<(), &'static str> {
        let is_sent = |task: &Task| matches!(task, Task::Waiting { charge, .. } if *charge == n);
        let has_nothing = matches!(world.records[n], Record::Nothing | Record::Foreign);
        let is_under_way = world.stray[n] || world.tasks.iter().any(is_sent);
        match self.scope.repeats || has_nothing && !is_under_way {
            true => Ok(()),
            false => Err("C6: a charge ended although a request may take money"),
        }
    }

    /// How the provider may treat a request for a charge.
    pub fn arrivals(&self, world: &World, n: usize) -> Vec<Arrival> {
        let record = world.records[n];
        if record != Record::Nothing {
            return vec![(record, Response::Duplicate)];
        }
        let mut arrivals = vec![
            (record, Response::Invalid),
            (record, Response::Refused),
            (record, Response::Temporary),
        ];
        match self.scope.method {
            Method::Checkout => arrivals.push((Record::Pending, Response::Session)),
            Method::Card | Method::Mandate => arrivals.extend([
                (Record::Pending, Response::Pending),
                (Record::Paid, Response::Paid),
                (Record::PaidShort, Response::PaidShort),
                (Record::Failed, Response::Failed),
            ]),
        }
        arrivals
    }

    /// The provider's response to a query about a charge.
    pub fn query(&self, world: &World, n: usize) -> Response {
        let Row { begun, requested, .. } = world.charge(n);
        match world.records[n] {
            Record::Nothing => Response::NotFound { begun, requested },
            Record::Foreign => Response::Foreign,
            Record::Pending => Response::Pending,
            Record::Paid => Response::Paid,
            Record::PaidShort => Response::PaidShort,
            Record::Failed => Response::Failed,
            Record::Reversed => Response::Reversed,
        }
    }

    /// What happens at the provider without a host.
    fn provider(&self, world: &World, next: &mut Vec<(Action, Next)>) {
        for (n, row) in world.charges.iter().enumerate() {
            let mut push = |name, record, stray| {
                let mut world = *world;
                world.records[n] = record;
                world.stray[n] = stray;
                next.push(((name, n), Ok(world)));
            };
            if world.stray[n] {
                for (record, _) in self.arrivals(world, n) {
                    push("a late request arrives", record, false);
                }
            }
            let stray = world.stray[n];
            // One charge with every outcome is enough.
            let is_first = n == 0;
            match world.records[n] {
                Record::Pending => {
                    push("pay", Record::Paid, stray);
                    push("fail", Record::Failed, stray);
                    if is_first {
                        push("pay too little", Record::PaidShort, stray);
                    }
                }
                // The payer tries again on the page.
                Record::Failed
                    if is_first && row.is_some_and(|row| row.method == Method::Checkout) =>
                {
                    push("pay after a failure", Record::Paid, stray);
                }
                Record::Paid | Record::PaidShort if is_first => {
                    push("reverse", Record::Reversed, stray);
                }
                _ => {}
            }
        }
        self.provider_refunds(world, next);
    }

    fn pass_time(&self, world: &World, next: &mut Vec<(Action, Next)>) {
        for (n, row) in world.rows() {
            if row.leased {
                let mut world = *world;
                world.charges[n] = Some(Row { leased: false, ..row });
                next.push((("the lease ends", n), Ok(world)));
            }
            if row.holds_lane && row.has_page && row.begun == Age::Hour {
                let mut world = *world;
                world.charges[n] = Some(Row { holds_lane: false, ..row });
                world.may_exceed = true;
                next.push((("release the lane", n), Ok(world)));
            }
        }
        for (n, refund) in world.refunds.iter().enumerate() {
            let Some(refund) = refund.filter(|refund| refund.lease == Lease::Held) else {
                continue;
            };
            let waits =
                |task: &Task| matches!(task, Task::RefundWaiting { refund, .. } if *refund == n);
            // A host that waits extends its lease.
            if !world.tasks.iter().any(waits) {
                let mut world = *world;
                world.refunds[n] = Some(RefundRow { lease: Lease::Ended, ..refund });
                next.push((("the lease of the refund ends", n), Ok(world)));
            }
        }
        next.push((("a minute passes", 0), Ok(pass(world, Age::Minute))));
        // No rule of checkout charges depends on an hour.
        if self.scope.method != Method::Checkout {
            next.push((("an hour passes", 0), Ok(pass(world, Age::Hour))));
        }
    }
}

/// Returns whether a decision is about money that moved, or changes nothing.
fn is_money(decision: Decision) -> bool {
    use Decision::{Foreign, Ignore, Mismatch, Reverse, Succeed, Surplus};
    matches!(decision, Succeed | Surplus | Mismatch(_) | Reverse | Ignore | Foreign)
}

/// Returns the world after some time. Requests that were begun are as old or older.
pub fn pass(world: &World, age: Age) -> World {
    let older = |row: Row| match row.fence {
        0 => row,
        _ => Row { begun: row.begun.max(age), requested: row.requested.max(age), ..row },
    };
    World { charges: world.charges.map(|row| row.map(older)), ..*world }
}

/// Returns the world after a host stopped. A request that it sent may still arrive.
fn stop(world: &World, host: usize) -> World {
    let mut world = *world;
    match std::mem::replace(&mut world.tasks[host], Task::Idle) {
        Task::Waiting { charge, .. } => world.stray[charge] = true,
        Task::RefundWaiting { refund, .. } => world.stray_refund[refund] = true,
        _ => {}
    }
    world
}
