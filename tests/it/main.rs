//! Everything that is tested from outside: one binary, one file per subject. `both!` runs a test on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod app;
mod backup;
mod bench;
mod billing;
mod bystanders;
mod codes;
mod command_line;
mod companies;
mod config;
mod conformance;
mod contract;
mod crash;
mod envelope;
mod events;
mod gateways;
mod health;
mod http2;
mod idempotency;
mod idempotency_faults;
mod isolation;
mod jobs;
mod listener;
mod master_key;
mod messages;
mod openapi;
mod operator_events;
mod operators;
mod otp;
mod otp_interleavings;
mod otp_limits;
mod outages;
mod payments;
mod plugins;
mod process;
mod proxy;
mod rate_limits;
mod references;
mod refunds;
mod remote;
mod secrets;
mod simulation;
mod smtp;
mod sprout;
mod store;
mod store_faults;
mod systemd;
mod telemetry;
mod tidy;
mod tls;
mod unruly;
mod users;
mod wallet;
