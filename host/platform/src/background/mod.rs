//! Background work: jobs, which survive a restart, and tasks, which do not.

pub mod jobs;
pub mod tasks;
