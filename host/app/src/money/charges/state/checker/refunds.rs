//! The steps of refunds.

use super::{
    facts::to_refund_fact,
    step::{Action, Next, Steps, Without},
    world::*,
};
use crate::money::charges::{State, refund::RefundState};

impl Steps {
    /// `refund::begin`: a part, or the whole rest of what was taken.
    pub fn begin_refund(&self, world: &World, n: usize, is_part: bool) -> Option<Next> {
        let mut row = world.charge(n);
        let index = world.refunds.iter().position(Option::is_none)?;
        let is_open = world
            .refunds
            .iter()
            .flatten()
            .any(|refund| refund.charge == n && refund.state.is_open());
        let left = row.taken? - row.refunded;
        let amount = if is_part { left / 2 } else { left };
        let is_taken = matches!(row.state, State::Succeeded | State::Mismatched);
        let lacks_index = self.lacks(Without::RefundIndex);
        if index >= self.scope.refunds || !is_taken || !lacks_index && (is_open || amount == 0) {
            return None;
        }
        let mut world = *world;
        let amount = if lacks_index { AMOUNT } else { amount };
        world.refunds[index] = Some(RefundRow {
            charge: n,
            amount,
            state: RefundState::Requested,
            unsure: false,
            lease: Lease::None,
            fence: 0,
        });
        row.refunded += amount;
        world.charges[n] = Some(row);
        Some(Ok(world))
    }

    /// `refund::claim`.
    pub fn take_refund(&self, world: &World, host: usize, n: usize) -> World {
        let mut world = *world;
        let mut row = world.refunds[n].expect("the refund exists");
        row.change(self.scope.cause, |refund, now| refund.claim(now));
        row.unsure &= !self.lacks(Without::RefundUnsure);
        world.refunds[n] = Some(row);
        world.tasks[host] = Task::Refund { refund: n, fence: row.fence };
        world
    }

    pub fn advance_refund(&self, world: &World, host: usize, next: &mut Vec<(Action, Next)>) {
        let with = |task: Task| {
            let mut world = *world;
            world.tasks[host] = task;
            world
        };
        let responded =
            |refund, fence, response| with(Task::RefundResponded { refund, fence, response });
        match world.tasks[host] {
            Task::Refund { refund, fence } => {
                let row = world.refunds[refund].expect("the refund exists");
                if row.state == RefundState::Pending {
                    for response in [status(world.returned[refund]), RefundResponse::Unanswered] {
                        next.push((("check", refund), Ok(responded(refund, fence, response))));
                    }
                } else if row.fence == fence && row.lease == Lease::Held {
                    let waiting = with(Task::RefundWaiting { refund, fence });
                    next.push((("send the refund", refund), Ok(waiting)));
                }
            }
            Task::RefundWaiting { refund, fence } => {
                for (returned, response) in self.refund_arrivals(world, refund) {
                    let mut world = responded(refund, fence, response);
                    world.returned[refund] = returned;
                    next.push((("the refund arrives", refund), Ok(world)));
                }
                let mut world = responded(refund, fence, RefundResponse::Lost);
                world.stray_refund[refund] = true;
                next.push((("the refund times out", refund), Ok(world)));
            }
            Task::RefundResponded { refund, .. } => {
                next.push((("commit the refund", refund), self.commit_refund(world, host)));
            }
            task => unreachable!("{task:?} is no refund"),
        }
    }

    /// `refund::record`.
    pub fn commit_refund(&self, world: &World, host: usize) -> Next {
        let mut world = *world;
        let task = std::mem::replace(&mut world.tasks[host], Task::Idle);
        let Task::RefundResponded { refund: n, fence, response } = task else {
            unreachable!("{task:?} has no response")
        };
        let mut row = world.refunds[n].expect("the refund exists");
        let was_open = row.state.is_open();
        let is_current = row.fence == fence || self.lacks(Without::RefundFence);
        row.change(self.scope.cause, |refund, now| {
            refund.record(is_current, to_refund_fact(response), now);
        });
        row.unsure &= !self.lacks(Without::RefundUnsure);
        world.refunds[n] = Some(row);
        if was_open && row.state.has_failed() {
            let charge = world.charges[row.charge].as_mut().expect("the charge exists");
            charge.refunded -= row.amount;
        }
        let is_under_way = world.stray_refund[n]
            || world
                .tasks
                .iter()
                .any(|task| matches!(task, Task::RefundWaiting { refund, .. } if *refund == n));
        let is_true = match row.state {
            RefundState::Refused => {
                !is_under_way && matches!(world.returned[n], Returned::Nothing | Returned::Failed)
            }
            RefundState::Failed => world.returned[n] == Returned::Failed,
            RefundState::Done => world.returned[n] == Returned::Done,
            RefundState::Requested | RefundState::Pending | RefundState::Stalled => true,
        };
        if is_true { Ok(world) } else { Err("C9: a refund ended otherwise than at the provider") }
    }

    /// How the provider may treat a request for a refund.
    fn refund_arrivals(&self, world: &World, n: usize) -> Vec<(Returned, RefundResponse)> {
        let known = world.returned[n];
        if known != Returned::Nothing {
            return vec![(known, status(known)), (known, RefundResponse::NotDone)];
        }
        let charge = world.refunds[n].expect("the refund exists").charge;
        let mut arrivals = vec![(known, RefundResponse::Refused), (known, RefundResponse::NotDone)];
        if matches!(world.records[charge], Record::Paid | Record::PaidShort) {
            arrivals.push((Returned::Pending, RefundResponse::Pending));
            arrivals.push((Returned::Done, RefundResponse::Done));
            arrivals.push((Returned::Failed, RefundResponse::Failed));
        }
        arrivals
    }

    pub fn provider_refunds(&self, world: &World, next: &mut Vec<(Action, Next)>) {
        for n in 0..REFUNDS {
            let mut push = |name, returned, stray| {
                let mut world = *world;
                world.returned[n] = returned;
                world.stray_refund[n] = stray;
                next.push(((name, n), Ok(world)));
            };
            if world.stray_refund[n] {
                push("a late refund is lost", world.returned[n], false);
                for (returned, _) in self.refund_arrivals(world, n) {
                    push("a late refund arrives", returned, false);
                }
            }
            if world.returned[n] == Returned::Pending {
                let stray = world.stray_refund[n];
                push("the refund is done", Returned::Done, stray);
                push("the refund fails", Returned::Failed, stray);
            }
        }
    }
}

fn status(returned: Returned) -> RefundResponse {
    match returned {
        Returned::Done => RefundResponse::Done,
        Returned::Failed => RefundResponse::Failed,
        Returned::Nothing | Returned::Pending => RefundResponse::Pending,
    }
}
