//! Tollhouse: a multi-tenant back end for lending platforms.
//!
//! `http` holds the table of all routes. Behind it stand the slices, one per noun (`payments`, `companies`, …): `NAME.rs` has the
//! types and the legal transitions, `NAME/api.rs` the requests and answers, `NAME/flow.rs` the order of transaction, plugin call,
//! transaction, and `NAME/store.rs` the SQL. What every slice uses: `store` (two engines, one SQL), `plugins` (providers in
//! sandboxes), `jobs` (work that follows), `events` (what companies are told). The rest are leaves: pure, without I/O.
//! `docs/ARCHITECTURE.md` has the walkthroughs and the invariants.

pub mod app;
pub mod audit;
pub mod bench;
pub mod cards;
pub mod charges;
pub mod check;
pub mod clock;
pub mod companies;
pub mod config;
pub mod egress;
pub mod email;
pub mod error;
pub mod events;
pub mod files;
pub mod http;
pub mod idempotency;
pub mod identity;
pub mod jobs;
pub mod listing;
pub mod loans;
pub mod mandates;
pub mod master_key;
pub mod messages;
pub mod money;
pub mod monitor;
pub mod notifications;
pub mod operator_events;
pub mod otp;
pub mod payments;
pub mod phone;
pub mod plans;
pub mod plugins;
pub mod providers;
pub mod random;
pub mod rate;
pub mod recollections;
pub mod recordings;
pub mod seal;
pub mod smtp;
pub mod store;
pub mod streams;
pub mod tasks;
pub mod telemetry;
pub mod tls;
pub mod users;
pub mod wallet;
