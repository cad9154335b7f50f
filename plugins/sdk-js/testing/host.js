// A host for native tests: it answers as the test says, keeps secrets as the real one does, and remembers what was sent.

import { createHmac } from 'node:crypto';

import { Fault } from '../src/fault.js';
import { encode, header } from '../src/http.js';

/** The account of a manifest's examples, in which `tollhouse plugin bench` measures the plugin, too. */
const SECRET = 'example-secret';
const SETTING = { text: 'example', url: 'https://provider.example' };

let current;

/** A host's function, called by the plugin under test. */
export function called(name, args) {
  if (current === undefined) throw new Error('no FakeHost is installed');
  return CALLS[name](current, ...args);
}

/** What the plugin under test sees of the world. Make it, tell it, install it. */
export class FakeHost {
  /** All requests so far, in order, placeholders filled in. */
  requests = [];
  /** All lines logged so far: level and message. */
  logs = [];
  /** What is in the cache: value and seconds by key. */
  cache = new Map();
  secrets = new Map();
  settings = new Map();
  placeholders = new Map();
  #bindings = new Map();
  #routes = [];

  /** A secret's value. Secrets that were not given are `misconfigured`. */
  secret(name, value) {
    this.secrets.set(name, value);
    return this;
  }

  /** What the operator set. */
  setting(name, value) {
    this.settings.set(name, value);
    return this;
  }

  /**
   * Takes a manifest whole: the defaults of its settings, the bindings of its secrets, an account of example values, and its examples'
   * answers.
   */
  examples(manifest) {
    const secrets = manifest.secrets ?? [];
    if (!Array.isArray(secrets)) this.#bindings = new Map(Object.entries(secrets));
    for (const name of Array.isArray(secrets) ? secrets : Object.keys(secrets)) this.secret(name, SECRET);
    for (const [name, { kind, default: value }] of Object.entries(manifest.settings ?? {})) {
      this.setting(name, value ?? SETTING[kind]);
    }
    for (const { to, status, body } of manifest.examples?.answers ?? []) {
      const [, method, url] = to.match(/^(\S+) (.*)$/);
      this.answer(method, url, status ?? 200, body);
    }
    return this;
  }

  /**
   * Answers a request. `url` is the whole URL or its end, with or without the query; a body that is a text is sent as it is, anything
   * else as JSON. Several answers for the same request are given one after the other, the last one for good.
   */
  answer(method, url, status, body = '') {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return this.#route(method, url, () => ({ status, headers: [], body: new Uint8Array(bytes) }));
  }

  /** Answers with a fault of the host's. */
  fault(method, url, fault) {
    return this.#route(method, url, () => refuse(fault));
  }

  /** The request leaves, and no answer comes in time. */
  timeout(method, url) {
    return this.fault(method, url, Fault.unavailable('no answer in time').withCode('timeout'));
  }

  /** No connection comes about. */
  noConnection(method, url) {
    return this.fault(method, url, Fault.unavailable('no connection').withCode('connect'));
  }

  /** The connection ends amid the answer. */
  cut(method, url) {
    return this.fault(method, url, Fault.unavailable('the answer was cut off').withCode('cut'));
  }

  #route(method, url, answer) {
    const route = this.#routes.find((other) => other.method === method && other.url === url);
    if (route) route.answers.push(answer);
    else this.#routes.push({ method, url, answers: [answer] });
    return this;
  }

  /** Makes this the host until another one is installed. */
  install() {
    current = this;
    return this;
  }

  /** The next answer to a request; one that no answer was given for fails the test. */
  next(method, url) {
    const path = url.split('?')[0];
    const fits = (end) => url.endsWith(end) || path.endsWith(end);
    const route = this.#routes.find((other) => other.method === method && fits(other.url));
    if (route === undefined) throw new Error(`FakeHost has no answer for ${method} ${url}`);
    return (route.answers.length > 1 ? route.answers.shift() : route.answers[0])();
  }

  placeholder(names, value) {
    const placeholder = `{{secret-placeholder-${this.placeholders.size}}}`;
    this.placeholders.set(placeholder, { names, value });
    return placeholder;
  }

  fill(text) {
    return [...this.placeholders].reduce((filled, [placeholder, { value }]) => filled.replaceAll(placeholder, value), text);
  }

  /** Fails the test if a placeholder is where its secret may not be sent. */
  checkBindings({ method, url, headers, body }) {
    for (const [placeholder, { names }] of this.placeholders) {
      const holds = (text) => text.includes(placeholder) || text.includes(encode(placeholder));
      const refuseIn = (place, mayHold) => {
        const { origin } = new URL(url);
        const refused = names.find((name) => !mayHold || !this.#permits(name, place, origin));
        if (refused === undefined) return;
        throw new Error(`the host refuses a request to ${origin}: the secret ${refused} is in ${place}, where the manifest does not bind it to`);
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

/** Headers and body of the manifest's example of a notification. */
export function exampleNotification({ examples: { notification } }) {
  return [Object.entries(notification.headers), new Uint8Array(Buffer.from(notification.body))];
}

/** As a component hears of a fault of its host. */
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
