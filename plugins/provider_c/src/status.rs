//! What Monnify's words for the state of a payment mean, those of checkout, of cards and of mandates.

use tollhouse_plugin::payments::PaymentStatus;
use tollhouse_plugin::{log, text};

/// A part of the money is no success: what was paid stays with Monnify until the rest arrives. What is unknown here waits,
/// too.
pub(crate) fn parse(told: &str) -> PaymentStatus {
    match told {
        "PAID" | "OVERPAID" | "SUCCESS" => PaymentStatus::Success,
        "FAILED" | "CANCELLED" | "EXPIRED" => PaymentStatus::Failed,
        "REVERSED" => PaymentStatus::Reversed,
        "PENDING"
        | "PARTIALLY_PAID"
        | "OTP_AUTHORIZATION_REQUIRED"
        | "BANK_AUTHORIZATION_REQUIRED" => PaymentStatus::Pending,
        unknown => {
            let unknown = text::code(unknown);
            log::warn(&format!("Monnify tells of a payment that is \"{unknown}\""));
            PaymentStatus::Pending
        }
    }
}
