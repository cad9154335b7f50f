// Short-lived values, kept by the host per plugin and set of credentials: an access token, say.

import * as wire from 'tollhouse:plugin/cache@1.0.0';

/** A value put earlier, unless its time is over. */
export const get = (key) => wire.get(key) ?? undefined;

/** Keeps a value for `ttlSeconds` at most. */
export const put = (key, value, ttlSeconds) => wire.put(key, value, ttlSeconds);
