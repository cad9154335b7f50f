//! Commands on operators: who may use the internal interface, and what they did.

pub mod approval;
pub mod audit;
pub mod operator;
pub mod role;
