//! Background work: jobs, which survive a restart, and tasks, which do not; and the runtime of both.

pub mod jobs;
pub mod runtime;
pub mod tasks;
