//! Short-lived values, kept by the host per plugin and set of credentials: an access token, say.

use crate::port;

/// A value put earlier, unless its time is over.
pub fn get(key: &str) -> Option<String> {
    port::cache::get(key)
}

/// Keeps a value for `ttl_seconds` at most.
pub fn put(key: &str, value: &str, ttl_seconds: u32) {
    port::cache::put(key, value, ttl_seconds);
}
