//! Commands on operators, roles, approvals and the audit log.

pub mod approval;
pub mod audit;
pub mod operator;
pub mod role;
