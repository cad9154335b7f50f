//! One-time payments through hosted checkout, their settlement and their refunds.

pub mod api;
mod flow;
mod refund;
mod settle;
mod store;
mod view;

pub use self::{
    settle::settle_job,
    store::{Payment, PaymentId, Refund, RefundStatus},
    view::EventData,
};
use crate::money::charges::Lease;
pub use crate::money::charges::Status;
use tollhouse_platform::error::Error;

/// The job that settles a payment and advances its refund.
pub const SETTLE_JOB: &str = "payment.settle";
/// The subject of payments in the reference directory.
pub const SUBJECT: &str = "payment";

/// The names of the payment channels in the API.
pub const CHANNELS: [&str; 6] = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];

/// The same error for a missing payment and for one of another company.
fn not_found() -> Error {
    Error::not_found("payment not found")
}
