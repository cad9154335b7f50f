//! Lines for operators. Never a secret or personal data; the host removes the secrets it knows.

use crate::port;
pub use crate::shared::tollhouse::plugin::log::Level;

/// Writes a line.
pub fn write(level: Level, message: &str) {
    port::log::write(level, message);
}

/// For the author, while something is being looked for.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Worth knowing.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Worth a look.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Somebody must act.
pub fn error(message: &str) {
    write(Level::Error, message);
}
