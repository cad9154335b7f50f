// The only way out of the sandbox: https, towards the hosts that the operator granted, without redirects.

import * as wire from 'tollhouse:plugin/http@1.0.0';

import { Fault, ask } from './fault.js';
import { decode, encode as utf8 } from './utf8.js';

export const get = (url) => new Request('GET', url);
export const post = (url) => new Request('POST', url);
export const put = (url) => new Request('PUT', url);
export const del = (url) => new Request('DELETE', url);

/** A request on its way to be sent. Header values and the body may hold placeholders from `vault`; the URL may not. */
export class Request {
  #wire;

  constructor(method, url) {
    this.#wire = { method, url, headers: [], body: null, timeoutMs: null };
  }

  /** One more header. */
  header(name, value) {
    this.#wire.headers.push([name, value]);
    return this;
  }

  /** The header `authorization: Bearer ...`, usually with a placeholder. */
  bearer(token) {
    return this.header('authorization', `Bearer ${token}`);
  }

  /** The header `authorization: Basic ...`, with what `vault.basic` gave. */
  basic(credentials) {
    return this.header('authorization', `Basic ${credentials}`);
  }

  /** A body as it is: bytes or a text. */
  body(body) {
    this.#wire.body = typeof body === 'string' ? utf8(body) : body;
    return this;
  }

  /** A JSON body and its content type. */
  json(value) {
    return this.header('content-type', 'application/json').body(JSON.stringify(value));
  }

  /** The body of an HTML form and its content type. A secret's placeholder does not belong here: its value would not be encoded. */
  form(fields) {
    const pairs = Object.entries(fields).map(([name, value]) => `${encode(name)}=${encode(value)}`);
    return this.header('content-type', 'application/x-www-form-urlencoded').body(pairs.join('&'));
  }

  /** How long to wait; at most what remains of the call's own time. */
  timeoutMs(timeoutMs) {
    this.#wire.timeoutMs = timeoutMs;
    return this;
  }

  /**
   * Sends it. Every HTTP answer is a response, whatever its status; what is thrown is `unavailable` with the code `timeout`, `connect`
   * or `cut`, or `misconfigured` when the request may not leave.
   */
  send() {
    const { status, headers, body } = ask(() => wire.send(this.#wire));
    return new Response(status, headers, body);
  }
}

/** What came back. */
export class Response {
  constructor(status, headers, body) {
    Object.assign(this, { status, headers, body });
  }

  /** The first header of that name, in whatever case. */
  header(name) {
    return header(this.headers, name);
  }

  /** The body as text; what is no UTF-8 is replaced. */
  text() {
    return decode(this.body);
  }

  /**
   * The body read as a JSON object. `shape` names fields that must be there, each with its `typeof`. When it is something else the
   * upstream is out of order: see `unexpected`.
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

  /** The fault for a body that is not as expected. Nothing of the body is quoted, since it may name people. */
  unexpected(field) {
    const where = field === undefined ? '' : ` (field ${field})`;
    return Fault.unavailable(`HTTP ${this.status} with an unexpected body${where}`).withCode('unexpected-answer');
  }
}

/** The first header of that name, in whatever case. */
export function header(headers, name) {
  return headers.find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1];
}

/** `base` with `path` behind it and exactly one slash between the two. */
export const join = (base, path) => `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;

/** A text as one segment of a path or one value of a query: all but letters, digits and `-._~` as `%XX`. */
export function encode(text) {
  const percent = (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(String(text).toWellFormed()).replace(/[!'()*]/g, percent);
}
