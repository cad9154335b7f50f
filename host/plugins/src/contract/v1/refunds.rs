//! Conversions of refunds.

use super::{
    convert::{data, truncate_text},
    exported,
};
use crate::{
    Fault, KnownRefund, PartialRefundOrder, ProviderRefund, RefundOrder, SessionRefundOrder,
};

impl From<&PartialRefundOrder> for exported::partial_refunds::PartialRefundOrder {
    fn from(part: &PartialRefundOrder) -> exported::partial_refunds::PartialRefundOrder {
        let PartialRefundOrder { order, earlier } = part.clone();
        let RefundOrder { service_ref, transaction_id, refund_ref, amount, reason } = order;
        exported::partial_refunds::PartialRefundOrder {
            service_ref,
            transaction_id,
            refund_ref,
            amount: amount.into(),
            reason,
            earlier,
        }
    }
}

impl From<&SessionRefundOrder> for exported::session_refunds::SessionRefundOrder {
    fn from(order: &SessionRefundOrder) -> exported::session_refunds::SessionRefundOrder {
        exported::session_refunds::SessionRefundOrder {
            session: (&order.session).into(),
            refund_ref: order.refund_ref.clone(),
            amount: order.amount.clone().into(),
            reason: order.reason.clone(),
            notification_url: order.notification_url.clone(),
        }
    }
}

impl From<&KnownRefund> for exported::session_refunds::KnownRefund {
    fn from(refund: &KnownRefund) -> exported::session_refunds::KnownRefund {
        exported::session_refunds::KnownRefund {
            session: (&refund.session).into(),
            refund_ref: refund.refund_ref.clone(),
            amount: refund.amount.clone().into(),
            provider_id: refund.provider_id.clone(),
            state: refund.state.clone().map(Into::into),
            notified: refund.notified.clone().map(Into::into),
        }
    }
}

impl TryFrom<exported::session_refunds::SessionRefund> for ProviderRefund {
    type Error = Fault;

    fn try_from(refund: exported::session_refunds::SessionRefund) -> Result<ProviderRefund, Fault> {
        Ok(ProviderRefund {
            status: refund.status.into(),
            provider_id: truncate_text(refund.provider_id),
            message: truncate_text(refund.message),
            state: Some(data(refund.state)?),
        })
    }
}

impl From<exported::refunds::Refund> for ProviderRefund {
    fn from(refund: exported::refunds::Refund) -> ProviderRefund {
        ProviderRefund {
            status: refund.status.into(),
            provider_id: truncate_text(refund.provider_id),
            message: truncate_text(refund.message),
            state: None,
        }
    }
}

impl From<exported::partial_refunds::PartialRefund> for ProviderRefund {
    fn from(refund: exported::partial_refunds::PartialRefund) -> ProviderRefund {
        ProviderRefund {
            status: refund.status.into(),
            provider_id: truncate_text(refund.provider_id),
            message: truncate_text(refund.message),
            state: None,
        }
    }
}
