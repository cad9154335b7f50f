//! Tests of the simulators through HTTP on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cards;
mod disputes;
mod events;
mod faults;
mod flutterwave;
mod jenga;
mod load;
mod mandates;
mod momo;
mod monnify;
mod mpesa;
mod notifications;
mod pages;
mod program;
mod refunds;
mod registers;
mod sms;
mod smtp;
mod transactions;
mod world;
