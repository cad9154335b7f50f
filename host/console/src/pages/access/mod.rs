//! Sign-in, operators, approvals and the audit log.

pub mod approvals;
pub mod audit;
pub mod oidc;
pub mod operators;
pub mod sign_in;
pub mod welcome;
