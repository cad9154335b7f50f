//! Everything that is tested from outside: one binary, one file per subject. `both!` runs a test on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod app;
mod conformance;
mod crash;
mod events;
mod payments;
mod plugins;
mod secrets;
mod sprout;
mod unruly;
