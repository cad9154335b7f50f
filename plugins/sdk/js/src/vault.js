// Operations on secrets, which never enter the sandbox. Names are those of the manifest's
// `secrets`.

import * as wire from 'tollhouse:plugin/vault@1.0.0';
import * as transformWire from 'tollhouse:plugin/vault-transform@1.0.0';

import { callHost } from './fault.js';
import { encode } from './utf8.js';

const bytes = (data) => (typeof data === 'string' ? encode(data) : data);
const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Returns a placeholder for a secret, valid for this call only. Put it where the manifest binds the
 * secret: in a header value or the body.
 */
export const secret = (name) => callHost(() => wire.secret(name));

/**
 * Returns a placeholder for the credentials of HTTP basic authentication, without the word "Basic".
 * `password` names a secret; `user` names a secret or a setting.
 */
export const basic = (user, password) => callHost(() => wire.basic(user, password));

/**
 * Applies the steps to a template (bytes or a string) and returns a placeholder for the result, for
 * upstreams that require a secret in another form. Placeholders in the template stand for their
 * values; the result may be sent where all of its secrets may be. The result must be text: end with
 * an encoding.
 *
 * A step is a name ("base64"), or a pair of a name and the name of a key (["rsa-sha256", "key"]).
 */
export const transform = (template, ...steps) =>
  callHost(() => transformWire.transform(bytes(template), steps.map(step)));

const step = (step) => {
  const [name, key] = [step].flat();
  return { name, key: key ?? null };
};

/** Computes the HMAC of bytes or a string under a secret. The algorithm is "sha256" or "sha512". */
export const hmac = (algorithm, secret, data) => callHost(() => wire.hmac(algorithm, secret, bytes(data)));

/** Returns whether bytes or a string equal the secret, in constant time. */
export const matches = (secret, candidate) => callHost(() => wire.matches(secret, bytes(candidate)));

/**
 * Returns whether `signature` is the HMAC of `data` in hexadecimal digits of either case, in
 * constant time.
 */
export const signedHex = (algorithm, secret, data, signature) =>
  same(hex(hmac(algorithm, secret, data)), signature.trim().toLowerCase());

/** Returns whether `signature` is the HMAC of `data` in base64, in constant time. */
export const signedBase64 = (algorithm, secret, data, signature) =>
  same(btoa(String.fromCharCode(...hmac(algorithm, secret, data))), signature.trim());

function same(expected, given) {
  let differs = expected.length ^ given.length;
  for (let n = 0; n < expected.length; n += 1) differs |= expected.charCodeAt(n) ^ given.charCodeAt(n);
  return differs === 0;
}
