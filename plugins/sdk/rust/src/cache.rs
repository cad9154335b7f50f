//! A cache of short-lived values, such as access tokens. The host keeps it per plugin and set of
//! credentials.

use crate::port;

/// Returns a cached value unless it has expired.
pub fn get(key: &str) -> Option<String> {
    port::cache::get(key)
}

/// Caches a value for at most `ttl_seconds`.
pub fn put(key: &str, value: &str, ttl_seconds: u32) {
    port::cache::put(key, value, ttl_seconds);
}
