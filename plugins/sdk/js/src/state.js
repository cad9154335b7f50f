// The state that the host stores for a plugin about a payment or refund, as JSON.

import * as utf8 from './utf8.js';

/** Encodes a state, or the data of a notification. The result may have at most 4 KiB. */
export const encode = (state) => utf8.encode(JSON.stringify(state));

/** Decodes a state. Returns `undefined` if there is none, or if it is not JSON. */
export function decode(bytes) {
  try {
    return bytes ? JSON.parse(utf8.decode(bytes)) : undefined;
  } catch {
    return undefined;
  }
}
