// Helpers for tests with the running `cargo sandbox`.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const SANDBOX_JSON =
  process.env.SANDBOX_JSON ?? fileURLToPath(new URL('../../target/sandbox/sandbox.json', import.meta.url));

/** Addresses, keys and operator token of `cargo sandbox`. */
export const sandbox = JSON.parse(readFileSync(SANDBOX_JSON, 'utf8'));

/** Timeout of effects in the background. */
const EFFECT_TIMEOUT_MS = 20_000;

let drawn = 0;

/** A name that no earlier run against the same sandbox has used. */
export const unused = (prefix) => `${prefix}-${process.pid}-${Date.now()}-${(drawn += 1)}`;

/** Sends a request. Returns status and parsed body of the response. */
export async function call(method, url, { token, body } = {}) {
  const headers = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { 'content-type': 'application/json' }),
  };
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text) };
}

async function data(method, url, options) {
  const { status, body } = await call(method, url, options);
  assert.equal(status, 200, `${method} ${url}: ${JSON.stringify(body)}`);
  return body.data;
}

/** Sends a request to the operator API. Returns the `data` of the response. */
export const operator = (method, path, body) =>
  data(method, `${sandbox.internal}/internal/v1${path}`, { token: sandbox.operator_token, body });

/** A company of the sandbox with its API key. */
export class Company {
  constructor(company) {
    Object.assign(this, company);
  }

  /** Creates a company that uses the service account. */
  static async create(fields = {}) {
    return new Company(await operator('POST', '/companies', { name: 'Outside Lending', server: 'test', ...fields }));
  }

  call(method, path, body) {
    return call(method, `${sandbox.api}/api/v1${path}`, { token: this.api_key, body });
  }

  /** Initializes a payment of NGN 2,500.50. */
  initialize(fields = {}) {
    const order = { email: 'ada@example.com', amount: 2500.5, currency: 'NGN', checkout: { success_url: sandbox.sandbox } };
    const options = { token: this.api_key, body: { ...order, ...fields } };
    return data('POST', `${sandbox.api}/api/v1/payment/initialize`, options);
  }

  payment(reference) {
    return data('GET', `${sandbox.api}/api/v1/payment/fetch/reference/${reference}`, { token: this.api_key });
  }

  /** Waits until a payment has this status. Returns the payment. */
  settled(reference, status) {
    return until(`${reference} is ${status}`, async () => {
      const payment = await this.payment(reference);
      return payment.status === status && payment;
    });
  }
}

/** Completes a checkout as the buttons of its page do. */
export const complete = (url, outcome) => call('POST', `${url}/complete`, { body: { outcome } });

/** Polls until `probe` returns a value, and returns it. */
export async function until(what, probe) {
  for (const end = Date.now() + EFFECT_TIMEOUT_MS; Date.now() < end; await setTimeout(50)) {
    const found = await probe();
    if (found) return found;
  }
  assert.fail(`timed out: ${what}`);
}

/** A page that causes no further requests of browsers. */
const PAGE = '<!doctype html><title>Received</title><link rel="icon" href="data:,">';

/** Starts a server that stores its requests, until the test `t` ends. */
export async function receiver(t) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    requests.push({ method: request.method, path: request.url, headers: request.headers, body });
    response.setHeader('content-type', 'text/html').end(PAGE);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}
