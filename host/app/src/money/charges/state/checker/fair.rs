//! Fair runs: what each state leads to when hosts work, requests arrive and payers pay.

use super::{
    super::{Method, State, is_verifiable},
    step::{Next, Steps, pass},
    world::*,
};
use crate::money::charges::refund::RefundState;

/// More rounds than any run needs.
const ROUNDS: usize = 12;

impl Steps {
    /// Runs a world without tasks to its end, and checks that each charge agrees with the provider.
    pub fn run_fairly(&self, world: &World) -> Result<(), &'static str> {
        let mut world = *world;
        for _ in 0..ROUNDS {
            let before = world;
            world = self.round(world)?;
            if world == before {
                return check_end(&world);
            }
        }
        Err("C12: a fair run does not end")
    }

    fn round(&self, world: World) -> Next {
        let mut world = pass(&world, Age::Hour);
        for n in 0..CHARGES {
            if world.stray[n] {
                world.records[n] = self.accept(&world, n).0;
                world.stray[n] = false;
            }
            if world.records[n] == Record::Pending {
                world.records[n] = Record::Paid;
            }
            let Some(row) = &mut world.charges[n] else { continue };
            row.leased = false;
            if is_verifiable(&row.to_charge(n, self.scope.has_lane)) {
                let fence = row.fence;
                let response = self.query(&world, n);
                self.record(&mut world, n, fence, response)?;
            }
            world = self.request(world, n)?;
        }
        for n in 0..REFUNDS {
            world = self.refund(world, n)?;
        }
        Ok(world)
    }

    /// Requests a queued charge, and its provider takes the money.
    fn request(&self, world: World, n: usize) -> Next {
        let Some(row) = world.charges[n] else { return Ok(world) };
        if row.state != State::Queued || row.method == Method::Checkout {
            return Ok(world);
        }
        let Some(taken) = self.take(&world, 0, n) else { return Ok(world) };
        let mut world = taken?;
        let Task::Request { charge, fence } = world.tasks[0] else { return Ok(world) };
        let (record, response) = self.accept(&world, n);
        world.records[n] = record;
        world.tasks[0] = Task::Responded { charge, fence, response };
        self.commit(&world, 0)
    }

    /// The arrival of a request that the provider takes, if it can.
    fn accept(&self, world: &World, n: usize) -> (Record, Response) {
        let takes = |(_, response): &(Record, Response)| {
            matches!(response, Response::Session | Response::Paid | Response::Duplicate)
        };
        self.arrivals(world, n).into_iter().find(takes).expect("the provider may take it")
    }

    fn refund(&self, world: World, n: usize) -> Next {
        let mut world = world;
        world.stray_refund[n] = false;
        if world.returned[n] == Returned::Pending {
            world.returned[n] = Returned::Done;
        }
        let Some(row) = &mut world.refunds[n] else { return Ok(world) };
        row.lease = if row.lease == Lease::Held { Lease::Ended } else { row.lease };
        if !row.state.is_open() {
            return Ok(world);
        }
        let mut world = self.take_refund(&world, 0, n);
        let Task::Refund { refund, fence } = world.tasks[0] else { return Ok(world) };
        let response = match (world.returned[n], world.records[row_charge(&world, n)]) {
            (Returned::Nothing, Record::Paid | Record::PaidShort) => RefundResponse::Done,
            (Returned::Nothing, _) => RefundResponse::Refused,
            (Returned::Failed, _) => RefundResponse::Failed,
            _ => RefundResponse::Done,
        };
        if response == RefundResponse::Done {
            world.returned[n] = Returned::Done;
        }
        world.tasks[0] = Task::RefundResponded { refund, fence, response };
        self.commit_refund(&world, 0)
    }
}

fn row_charge(world: &World, n: usize) -> usize {
    world.refunds[n].expect("the refund exists").charge
}

/// At the end, a charge is what the provider says, or waits for its payer.
fn check_end(world: &World) -> Result<(), &'static str> {
    for (n, row) in world.rows() {
        let is_refunded = row.refunded > 0 && row.taken == Some(row.refunded);
        // Its owner may open another one.
        let lacks_page = row.method == Method::Checkout && !row.has_page;
        let agrees = match world.records[n] {
            Record::Paid => row.state == State::Succeeded,
            Record::PaidShort => row.state == State::Mismatched,
            Record::Reversed => {
                is_refunded || !matches!(row.state, State::Succeeded | State::Mismatched)
            }
            // Raises an exception.
            Record::Foreign => !matches!(row.state, State::Succeeded | State::Mismatched),
            Record::Failed => row.state == State::Failed || lacks_page || row.superseded,
            Record::Pending => false,
            Record::Nothing => !row.counts && (!row.blocks() || row.method == Method::Checkout),
        };
        if !agrees {
            return Err("C8: the end of a fair run differs from the provider");
        }
        if row.holds_lane && world.records[n] != Record::Foreign {
            return Err("C3: a lane is held at the end of a fair run");
        }
    }
    let is_open =
        |refund: &RefundRow| refund.state.is_open() && refund.state != RefundState::Stalled;
    match world.refunds.iter().flatten().any(is_open) {
        true => Err("C12: a refund is open at the end of a fair run"),
        false => Ok(()),
    }
}
