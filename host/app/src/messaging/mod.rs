//! Outbound e-mail and SMS, and one-time passwords.

pub mod messages;
pub mod otp;
