import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { FakeHost } from 'tollhouse-plugin/testing';

import { sms } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const MESSAGES = ['POST', '/messages'];

/** A host with an account at the gateway, without responses. */
const account = () => new FakeHost().examples({ ...manifest, examples: {} });
const send = (sender = '') => sms.send({ to: '+2348012345678', sender, text: 'Your code is 4071', reference: 'r-1' });

test('the examples succeed', () => {
  new FakeHost().examples(manifest).install();
  assert.equal(send(), 'm-1');
});

test('the request has the key and the message', () => {
  for (const [sender, from] of [['', 'Shop'], ['Bank', 'Bank']]) {
    const { requests } = account().setting('sender', 'Shop').answer(...MESSAGES, 202, { id: 'm-2', state: 'accepted' }).install();
    send(sender);
    const [sent] = requests;
    assert.deepEqual([sent.header('authorization'), sent.timeoutMs], ['Bearer example-secret', 10_000]);
    assert.deepEqual(JSON.parse(sent.body), { to: '+2348012345678', from, text: 'Your code is 4071', reference: 'r-1' });
  }
});

test('each refusal has its category and no personal data', () => {
  for (const [status, body, category] of [
    [401, {}, 'misconfigured'],
    [422, { code: 'bad_number' }, 'invalid'],
    [400, { code: 'opted_out' }, 'refused'],
    [400, { code: 'bad_sender' }, 'misconfigured'],
    [402, { code: 'no_credit' }, 'unavailable'],
    [400, { code: 'unknown to +2348012345678' }, 'other'],
    [200, { id: 'm-3', state: 'failed for +2348012345678' }, 'other'],
  ]) {
    account().answer(...MESSAGES, status, body).install();
    assert.throws(send, (fault) => fault.category === category && !JSON.stringify(fault).includes('2348012345678'), category);
  }
});

test('failures of the gateway are unavailable', () => {
  for (const host of [
    account().timeout(...MESSAGES),
    account().noConnection(...MESSAGES),
    account().cut(...MESSAGES),
    account().answer(...MESSAGES, 200, '<html>'),
    account().answer(...MESSAGES, 400, '<html>'),
    account().answer(...MESSAGES, 503),
  ]) {
    host.install();
    assert.throws(() => send(), { category: 'unavailable' });
  }
});
