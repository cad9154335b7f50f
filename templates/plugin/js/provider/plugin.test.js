import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { FakeHost, exampleNotification } from 'tollhouse-plugin/testing';

import { checkout, notifications, verification } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const PAYMENT = ['GET', '/payments/example-1'];

/** A host with an account at the provider, without responses. */
const account = () => new FakeHost().examples({ ...manifest, examples: {} });
const start = () =>
  checkout.start({
    serviceRef: 'example-1',
    amount: { minor: 500_000, currency: 'NGN' },
    email: 'ada@example.com',
    customerName: null,
    narration: '',
    channels: [],
    successUrl: 'https://shop.example/done',
    cancelUrl: null,
    metadata: '{"order":"1"}',
    saveInstrument: false,
  });
const verify = () => verification.verify('example-1');

test('the examples succeed', () => {
  new FakeHost().examples(manifest).install();
  assert.equal(start().url, 'https://pay.upstream.example/1001');
  const { status, amount, metadata } = verify();
  assert.deepEqual([status, amount.minor, metadata], ['success', 500_000, '{"order":"1"}']);
  assert.equal(notifications.parse(...exampleNotification(manifest))[0].serviceRef, 'example-1');
});

test('the request has the key and the order', () => {
  const { requests } = account().answer('POST', '/payments', 201, { url: 'https://p' }).install();
  start();
  const [sent] = requests;
  assert.equal(sent.url, 'https://api.upstream.example/payments');
  assert.equal(sent.header('authorization'), 'Bearer example-secret');
  const { reference, amount, currency, metadata } = JSON.parse(sent.body);
  assert.deepEqual([reference, amount, currency, metadata], ['example-1', 500_000, 'NGN', { order: '1' }]);
});

test('each status of a payment is mapped', () => {
  const words = { paid: 'success', declined: 'failed', refunded: 'reversed', open: 'pending', 'a new word': 'pending' };
  for (const [text, status] of Object.entries(words)) {
    account().answer(...PAYMENT, 200, { id: '1', status: text, amount: 1, currency: 'NGN' }).install();
    assert.equal(verify().status, status, text);
  }
});

test('each refusal has its category', () => {
  for (const [status, code, category, expected] of [
    [401, '', 'misconfigured', ''],
    [404, 'no_such_payment', 'not-found', ''],
    [409, 'reference_taken', 'refused', 'duplicate-reference'],
    [422, 'too_much', 'refused', 'too_much'],
  ]) {
    account().answer('POST', '/payments', status, { code, message: 'no' }).install();
    assert.throws(start, { category, code: expected }, String(status));
  }
});

test('failures of the provider are unavailable', () => {
  for (const host of [
    account().timeout(...PAYMENT),
    account().noConnection(...PAYMENT),
    account().cut(...PAYMENT),
    account().answer(...PAYMENT, 200, '<html>'),
    account().answer(...PAYMENT, 404, '<html>'),
    account().answer(...PAYMENT, 429),
    account().answer(...PAYMENT, 500),
  ]) {
    host.install();
    assert.throws(verify, { category: 'unavailable' });
  }
});

test('a webhook without a valid signature is unauthentic', () => {
  new FakeHost().examples(manifest).install();
  const [headers, body] = exampleNotification(manifest);
  const changed = Uint8Array.of(...body, 0x20);
  for (const given of [[[], body], [headers, changed]]) assert.throws(() => notifications.parse(...given), { tag: 'unauthentic' });
});
