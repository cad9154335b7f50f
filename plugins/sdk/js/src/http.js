// HTTP requests through the host: over HTTPS, to granted hosts only, without following redirects.

import * as wire from 'tollhouse:plugin/http@1.0.0';

import { Fault, callHost } from './fault.js';
import { decode, encode as utf8 } from './utf8.js';

export const get = (url) => new Request('GET', url);
export const post = (url) => new Request('POST', url);
export const put = (url) => new Request('PUT', url);
export const del = (url) => new Request('DELETE', url);

/**
 * An HTTP request. Header values and the body may contain placeholders from `vault`; the URL must
 * not.
 */
export class Request {
  #wire;

  constructor(method, url) {
    this.#wire = { method, url, headers: [], body: null, timeoutMs: null };
  }

  /** Adds a header. */
  header(name, value) {
    this.#wire.headers.push([name, value]);
    return this;
  }

  /** Adds the header `authorization: Bearer ...`, usually with a placeholder. */
  bearer(token) {
    return this.header('authorization', `Bearer ${token}`);
  }

  /** Adds the header `authorization: Basic ...` with the result of `vault.basic`. */
  basic(credentials) {
    return this.header('authorization', `Basic ${credentials}`);
  }

  /** Sets the body: bytes or a string. */
  body(body) {
    this.#wire.body = typeof body === 'string' ? utf8(body) : body;
    return this;
  }

  /** Sets a JSON body and its content type. */
  json(value) {
    return this.header('content-type', 'application/json').body(JSON.stringify(value));
  }

  /**
   * Sets the body of an HTML form and its content type. Do not put a secret's placeholder in it:
   * the secret's value would not be percent-encoded.
   */
  form(fields) {
    const pairs = Object.entries(fields).map(([name, value]) => `${encode(name)}=${encode(value)}`);
    return this.header('content-type', 'application/x-www-form-urlencoded').body(pairs.join('&'));
  }

  /** Sets the timeout. The host caps it at the remaining time of the call. */
  timeoutMs(timeoutMs) {
    this.#wire.timeoutMs = timeoutMs;
    return this;
  }

  /**
   * Sends the request and returns the response, whatever its status.
   *
   * Throws a fault: `unavailable` with the code `timeout`, `connect` or `cut`, or `misconfigured`
   * if the request is not permitted.
   */
  send() {
    const { status, headers, body } = callHost(() => wire.send(this.#wire));
    return new Response(status, headers, body);
  }
}

/** An HTTP response. */
export class Response {
  constructor(status, headers, body) {
    Object.assign(this, { status, headers, body });
  }

  /** Returns the first header of this name, ignoring case. */
  header(name) {
    return header(this.headers, name);
  }

  /** Returns the body as text, with invalid UTF-8 replaced by U+FFFD. */
  text() {
    return decode(this.body);
  }

  /**
   * Returns the body as a JSON object. `shape` lists required fields and their `typeof`. Any other
   * body is a fault of the upstream: see `unexpected`.
   */
  json(shape = {}) {
    let value;
    try {
      value = JSON.parse(this.text());
    } catch {
      throw this.unexpected();
    }
    const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
    const wrong = Object.keys(shape).find((name) => !isObject || typeof value[name] !== shape[name]);
    if (!isObject || wrong !== undefined) throw this.unexpected(wrong);
    return value;
  }

  /**
   * Returns the fault for an unexpected body. It never quotes the body, which may contain personal
   * data.
   */
  unexpected(field) {
    const where = field === undefined ? '' : ` (field ${field})`;
    return Fault.unavailable(`HTTP ${this.status} with an unexpected body${where}`).withCode('unexpected-answer');
  }
}

/** Returns the first header of this name, ignoring case. */
export function header(headers, name) {
  return headers.find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1];
}

/** Joins `base` and `path` with exactly one slash. */
export const join = (base, path) => `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;

/**
 * Percent-encodes a text as one path segment or query value: all bytes except ASCII letters, digits
 * and `-._~`.
 */
export function encode(text) {
  const percent = (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(String(text).toWellFormed()).replace(/[!'()*]/g, percent);
}
