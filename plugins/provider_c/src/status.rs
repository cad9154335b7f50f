//! Monnify's payment statuses for checkout, cards and mandates.

use tollhouse_plugin::payments::PaymentStatus;
use tollhouse_plugin::{log, text};

/// A partial payment is not a success: Monnify holds the money until the rest arrives. Unknown
/// statuses are pending too.
pub(crate) fn parse(value: &str) -> PaymentStatus {
    match value {
        "PAID" | "OVERPAID" | "SUCCESS" => PaymentStatus::Success,
        "FAILED" | "CANCELLED" | "EXPIRED" => PaymentStatus::Failed,
        "REVERSED" => PaymentStatus::Reversed,
        "PENDING"
        | "PARTIALLY_PAID"
        | "OTP_AUTHORIZATION_REQUIRED"
        | "BANK_AUTHORIZATION_REQUIRED" => PaymentStatus::Pending,
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("unknown payment status at Monnify: \"{unknown}\""));
            PaymentStatus::Pending
        }
    }
}
