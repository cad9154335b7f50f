//! The state that the checker explores: the rows of the store, the provider, what is in flight
//! between them, and the hosts.
//!
//! Rows are compact, and are converted to real charges and refunds for each step. Time is an age:
//! of all times, the rules distinguish a minute and an hour.

use super::super::{Charge, Method, ReferenceSource, State, tests::charge as base};
use crate::{
    money::{
        charges::refund::{Cause, Refund, RefundState},
        prelude::*,
    },
    state::config::FeeBearer,
};

pub const CHARGES: usize = 3;
pub const REFUNDS: usize = 2;
pub const HOSTS: usize = 2;
/// The amount of each charge, and the total that the owner or the loan owes.
pub const AMOUNT: u8 = 10;
/// The amount of a payment that is too small.
pub const SHORT: u8 = 4;
pub const NOW: Timestamp = Timestamp(1_000_000_000);

/// The time since an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Age {
    Seconds,
    Minute,
    Hour,
}

impl Age {
    fn begin(self) -> Timestamp {
        match self {
            Age::Seconds => NOW,
            Age::Minute => Timestamp(NOW.0 - 61_000),
            Age::Hour => Timestamp(NOW.0 - 3_601_000),
        }
    }

    fn since(begin: Option<Timestamp>) -> Age {
        match NOW.0 - begin.map_or(NOW.0, |begin| begin.0) {
            0 => Age::Seconds,
            61_000 => Age::Minute,
            _ => Age::Hour,
        }
    }
}

/// A row of `charges`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub owner: u8,
    pub method: Method,
    pub source: ReferenceSource,
    pub state: State,
    pub counts: bool,
    pub superseded: bool,
    pub unsure: bool,
    pub holds_lane: bool,
    pub leased: bool,
    pub has_page: bool,
    pub fence: u8,
    pub begun: Age,
    pub requested: Age,
    pub amount: u8,
    pub taken: Option<u8>,
    pub refunded: u8,
}

impl Row {
    pub fn queued(owner: u8, method: Method, source: ReferenceSource) -> Row {
        Row {
            owner,
            method,
            source,
            state: State::Queued,
            counts: false,
            superseded: false,
            unsure: false,
            holds_lane: false,
            leased: false,
            has_page: false,
            fence: 0,
            begun: Age::Seconds,
            requested: Age::Seconds,
            amount: AMOUNT,
            taken: None,
            refunded: 0,
        }
    }

    pub fn is_undecided(&self) -> bool {
        matches!(self.state, State::Queued | State::Requested | State::Open)
    }

    /// Returns whether the charge has no outcome and no successor.
    pub fn blocks(&self) -> bool {
        !self.superseded && (self.is_undecided() || self.state == State::Mismatched)
    }

    pub fn to_charge(self, number: usize, has_lane: bool) -> Charge {
        let minor = |amount: u8| Minor(amount.into());
        let is_begun = self.fence > 0;
        Charge {
            number: i64::try_from(number).unwrap() + 1,
            method: self.method,
            reference_source: self.source,
            state: self.state,
            counts: self.counts,
            superseded: self.superseded,
            unsure: self.unsure,
            lane: has_lane.then(|| "lane".to_owned()),
            holds_lane: self.holds_lane,
            lease_until: self.leased.then(|| NOW.plus_seconds(1)),
            session_url: self.has_page.then(|| "page".to_owned()),
            fence: self.fence.into(),
            begun_at: is_begun.then(|| self.begun.begin()),
            requested_at: is_begun.then(|| self.requested.begin()),
            amount: minor(self.amount),
            at_least: None,
            taken: self.taken.map(minor),
            refunded: minor(self.refunded),
            disputed: Minor(0),
            settled_at: None,
            taken_currency: None,
            fees: None,
            ..base(self.state)
        }
    }

    /// Applies a pure transition of the product.
    pub fn change(
        &mut self,
        number: usize,
        has_lane: bool,
        change: impl FnOnce(&mut Charge, Timestamp),
    ) {
        let mut charge = self.to_charge(number, has_lane);
        change(&mut charge, NOW);
        let amount = |minor: Minor| u8::try_from(minor.0).unwrap();
        *self = Row {
            state: charge.state,
            counts: charge.counts,
            superseded: charge.superseded,
            unsure: charge.unsure,
            holds_lane: charge.holds_lane,
            leased: charge.lease_until.is_some(),
            has_page: charge.session_url.is_some(),
            fence: u8::try_from(charge.fence).unwrap(),
            begun: Age::since(charge.begun_at),
            requested: Age::since(charge.requested_at),
            taken: charge.taken.map(amount),
            refunded: amount(charge.refunded),
            ..*self
        };
    }
}

/// A row of `charge_refunds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefundRow {
    pub charge: usize,
    pub amount: u8,
    pub state: RefundState,
    pub unsure: bool,
    pub lease: Lease,
    pub fence: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    None,
    Held,
    Ended,
}

impl RefundRow {
    /// Applies a pure transition of the product.
    pub fn change(&mut self, cause: Cause, change: impl FnOnce(&mut Refund, Timestamp)) {
        let mut refund = Refund {
            company_id: "company".into(),
            id: "refund".to_owned(),
            charge_id: "charge".into(),
            number: 1,
            amount: Minor(self.amount.into()),
            held: Minor(0),
            fee: Minor(0),
            fee_bearer: FeeBearer::Service,
            replaces: false,
            currency: "NGN".into(),
            cause,
            refund_ref: String::new(),
            provider_id: String::new(),
            state: self.state,
            fence: self.fence.into(),
            lease_until: match self.lease {
                Lease::None => None,
                Lease::Held => Some(NOW.plus_seconds(1)),
                Lease::Ended => Some(NOW),
            },
            unsure: self.unsure,
            message: String::new(),
            last_error: None,
            created_at: NOW,
            updated_at: NOW,
        };
        change(&mut refund, NOW);
        self.state = refund.state;
        self.unsure = refund.unsure;
        self.fence = u8::try_from(refund.fence).unwrap();
        self.lease = match refund.lease_until {
            None => Lease::None,
            Some(until) if until > NOW => Lease::Held,
            Some(_) => Lease::Ended,
        };
    }
}

/// What the provider has under the reference of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    Nothing,
    /// A payment of another system.
    Foreign,
    Pending,
    Paid,
    /// Less than the amount was paid.
    PaidShort,
    Failed,
    Reversed,
}

/// What the provider has of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Returned {
    Nothing,
    Pending,
    Done,
    Failed,
}

/// The progress of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    Idle,
    /// The request is committed (X2) and not sent.
    Request {
        charge: usize,
        fence: u8,
    },
    Waiting {
        charge: usize,
        fence: u8,
    },
    /// The response is not recorded (X3).
    Responded {
        charge: usize,
        fence: u8,
        response: Response,
    },
    /// Verifies before a page is opened again.
    Resume {
        charge: usize,
        fence: u8,
    },
    Resuming {
        charge: usize,
        fence: u8,
        response: Response,
    },
    /// The response of a verification is not recorded (X4).
    Verifying {
        charge: usize,
        fence: u8,
        response: Response,
    },
    Refund {
        refund: usize,
        fence: u8,
    },
    RefundWaiting {
        refund: usize,
        fence: u8,
    },
    RefundResponded {
        refund: usize,
        fence: u8,
        response: RefundResponse,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Response {
    Session,
    Lost,
    /// With the ages of the charge when the provider was queried.
    NotFound {
        begun: Age,
        requested: Age,
    },
    Invalid,
    Refused,
    Temporary,
    Duplicate,
    Foreign,
    Pending,
    Paid,
    PaidShort,
    Failed,
    Reversed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefundResponse {
    Pending,
    Done,
    Failed,
    Refused,
    NotDone,
    Lost,
    /// A query failed.
    Unanswered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub charges: [Option<Row>; CHARGES],
    pub records: [Record; CHARGES],
    /// A request that no host waits for is on its way to the provider.
    pub stray: [bool; CHARGES],
    pub refunds: [Option<RefundRow>; REFUNDS],
    pub returned: [Returned; REFUNDS],
    pub stray_refund: [bool; REFUNDS],
    pub tasks: [Task; HOSTS],
    /// A charge released its lane although it may still be paid.
    pub may_exceed: bool,
}

impl World {
    pub fn charge(&self, index: usize) -> Row {
        self.charges[index].expect("the charge exists")
    }

    pub fn rows(&self) -> impl Iterator<Item = (usize, Row)> + '_ {
        self.charges.iter().enumerate().filter_map(|(index, row)| row.map(|row| (index, row)))
    }

    pub fn count(&self) -> usize {
        self.rows().count()
    }

    /// Returns the index of the owner's last charge that no other replaced.
    pub fn current(&self, owner: u8) -> Option<usize> {
        self.rows().filter(|(_, row)| row.owner == owner && !row.superseded).map(|(n, _)| n).last()
    }

    pub fn is_settled_by_another(&self, charge: usize) -> bool {
        let owner = self.charge(charge).owner;
        self.rows().any(|(n, row)| n != charge && row.owner == owner && row.counts)
    }

    /// Returns what is still owed.
    pub fn owed(&self) -> u8 {
        let repaid = self.rows().filter(|(_, row)| row.counts && row.state == State::Succeeded);
        AMOUNT.saturating_sub(repaid.map(|(_, row)| row.taken.unwrap_or(0)).sum())
    }

    /// Sorts the tasks, because hosts are interchangeable.
    pub fn normalize(mut self) -> World {
        self.tasks.sort_unstable();
        self
    }
}
