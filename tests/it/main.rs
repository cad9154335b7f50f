//! Everything that is tested from outside: one binary, one file per subject. `both!` runs a test on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod app;
mod companies;
mod crash;
mod envelope;
mod events;
mod isolation;
mod operators;
mod payments;
mod users;
mod wallet;
