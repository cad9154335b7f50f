//! The stand-ins as their clients see them: over HTTP on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cards;
mod events;
mod faults;
mod flutterwave;
mod mandates;
mod monnify;
mod notifications;
mod pages;
mod program;
mod refunds;
mod registers;
mod sms;
mod smtp;
mod transactions;
mod world;
