//! What money and lending name: `use crate::money::prelude::*`.

pub use super::charges::{
    self, Attempt, ChargeVerifier, Lease, Leased, LeasedTable, METADATA_KEY, Transition,
    decide_transition, is_ours, next_check,
};
pub use crate::{
    customers::{self as users, User, UserKey},
    tenants::{
        prelude::*,
        wallet::{LedgerAccount as Ledger, LedgerTransaction, Overdraft},
    },
    webhooks::{
        incoming::{self as notifications, ReferenceOwner},
        outgoing as events,
    },
};
pub use tollhouse_plugins::{
    CallError, Certainty, CheckoutOrder, CheckoutSession, FaultCategory, PaymentStatus, Provider,
    ProviderPayment, ProviderRefund, ProviderRefundStatus, RefundOrder,
};
