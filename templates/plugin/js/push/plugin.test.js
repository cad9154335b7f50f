import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { state } from 'tollhouse-plugin';
import { FakeHost, exampleNotification } from 'tollhouse-plugin/testing';

import { sessions } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const PUSH = ['GET', '/pushes/1001'];
const CALLBACK_URL = 'https://lender.example/notifications/1';
const amount = { minor: 500_000, currency: 'KES' };

/** A host with an account at the provider, without responses. */
const account = () => new FakeHost().examples({ ...manifest, examples: {} });
const start = () =>
  sessions.start({
    serviceRef: 'example-1',
    amount,
    email: 'ada@example.com',
    phone: '+254712345678',
    customerName: null,
    narration: 'Loan 7',
    channels: [],
    successUrl: 'https://shop.example/done',
    cancelUrl: null,
    notificationUrl: CALLBACK_URL,
    metadata: '{}',
    saveInstrument: false,
  });
/** A payment with this state and notification data. */
const session = (data) => ({
  serviceRef: 'example-1',
  transactionId: '',
  amount,
  startedAt: '2026-01-01T09:00:00.000Z',
  state: null,
  notified: null,
  ...data,
});
const started = () => session({ state: state.encode({ id: '1001' }) });
/** A push as the provider reports it. */
const push = (reference, status) => ({ reference, status, amount: 1, currency: 'KES' });
const verify = () => sessions.verify(started());
const receive = (text) => sessions.receive(started(), [], new Uint8Array(Buffer.from(text)));

test('the examples succeed', () => {
  new FakeHost().examples(manifest).install();
  const begun = start();
  assert.equal(begun.next.tag, 'prompt');
  const notified = sessions.receive(started(), ...exampleNotification(manifest));
  const { status, amount } = sessions.verify(session({ state: begun.state, notified }));
  assert.deepEqual([status, amount.minor], ['success', 500_000]);
});

test('the request has the key and the order', () => {
  const { requests } = account().answer('POST', '/pushes', 201, { id: '1001' }).install();
  start();
  const [sent] = requests;
  assert.equal(sent.url, 'https://api.upstream.example/pushes');
  assert.equal(sent.header('authorization'), 'Bearer example-secret');
  assert.deepEqual(JSON.parse(sent.body), {
    reference: 'example-1',
    amount: 500_000,
    currency: 'KES',
    phone: '+254712345678',
    description: 'Loan 7',
    callback_url: CALLBACK_URL,
  });
});

test('each status of a push is mapped', () => {
  const words = {
    paid: 'success', declined: 'failed', expired: 'failed', refunded: 'reversed', sent: 'pending', 'a new word': 'pending',
  };
  for (const [text, status] of Object.entries(words)) {
    account().answer(...PUSH, 200, push('example-1', text)).install();
    assert.equal(verify().status, status, text);
  }
});

test('a callback identifies a push whose response was lost', () => {
  account().answer(...PUSH, 200, push('example-1', 'paid')).install();
  assert.throws(() => sessions.verify(session()), { category: 'not-found' });
  const notified = receive('{"id": "1001", "reference": "example-1"}');
  assert.equal(sessions.verify(session({ notified })).status, 'success');
});

test('a push of another payment is not accepted', () => {
  account().answer(...PUSH, 200, push('example-2', 'paid')).install();
  assert.throws(verify, { category: 'unavailable' });
});

test('a callback of another push is invalid', () => {
  for (const body of ['{}', 'not JSON', ' '.repeat(1 << 20), '{"id": "1001", "reference": "example-2"}']) {
    assert.throws(() => receive(body), { category: 'invalid' }, body.slice(0, 50));
  }
});

test('each refusal has its category', () => {
  for (const [status, code, category, expected] of [
    [401, '', 'misconfigured', ''],
    [404, 'no_such_push', 'not-found', ''],
    [409, 'reference_taken', 'refused', 'duplicate-reference'],
    [422, 'unsupported_phone', 'invalid', ''],
    [422, 'too_much', 'refused', 'too_much'],
  ]) {
    account().answer('POST', '/pushes', status, { code, message: 'no' }).install();
    assert.throws(start, { category, code: expected }, code);
  }
});

test('failures of the provider are unavailable', () => {
  for (const host of [
    account().timeout(...PUSH),
    account().noConnection(...PUSH),
    account().cut(...PUSH),
    account().answer(...PUSH, 200, '<html>'),
    account().answer(...PUSH, 404, '<html>'),
    account().answer(...PUSH, 429),
    account().answer(...PUSH, 500),
  ]) {
    host.install();
    assert.throws(verify, { category: 'unavailable' });
  }
});
