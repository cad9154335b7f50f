//! Refunds of payments and of card verification charges, as operators see them.

pub mod api;

use crate::money::{
    charges::{Cause, ListedRefund, OwnerKind, Refund, RefundState},
    prelude::*,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    /// Requested, but not yet confirmed by the provider.
    Requested,
    /// Accepted by the provider and in progress.
    Pending,
    Done,
    /// Failed; an operator must act.
    Failed,
}

impl RefundStatus {
    fn of(refund: &Refund) -> RefundStatus {
        match (refund.state, refund.cause) {
            // No client waits for it, so an operator must act.
            (RefundState::Stalled, Cause::Verification) => RefundStatus::Failed,
            (RefundState::Requested | RefundState::Stalled, _) => RefundStatus::Requested,
            (RefundState::Pending, _) => RefundStatus::Pending,
            (RefundState::Done, _) => RefundStatus::Done,
            (RefundState::Refused | RefundState::Failed, _) => RefundStatus::Failed,
        }
    }

    /// Returns the states of verification refunds with this status.
    fn states(name: &str) -> Vec<String> {
        match name {
            "failed" => ["stalled", "refused", "failed"].map(str::to_owned).to_vec(),
            same => vec![same.to_owned()],
        }
    }
}

/// A refund of a payment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Refund")]
pub struct PaymentRefund {
    payment: String,
    id: String,
    status: RefundStatus,
    amount: Minor,
    /// The provider's id of the refund; empty until it accepts the refund.
    provider_id: String,
    /// The provider's status message.
    message: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl PaymentRefund {
    pub fn new(payment: &str, refund: Refund) -> PaymentRefund {
        PaymentRefund {
            payment: payment.to_owned(),
            status: RefundStatus::of(&refund),
            id: refund.id,
            amount: refund.amount,
            provider_id: refund.provider_id,
            message: refund.message,
            created_at: refund.created_at,
            updated_at: refund.updated_at,
        }
    }
}

/// The refund of a card verification charge.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CardRefund {
    company: CompanyId,
    id: String,
    card: String,
    status: RefundStatus,
    payment_service: String,
    service_ref: String,
    transaction_id: String,
    amount: Minor,
    currency: Currency,
    /// The provider's id of the refund; empty until it accepts the refund.
    provider_id: String,
    /// Position among the refunds of the charge, from 1.
    tries: i64,
    /// The provider's status message, or the last error.
    message: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<ListedRefund> for CardRefund {
    fn from(listed: ListedRefund) -> CardRefund {
        let refund = listed.refund;
        CardRefund {
            company: refund.company_id.clone(),
            card: listed.owner_id,
            status: RefundStatus::of(&refund),
            payment_service: listed.provider,
            service_ref: listed.service_ref,
            transaction_id: listed.transaction_id,
            amount: refund.amount,
            currency: refund.currency,
            provider_id: refund.provider_id,
            tries: refund.number,
            message: if refund.message.is_empty() {
                refund.last_error.unwrap_or_default()
            } else {
                refund.message
            },
            created_at: refund.created_at,
            updated_at: refund.updated_at,
            id: refund.id,
        }
    }
}

/// A refund of a payment or of a card verification charge.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AnyRefund {
    company: CompanyId,
    id: String,
    /// The kind of record whose charge is refunded.
    of: OwnerKind,
    /// The id of the payment or card.
    owner: String,
    state: RefundState,
    cause: Cause,
    payment_service: String,
    service_ref: String,
    amount: Minor,
    currency: Currency,
    /// The reference of the refund at the provider.
    refund_ref: String,
    /// The provider's id of the refund; empty until it accepts the refund.
    provider_id: String,
    /// Number of requests and queries.
    requests: i64,
    /// The provider's status message.
    message: String,
    /// The error of the last call; `null` if it succeeded.
    last_error: Option<String>,
    /// Seconds since the refund was requested.
    age_s: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl AnyRefund {
    fn new(listed: ListedRefund, now: Timestamp) -> AnyRefund {
        let refund = listed.refund;
        AnyRefund {
            company: refund.company_id,
            id: refund.id,
            of: listed.owner_kind,
            owner: listed.owner_id,
            state: refund.state,
            cause: refund.cause,
            payment_service: listed.provider,
            service_ref: listed.service_ref,
            amount: refund.amount,
            currency: refund.currency,
            refund_ref: refund.refund_ref,
            provider_id: refund.provider_id,
            requests: refund.fence,
            message: refund.message,
            last_error: refund.last_error,
            age_s: now.unix_seconds() - refund.created_at.unix_seconds(),
            created_at: refund.created_at,
            updated_at: refund.updated_at,
        }
    }
}
