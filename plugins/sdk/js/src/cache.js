// A cache of short-lived values, such as access tokens. The host keeps it per plugin and set of
// credentials.

import * as wire from 'tollhouse:plugin/cache@1.0.0';

/** Returns a cached value unless it has expired. */
export const get = (key) => wire.get(key) ?? undefined;

/** Caches a value for at most `ttlSeconds`. */
export const put = (key, value, ttlSeconds) => wire.put(key, value, ttlSeconds);
