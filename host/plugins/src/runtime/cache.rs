//! In-memory cache of short-lived values, such as access tokens, per component and credentials.

use crate::metrics::PluginMetrics;
use crate::prelude::*;

const MAX_ENTRIES_PER_SCOPE: usize = 64;
/// Maximum size of a key with its value.
pub const MAX_BYTES: usize = 16 << 10;
const MAX_ENTRIES: usize = 4096;
const MAX_TTL_SECONDS: u32 = 24 * 3600;

#[derive(Default)]
pub struct Cache {
    scopes: Mutex<HashMap<String, Scope>>,
    metrics: PluginMetrics,
}

type Scope = HashMap<String, (String, Timestamp)>;

impl Cache {
    pub fn new(metrics: PluginMetrics) -> Cache {
        Cache { scopes: Mutex::default(), metrics }
    }

    pub fn get(&self, scope: &str, key: &str, now: Timestamp) -> Option<String> {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let held = scopes.get(scope).and_then(|entries| entries.get(key));
        let value = held.filter(|(_, until)| *until > now).map(|(value, _)| value.clone());
        self.metrics.count_cache_lookup(value.is_some());
        value
    }

    /// Stores a value unless it is too large. Clears a full scope or a full cache.
    pub fn put(&self, scope: &str, key: String, value: String, ttl_seconds: u32, now: Timestamp) {
        if key.len() + value.len() > MAX_BYTES {
            return;
        }
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        if scopes.values().map(Scope::len).sum::<usize>() >= MAX_ENTRIES {
            scopes.retain(|_, entries| {
                entries.retain(|_, (_, until)| *until > now);
                !entries.is_empty()
            });
            if scopes.values().map(Scope::len).sum::<usize>() >= MAX_ENTRIES {
                scopes.clear();
            }
        }
        let entries = scopes.entry(scope.to_owned()).or_default();
        entries.retain(|_, (_, until)| *until > now);
        if entries.len() >= MAX_ENTRIES_PER_SCOPE {
            entries.clear();
        }
        let until = now.plus_seconds(i64::from(ttl_seconds.min(MAX_TTL_SECONDS)));
        entries.insert(key, (value, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scoped_and_expire() {
        let (cache, now) = (Cache::default(), Timestamp(0));
        cache.put("a", "k".into(), "v".into(), 10, now);
        assert_eq!(cache.get("a", "k", now.plus_seconds(9)), Some("v".into()));
        assert_eq!(cache.get("a", "k", now.plus_seconds(10)), None);
        assert_eq!(cache.get("b", "k", now), None);
    }

    #[test]
    fn a_scope_stays_bounded() {
        let (cache, now) = (Cache::default(), Timestamp(0));
        for n in 0..1000 {
            cache.put("a", n.to_string(), "v".into(), 10, now);
        }
        cache.put("a", "big".into(), "v".repeat(MAX_BYTES), 10, now);
        assert!(cache.scopes.lock().unwrap()["a"].len() <= MAX_ENTRIES_PER_SCOPE);
        assert_eq!(cache.get("a", "big", now), None);
    }

    #[test]
    fn all_scopes_together_stay_bounded() {
        let (cache, now) = (Cache::default(), Timestamp(0));
        cache.put("short", "k".into(), "v".into(), 1, now);
        let later = now.plus_seconds(1);
        for n in 0..MAX_ENTRIES {
            cache.put(&n.to_string(), "k".into(), "v".into(), 10, later);
        }
        // The expired entry has made room.
        assert_eq!(cache.get("0", "k", later), Some("v".into()));
        cache.put("one more", "k".into(), "v".into(), 10, later);
        assert_eq!(cache.scopes.lock().unwrap().len(), 1);
    }
}
