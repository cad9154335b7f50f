//! Tools for plugin authors: check, bench and replay. They never use the application or a database.

pub mod bench;
pub mod check;
pub mod new;
pub mod replay;
