// A fake host for native tests: it returns scripted responses, handles secrets as the real host
// does, and records requests.

import { isUtf8 } from 'node:buffer';
import { createHash, createHmac } from 'node:crypto';

import { Fault } from '../src/fault.js';
import { encode, header } from '../src/http.js';

/** The values of the example account, the same as in `tollhouse plugin bench`. */
const SECRET = 'example-secret';
const SETTING = { text: 'example', url: 'https://provider.example' };

let current;

/** Runs a host function that the plugin under test calls. */
export function called(name, args) {
  if (current === undefined) throw new Error('no FakeHost is installed');
  return CALLS[name](current, ...args);
}

/** The fake host of a plugin under test. Configure it, then install it. */
export class FakeHost {
  /** All requests so far, in order, with placeholders replaced. */
  requests = [];
  /** All lines logged so far: level and message. */
  logs = [];
  /** The cache: value and TTL in seconds, by key. */
  cache = new Map();
  secrets = new Map();
  settings = new Map();
  placeholders = new Map();
  #bindings = new Map();
  #routes = [];

  /** Sets a secret. Reading a secret that is not set is `misconfigured`. */
  secret(name, value) {
    this.secrets.set(name, value);
    return this;
  }

  /** Sets a setting. */
  setting(name, value) {
    this.settings.set(name, value);
    return this;
  }

  /**
   * Loads a complete manifest: the defaults of its settings, the bindings of its secrets, an
   * account of example values, and the responses in its examples.
   */
  examples(manifest) {
    const secrets = manifest.secrets ?? [];
    if (!Array.isArray(secrets)) this.#bindings = new Map(Object.entries(secrets));
    for (const name of Array.isArray(secrets) ? secrets : Object.keys(secrets)) this.secret(name, SECRET);
    for (const [name, { kind, default: value }] of Object.entries(manifest.settings ?? {})) {
      this.setting(name, value ?? SETTING[kind]);
    }
    for (const [name, value] of Object.entries(manifest.examples?.credentials ?? {})) {
      if (name in (manifest.settings ?? {})) this.setting(name, value);
      else this.secret(name, value);
    }
    for (const { to, status, body } of manifest.examples?.answers ?? []) {
      const [, method, url] = to.match(/^(\S+) (.*)$/);
      this.answer(method, url, status ?? 200, body);
    }
    return this;
  }

  /**
   * Adds a response to a request. `url` is the complete URL or its end, with or without the query.
   * A string is sent as is, any other body as JSON. Several responses to the same request are
   * returned in order; the last one repeats.
   */
  answer(method, url, status, body = '') {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return this.#route(method, url, () => ({ status, headers: [], body: new Uint8Array(bytes) }));
  }

  /** Fails a request with a fault of the host. */
  fault(method, url, fault) {
    return this.#route(method, url, () => refuse(fault));
  }

  /** Simulates a timeout: the request is sent, and no response arrives in time. */
  timeout(method, url) {
    return this.fault(method, url, Fault.unavailable('no response in time').withCode('timeout'));
  }

  /** Simulates a connection failure. */
  noConnection(method, url) {
    return this.fault(method, url, Fault.unavailable('no connection').withCode('connect'));
  }

  /** Simulates a connection that ends during the response. */
  cut(method, url) {
    return this.fault(method, url, Fault.unavailable('the response was cut off').withCode('cut'));
  }

  #route(method, url, response) {
    const route = this.#routes.find((other) => other.method === method && other.url === url);
    if (route) route.responses.push(response);
    else this.#routes.push({ method, url, responses: [response] });
    return this;
  }

  /** Makes this the current host, until another one is installed. */
  install() {
    current = this;
    return this;
  }

  /** Returns the next response to a request, which fails the test if it has none. */
  next(method, url) {
    const path = url.split('?')[0];
    const fits = (end) => url.endsWith(end) || path.endsWith(end);
    const route = this.#routes.find((other) => other.method === method && fits(other.url));
    if (route === undefined) throw new Error(`FakeHost has no response for ${method} ${url}`);
    return (route.responses.length > 1 ? route.responses.shift() : route.responses[0])();
  }

  placeholder(names, value) {
    const placeholder = `vault-${this.placeholders.size.toString(16).padStart(32, '0')}`;
    this.placeholders.set(placeholder, { names, value });
    return placeholder;
  }

  fill(text) {
    return [...this.placeholders].reduce((filled, [placeholder, { value }]) => filled.replaceAll(placeholder, value), text);
  }

  /** Applies a step of a transformation. RSA is not computed: the result names key and data. */
  apply(bytes, { name, key }) {
    const hash = (algorithm) => createHash(algorithm).update(bytes).digest();
    const hmac = (algorithm) => createHmac(algorithm, this.value(key)).update(bytes).digest();
    const steps = {
      base64: () => Buffer.from(bytes.toString('base64')),
      base64url: () => Buffer.from(bytes.toString('base64url')),
      hex: () => Buffer.from(bytes.toString('hex')),
      sha256: () => hash('sha256'),
      sha512: () => hash('sha512'),
      'hmac-sha256': () => hmac('sha256'),
      'hmac-sha512': () => hmac('sha512'),
      'rsa-sha256': () => this.value(key) && Buffer.from(`rsa-sha256(${key}, ${hash('sha256').toString('hex')})`),
      'rsa-encrypt': () => (this.settings.get(key) ?? this.value(key)) && Buffer.from(`rsa-encrypt(${key}, ${bytes})`),
    };
    return steps[name]?.() ?? refuse(Fault.invalid('algorithm', 'no such algorithm'));
  }

  transform(template, steps) {
    const text = Buffer.from(template).toString();
    const names = [...this.placeholders].filter(([placeholder]) => text.includes(placeholder)).flatMap(([, { names }]) => names);
    const value = steps.reduce((bytes, step) => this.apply(bytes, step), Buffer.from(this.fill(text)));
    if (!isUtf8(value)) refuse(Fault.misconfigured('the result of a transformation is not text'));
    return this.placeholder(names, value.toString());
  }

  /** Fails the test if a placeholder is in a place where its secret must not be sent. */
  checkBindings({ method, url, headers, body }) {
    for (const [placeholder, { names }] of this.placeholders) {
      const holds = (text) => text.includes(placeholder) || text.includes(encode(placeholder));
      const refuseIn = (place, mayHold) => {
        const { origin } = new URL(url);
        const refused = names.find((name) => !mayHold || !this.#permits(name, place, origin));
        if (refused === undefined) return;
        throw new Error(`the host rejects a request to ${origin}: the secret ${refused} is in ${place}, where the manifest does not bind it`);
      };
      if (holds(method) || holds(url)) refuseIn('the method or the URL', false);
      for (const [name, value] of headers) {
        if (holds(name)) refuseIn('the name of a header', false);
        if (holds(value)) refuseIn(`header:${name.toLowerCase()}`, true);
      }
      if (holds(Buffer.from(body ?? []).toString())) refuseIn('body', true);
    }
  }

  #permits(name, place, origin) {
    if (!this.#bindings.has(name)) return true;
    const { to = [], in: places = [] } = this.#bindings.get(name);
    const isOrigin = (bound) => new URL(this.settings.get(bound) ?? `https://${bound}`).origin === origin;
    return places.includes(place) && to.some(isOrigin);
  }

  value(name) {
    return this.secrets.get(name) ?? refuse(Fault.misconfigured(`the secret ${name} is missing`));
  }
}

/** Returns headers and body of the manifest's example webhook. */
export function exampleNotification({ examples: { notification } }) {
  const { headers = {}, body } = notification;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return [Object.entries(headers), new Uint8Array(Buffer.from(text))];
}

/** Throws a fault as a component receives it from its host. */
function refuse({ category, code, message, retryable, details }) {
  throw Object.assign(new Error(message), { payload: { category, code, message, retryable, details } });
}

const CALLS = {
  'http.send': (host, { method, url, headers, body, timeoutMs }) => {
    host.checkBindings({ method, url, headers, body });
    const text = host.fill(Buffer.from(body ?? []).toString());
    const filled = headers.map(([name, value]) => [name, host.fill(value)]);
    host.requests.push({ method, url, headers: filled, body: text, timeoutMs, header: (name) => header(filled, name) });
    return host.next(method, url);
  },
  'vault.secret': (host, name) => host.placeholder([name], host.value(name)),
  'vault.basic': (host, user, password) => {
    const name = host.settings.get(user) ?? host.value(user);
    return host.placeholder([user, password], Buffer.from(`${name}:${host.value(password)}`).toString('base64'));
  },
  'vault-transform.transform': (host, template, steps) => host.transform(template, steps),
  'vault.hmac': (host, algorithm, secret, data) => {
    if (!['sha256', 'sha512'].includes(algorithm)) refuse(Fault.invalid('algorithm', 'no such algorithm'));
    return new Uint8Array(createHmac(algorithm, host.value(secret)).update(data).digest());
  },
  'vault.matches': (host, secret, candidate) => Buffer.from(host.value(secret)).equals(Buffer.from(candidate)),
  'settings.get': (host, name) => host.settings.get(name) ?? null,
  'cache.get': (host, key) => host.cache.get(key)?.[0] ?? null,
  'cache.put': (host, key, value, seconds) => void host.cache.set(key, [value, seconds]),
  'log.write': (host, level, message) => void host.logs.push([level, message]),
};
