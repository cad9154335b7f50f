//! Plain values: money, phone numbers, e-mail addresses, pages of a list. They never do I/O.

pub mod email;
pub mod id;
pub mod listing;
pub mod money;
pub mod phone;
pub mod spreadsheet;
