//! Conversions between partial and whole refunds, for plugins that request both alike.

use crate::partial_refunds::{PartialRefund, PartialRefundOrder, PartialRefundStatus};
use crate::refunds::{Refund, RefundOrder, RefundStatus};

impl From<PartialRefundOrder> for (RefundOrder, Vec<String>) {
    /// Returns the order, and the provider's ids of earlier refunds.
    fn from(part: PartialRefundOrder) -> (RefundOrder, Vec<String>) {
        let PartialRefundOrder { service_ref, transaction_id, refund_ref, amount, reason, earlier } =
            part;
        (RefundOrder { service_ref, transaction_id, refund_ref, amount, reason }, earlier)
    }
}

impl From<Refund> for PartialRefund {
    fn from(refund: Refund) -> PartialRefund {
        let Refund { status, provider_id, message, raw } = refund;
        let status = match status {
            RefundStatus::Pending => PartialRefundStatus::Pending,
            RefundStatus::Done => PartialRefundStatus::Done,
            RefundStatus::Failed => PartialRefundStatus::Failed,
        };
        PartialRefund { status, provider_id, message, raw }
    }
}
