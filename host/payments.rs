//! Payments: what one is, and which changes of state are legal.

pub mod api;
mod flow;
mod refund;
mod settle;
mod store;
mod view;

pub use self::{
    settle::settle_job,
    store::{Payment, Refund, RefundStatus},
    view::EventData,
};
pub use crate::charges::Status;
use crate::{charges::Lease, error::Error};

/// The job that brings a payment, and its refund, up to what the provider knows.
pub const SETTLE_JOB: &str = "payment.settle";
/// What a payment is called in the directory of references.
pub const SUBJECT: &str = "payment";

/// Our names of the ways to pay.
pub const CHANNELS: [&str; 6] = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];

/// Of another company as of nobody.
fn missing() -> Error {
    Error::not_found("payment not found")
}
