//! Captures the log lines of a plugin during its calls.

use tracing::{Dispatch, Event, Subscriber, field::Field};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

use crate::prelude::*;

/// Target of plugins' log lines, which `Session::log` writes.
const TARGET: &str = "tollhouse_plugins::runtime::session";

/// Captured lines, shared by clones.
#[derive(Clone, Default)]
pub struct LogCapture(Arc<Mutex<Vec<String>>>);

impl LogCapture {
    /// Returns the dispatcher that captures log lines.
    pub fn dispatch(&self) -> Dispatch {
        tracing_subscriber::registry().with(self.clone()).into()
    }

    /// Returns the lines captured since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber> Layer<S> for LogCapture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut message = String::new();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            if field.name() == "message" {
                message = format!("{value:?}");
            }
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}
