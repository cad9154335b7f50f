//! A cache of short-lived values, for example access tokens. Each host keeps it in memory, per
//! component and account.

use crate::port;

/// Returns a cached value unless it has expired.
pub fn get(key: &str) -> Option<String> {
    port::cache::get(key)
}

/// Caches a value for at most `ttl_seconds`.
pub fn put(key: &str, value: &str, ttl_seconds: u32) {
    port::cache::put(key, value, ttl_seconds);
}
