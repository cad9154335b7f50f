//! Outbound e-mail and SMS, one-time passwords, and invitations of members.

pub mod members;
pub mod messages;
pub mod otp;
