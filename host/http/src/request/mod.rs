//! Reads requests: body, query string, path and fields. A 400 names the first invalid field.

pub mod body;
pub mod fields;
pub mod get;
pub mod kinds;
pub mod object;
pub mod path;
pub mod query;
pub mod urls;
