//! Background work: jobs, which survive a restart, and tasks, which do not; buffers of logs; and the
//! runtime of all.

pub mod jobs;
pub mod log_buffer;
pub mod runtime;
pub mod tasks;
