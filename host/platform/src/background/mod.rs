//! Background work: jobs, which survive a restart; tasks, which do not; log buffers; and the
//! runtime.

pub mod jobs;
pub mod log_buffer;
pub mod runtime;
pub mod tasks;
