//! The runtime of the programs.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Number of tasks that a busy worker polls before it polls sockets and timers again. With Tokio's
/// 61, a request may wait for up to 61 polls of other tasks, each of which may run a plugin.
const EVENT_INTERVAL: u32 = 3;

/// Starts a runtime with a worker per processor.
pub fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().event_interval(EVENT_INTERVAL).build()
}
