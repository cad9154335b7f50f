//! What a plugin says into the host's log, heard while it is called.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{Dispatch, Event, Subscriber, field::Field};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// Where lines of plugins come from: `Session::log`.
const TARGET: &str = "tollhouse::plugins::session";

/// Clones hear the same.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// What is to be told of what happens meanwhile.
    pub fn dispatch(&self) -> Dispatch {
        tracing_subscriber::registry().with(self.clone()).into()
    }

    /// Those since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == TARGET {
            let mut message = Message::default();
            event.record(&mut message);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
        }
    }
}

#[derive(Default)]
struct Message(String);

impl tracing::field::Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
