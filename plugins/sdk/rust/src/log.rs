//! Log lines for operators. They must never contain a secret or personal data; the host removes the
//! secrets that it knows.

use crate::port;
pub use crate::shared::tollhouse::plugin::log::Level;

/// Writes a line at a level.
pub fn write(level: Level, message: &str) {
    port::log::write(level, message);
}

/// Logs details that help the plugin's author to debug.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Logs a noteworthy event.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Logs a problem that may need attention.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Logs a problem that an operator must resolve.
pub fn error(message: &str) {
    write(Level::Error, message);
}
