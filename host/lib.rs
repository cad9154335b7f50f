//! Tollhouse: a multi-tenant back end for lending platforms.
//!
//! `http` holds the table of all routes. Behind it stand the slices, one per noun (`payments`, `companies`, …): `NAME.rs` has the
//! types and the legal transitions, `NAME/api.rs` the requests and answers, `NAME/flow.rs` the order of transaction, plugin call,
//! transaction, and `NAME/store.rs` the SQL. What every slice uses: `store` (two engines, one SQL), `plugins` (providers in
//! sandboxes), `jobs` (work that follows), `events` (what companies are told). The rest are leaves: pure, without I/O.
//! `docs/ARCHITECTURE.md` has the walkthroughs and the invariants.

#[path = "app/src/lib.rs"]
pub mod app;
#[path = "http/src/lib.rs"]
pub mod http;
#[path = "platform/src/lib.rs"]
pub mod platform;
#[path = "plugins/src/lib.rs"]
pub mod plugins;
#[path = "tools/src/lib.rs"]
pub mod tools;
