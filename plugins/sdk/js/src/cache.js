// A cache of short-lived values, for example access tokens. Each host keeps it in memory, per
// component and account.

import * as wire from 'tollhouse:plugin/cache@1.0.0';

/** Returns a cached value unless it has expired. */
export const get = (key) => wire.get(key) ?? undefined;

/** Caches a value for at most `ttlSeconds`. */
export const put = (key, value, ttlSeconds) => wire.put(key, value, ttlSeconds);
