//! Common imports of `money` and `lending`: `use crate::money::prelude::*`.

pub use super::charges::{self, Charge, ChargeVerifier, METADATA_KEY};
pub use crate::{
    customers::{self as users, User, UserKey},
    tenants::{
        prelude::*,
        wallet::{LedgerAccount as Ledger, LedgerTransaction, Overdraft, PostOutcome},
    },
    webhooks::{
        incoming::{self as notifications, ReferenceOwner},
        outgoing as events,
    },
};
pub use tollhouse_plugins::{
    CallError, CardOrder, Certainty, CheckoutOrder, CheckoutSession, DebitOrder, Decline, Fault,
    FaultCategory, PaymentStatus, Provider, ProviderPayment, ProviderRefund, ProviderRefundStatus,
    SessionRefundOrder,
};
