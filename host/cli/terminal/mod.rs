//! Input and output of commands: confirmations, input files, reports and failures.

pub mod confirmation;
pub mod failure;
pub mod format;
pub mod input;
pub mod output;
