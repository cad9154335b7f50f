//! What the service tells people, by e-mail and SMS.

pub mod content;
