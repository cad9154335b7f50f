//! Charges that follow one whose page no payer has.

use super::{
    step::{Steps, Without},
    world::{Response, Row, Task, World},
};
use crate::money::charges::{ReferenceSource, State};

impl Steps {
    /// `request::verify_and_reopen`, after the verification.
    pub fn reopen(&self, world: &mut World, host: usize, n: usize, fence: u8, response: Response) {
        let row = world.charge(n);
        let is_pending = row.is_undecided() && !world.is_settled_by_another(n);
        if row.state == State::Mismatched {
            return;
        }
        if matches!(response, Response::NotFound { .. }) {
            match self.scope.is_routed && is_pending {
                true => self.fail_over(world, host, n),
                false => world.tasks[host] = Task::Request { charge: n, fence },
            }
        } else if is_pending && row.fence == fence && !row.has_page && !row.superseded {
            let mut row = row;
            if !self.lacks(Without::Supersede) {
                row.change(n, false, |charge, now| charge.supersede(now));
            }
            world.charges[n] = Some(row);
            if let Some(next) = self.follow(world, n) {
                world.tasks[host] = Task::Request { charge: next, fence: 1 };
            }
        }
    }

    /// `page::fail_over`.
    pub fn fail_over(&self, world: &mut World, host: usize, n: usize) {
        let mut row = world.charge(n);
        if world.count() >= self.scope.charges || row.has_page || row.superseded {
            return;
        }
        row.change(n, false, |charge, now| match charge.is_certain() {
            true => charge.replace(now),
            false => charge.supersede(now),
        });
        world.charges[n] = Some(row);
        if let Some(next) = self.follow(world, n) {
            world.tasks[host] = Task::Request { charge: next, fence: 1 };
        }
    }

    /// `request::insert_next`. `None`: the scope has no room for another charge.
    pub fn follow(&self, world: &mut World, before: usize) -> Option<usize> {
        let n = world.count();
        if n >= self.scope.charges {
            return None;
        }
        let former = world.charge(before);
        let mut row = Row::queued(former.owner, former.method, ReferenceSource::Host);
        row.change(n, self.scope.has_lane, |charge, now| charge.claim(now));
        world.charges[n] = Some(row);
        Some(n)
    }
}
