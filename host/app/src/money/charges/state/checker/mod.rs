//! A bounded model checker of the engine.
//!
//! It explores every order of what two hosts, the network, the provider, the payer and time may do
//! to the charges and refunds of an owner, or of two owners in one lane, and checks the invariants
//! C1 to C4, C6 to C9 and C12. The rules are the production code: `decide`, the transitions of
//! `Charge`, and those of `Refund`. The steps around them (X1 to X4) follow `request`, `settle` and
//! `refund`, with a transaction as one step. Each state in which no host works must also lead, by a
//! fair run, to an end that agrees with the provider.
//!
//! Each guard, when removed, must lead to a violation. Otherwise the checker would not test it.

mod facts;
mod fair;
mod pages;
mod refunds;
mod step;
mod world;

use std::collections::HashMap;

use self::{
    step::{Action, Scope, Steps, Without},
    world::{AMOUNT, CHARGES, HOSTS, REFUNDS, Record, Returned, Row, Task, World},
};
use super::{Method, ReferenceSource, State};
use crate::money::charges::refund::Cause;

/// A world, the step that led to it from the world with this index, and its depth.
type Node = (World, Option<(usize, Action)>, usize);

/// The result of a search.
struct Found {
    states: usize,
    depth: usize,
    /// The first violation, with the steps that lead to it.
    violation: Option<(&'static str, Vec<Action>)>,
}

/// Explores all worlds within `max_depth` steps, breadth first.
fn search(scope: Scope, mutant: Option<Without>, max_depth: usize) -> Found {
    let steps = Steps { scope, mutant };
    let start = start(&scope);
    // In the order of discovery, with the step that led to each.
    let mut worlds: Vec<Node> = vec![(start, None, 0)];
    let mut known = HashMap::from([(start, 0)]);
    let mut next = 0;
    while next < worlds.len() {
        let (world, _, depth) = worlds[next];
        if depth == max_depth {
            break;
        }
        for (action, world) in steps.next(&world) {
            let world = world.and_then(|world| steps.check(&world).and(Ok(world.normalize())));
            match world {
                Ok(world) if known.contains_key(&world) => {}
                Ok(world) => {
                    known.insert(world, worlds.len());
                    worlds.push((world, Some((next, action)), depth + 1));
                }
                Err(violated) => {
                    let mut trace = trace(&worlds, next);
                    trace.push(action);
                    let violation = Some((violated, trace));
                    return Found { states: worlds.len(), depth: depth + 1, violation };
                }
            }
        }
        next += 1;
    }
    let depth = worlds.last().map_or(0, |(_, _, depth)| *depth);
    Found { states: worlds.len(), depth, violation: None }
}

fn trace(worlds: &[Node], mut at: usize) -> Vec<Action> {
    let mut trace = Vec::new();
    while let Some((before, action)) = worlds[at].1 {
        trace.push(action);
        at = before;
    }
    trace.reverse();
    trace
}

/// The world after the first charge of each owner was recorded (X1). A page is requested at once.
fn start(scope: &Scope) -> World {
    let mut world = World {
        charges: [None; CHARGES],
        records: [Record::Nothing; CHARGES],
        stray: [false; CHARGES],
        refunds: [None; REFUNDS],
        returned: [Returned::Nothing; REFUNDS],
        stray_refund: [false; REFUNDS],
        tasks: [Task::Idle; HOSTS],
        may_exceed: false,
    };
    for owner in 0..if scope.has_lane { 2 } else { 1 } {
        let mut row = Row::queued(owner, scope.method, scope.source);
        if scope.method == Method::Checkout {
            row.change(0, false, |charge, now| charge.claim(now));
            world.tasks[HOSTS - 1] = Task::Request { charge: 0, fence: 1 };
        }
        if scope.refunds > 0 {
            row.change(0, false, |charge, now| charge.claim(now));
            (row.state, row.counts, row.leased, row.taken) =
                (State::Succeeded, true, false, Some(AMOUNT));
            world.records[0] = Record::Paid;
            world.tasks[HOSTS - 1] = Task::Idle;
        }
        world.charges[usize::from(owner)] = Some(row);
    }
    if scope.has_lost_page {
        let mut lost = world.charge(0);
        (lost.leased, lost.unsure) = (false, true);
        let open = Row { state: State::Open, has_page: true, unsure: false, ..lost };
        lost.change(0, false, |charge, now| charge.supersede(now));
        (world.charges[0], world.charges[1]) = (Some(lost), Some(open));
        (world.records[0], world.records[1]) = (Record::Pending, Record::Pending);
        world.tasks = [Task::Idle; HOSTS];
    }
    if scope.is_taken {
        world.records[0] = Record::Foreign;
    }
    world.normalize()
}

impl Steps {
    /// The invariants of a state.
    fn check(&self, world: &World) -> Result<(), &'static str> {
        for owner in 0..2 {
            let of_owner = || world.rows().filter(|(_, row)| row.owner == owner);
            if of_owner().filter(|(_, row)| row.counts).count() > 1 {
                return Err("C1: two charges settled an owner");
            }
            if of_owner().filter(|(_, row)| row.blocks()).count() > 1 {
                return Err("C2: two charges of an owner have no outcome");
            }
        }
        if world.rows().filter(|(_, row)| row.holds_lane).count() > 1 {
            return Err("C3: two charges hold a lane");
        }
        let taken = |(n, row): (usize, Row)| match world.records[n] {
            Record::Paid => row.amount,
            _ => 0,
        };
        if self.scope.has_lane && !world.may_exceed && world.rows().map(taken).sum::<u8>() > AMOUNT
        {
            return Err("C3: more than what is owed was taken");
        }
        for (_, row) in world.rows() {
            check_row(&row)?;
        }
        let is_quiet = world.tasks.iter().all(|task| *task == Task::Idle);
        if is_quiet { self.run_fairly(world) } else { Ok(()) }
    }
}

/// The constraints of the table `charges`.
fn check_row(row: &Row) -> Result<(), &'static str> {
    use State::{Canceled, Mismatched, Queued, Requested, Reversed, Succeeded};
    let rules = [
        (!row.counts || matches!(row.state, Succeeded | Reversed), "a charge counts after success"),
        (
            row.taken.is_some() == matches!(row.state, Mismatched | Succeeded | Reversed),
            "an amount is taken exactly in its states",
        ),
        (row.refunded <= row.taken.unwrap_or(0), "C9: more was refunded than taken"),
        (!row.leased || row.state == Requested, "a charge is leased while it is requested"),
        (!row.holds_lane || row.is_undecided(), "a lane is held without an outcome"),
        (row.fence > 0 || matches!(row.state, Queued | Canceled), "C4: an outcome needs a request"),
        (!row.superseded || !row.has_page, "a page that the payer has is not superseded"),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
}

/// Enough for each removed guard, and explored in seconds.
const DEPTH: usize = 12;
const PAGES: Scope = Scope {
    name: "pages",
    method: Method::Checkout,
    source: ReferenceSource::Caller,
    charges: 2,
    requests: 2,
    refunds: 0,
    cause: Cause::Operator,
    has_lane: false,
    has_lost_page: false,
    is_taken: false,
    repeats: false,
    is_routed: false,
};
const SCOPES: [Scope; 11] = [
    PAGES,
    Scope { name: "pages with references of the host", source: ReferenceSource::Host, ..PAGES },
    Scope { name: "pages with a reference in use", is_taken: true, ..PAGES },
    TWO_PAGES,
    Scope { name: "pages in a network that repeats requests", repeats: true, ..PAGES },
    Scope { name: "pages routed over two providers", is_routed: true, ..PAGES },
    CARDS,
    Scope { name: "cards with a reference in use", is_taken: true, ..CARDS },
    LANE,
    REFUNDS_OF_PAYMENTS,
    Scope {
        name: "refunds of verification charges",
        cause: Cause::Verification,
        ..REFUNDS_OF_PAYMENTS
    },
];
const TWO_PAGES: Scope = Scope { name: "a page after a lost one", has_lost_page: true, ..PAGES };
const CARDS: Scope = Scope { name: "cards", method: Method::Card, ..PAGES };
const LANE: Scope = Scope {
    name: "two owners in a lane",
    method: Method::Card,
    source: ReferenceSource::Host,
    has_lane: true,
    ..PAGES
};
const REFUNDS_OF_PAYMENTS: Scope =
    Scope { name: "refunds of payments", charges: 1, requests: 2, refunds: 2, ..PAGES };

fn describe((violated, trace): (&'static str, Vec<Action>)) -> String {
    let steps: Vec<String> = trace.iter().map(|(what, n)| format!("{what} {n}")).collect();
    format!("{violated}\n    {}", steps.join(" > "))
}

/// The number of steps within which every order is explored.
fn max_depth() -> usize {
    let set = std::env::var("TOLLHOUSE_CHECKER_DEPTH").ok();
    set.map_or(DEPTH, |depth| depth.parse().expect("TOLLHOUSE_CHECKER_DEPTH is a number"))
}

fn explore(scopes: &[Scope]) {
    for scope in scopes {
        let found = search(*scope, None, max_depth());
        println!("{}: {} states, depth {}", scope.name, found.states, found.depth);
        assert_eq!(found.violation.map(describe), None, "{}", scope.name);
    }
}

#[test]
fn no_order_of_events_violates_an_invariant_of_pages() {
    explore(&SCOPES[..6]);
}

#[test]
fn no_order_of_events_violates_an_invariant_of_cards_lanes_and_refunds() {
    explore(&SCOPES[6..]);
}

#[test]
fn removing_any_guard_yields_a_counterexample() {
    for (mutant, scope) in [
        (Without::Fence, CARDS),
        (Without::Unsure, CARDS),
        (Without::SettledCheck, TWO_PAGES),
        (Without::OwnershipCheck, SCOPES[2]),
        (Without::Supersede, PAGES),
        (Without::CommitFirst, CARDS),
        (Without::Delay, CARDS),
        (Without::Lane, LANE),
        (Without::AmountCap, LANE),
        (Without::RefundFence, REFUNDS_OF_PAYMENTS),
        (Without::RefundUnsure, REFUNDS_OF_PAYMENTS),
        (Without::RefundIndex, REFUNDS_OF_PAYMENTS),
    ] {
        let found = search(scope, Some(mutant), DEPTH);
        let Found { states, depth, violation } = found;
        let violation =
            describe(violation.unwrap_or_else(|| panic!("{mutant:?} violates nothing")));
        println!("without {mutant:?}: {states} states, depth {depth}, {violation}");
    }
}
