// Work with secrets that never enter the sandbox. Names are those of the manifest's `secrets`.

import * as wire from 'tollhouse:plugin/vault@1.0.0';

import { ask } from './fault.js';
import { encode } from './utf8.js';

const bytes = (data) => (typeof data === 'string' ? encode(data) : data);
const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** A placeholder for a secret's value, good for this call alone, to be put in a header's value or the body. */
export const secret = (name) => ask(() => wire.secret(name));

/**
 * A placeholder for the credentials of HTTP basic authentication, without the word "Basic". Both arguments are names: `password` of
 * a secret, `user` of a secret or a setting.
 */
export const basic = (user, password) => ask(() => wire.basic(user, password));

/** The keyed hash of bytes or a text; algorithms are "sha256" and "sha512". */
export const hmac = (algorithm, secret, data) => ask(() => wire.hmac(algorithm, secret, bytes(data)));

/** Whether bytes or a text are the secret; compared in constant time. */
export const matches = (secret, candidate) => ask(() => wire.matches(secret, bytes(candidate)));

/** Whether `signature` is the keyed hash of `data` in hexadecimal digits of either case; compared in constant time. */
export const signedHex = (algorithm, secret, data, signature) =>
  same(hex(hmac(algorithm, secret, data)), signature.trim().toLowerCase());

/** Whether `signature` is the keyed hash of `data` in base64; compared in constant time. */
export const signedBase64 = (algorithm, secret, data, signature) =>
  same(btoa(String.fromCharCode(...hmac(algorithm, secret, data))), signature.trim());

function same(expected, given) {
  let differs = expected.length ^ given.length;
  for (let n = 0; n < expected.length; n += 1) differs |= expected.charCodeAt(n) ^ given.charCodeAt(n);
  return differs === 0;
}
