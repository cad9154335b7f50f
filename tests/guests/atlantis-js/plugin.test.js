import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { FakeHost } from 'tollhouse-plugin/testing';

import { identityLookup } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const CITIZEN = 'GET /citizens/204060';

const lookup = () => identityLookup.lookup({ identity: 'citizen', identifier: '204060', person: null });
const host = () => new FakeHost().examples(manifest);
/** A host whose register returns this status for a lookup. */
const refusing = (status) => {
  const answers = manifest.examples.answers.map((example) => (example.to === CITIZEN ? { ...example, status } : example));
  return new FakeHost().examples({ ...manifest, examples: { answers } });
};

test('an entry is normalized and the token is cached', () => {
  const { requests } = host().install();
  for (let n = 0; n < 2; n += 1) {
    const entry = lookup();
    assert.deepEqual(JSON.parse(entry.details), { name: 'Critias', date_of_birth: '10/12/1990' });
    assert.deepEqual([entry.email, entry.phone], [null, '+306900000000']);
  }
  assert.deepEqual(requests.map(({ method }) => method), ['POST', 'GET', 'GET']);
  const basic = Buffer.from('tollhouse:example-secret').toString('base64');
  assert.equal(requests[0].header('authorization'), `Basic ${basic}`);
  assert.equal(requests[2].header('authorization'), 'Bearer example-token');
});

test('each status has its category', () => {
  const cases = { 404: 'not-found', 422: 'invalid', 451: 'refused', 401: 'misconfigured', 402: 'unavailable', 500: 'unavailable' };
  for (const [status, category] of Object.entries(cases)) {
    refusing(Number(status)).install();
    assert.throws(lookup, { category }, status);
  }
});

test('failures of the register are unavailable', () => {
  for (const [status, body] of [[200, '<html>'], [200, { token: 7 }], [503, '']]) {
    new FakeHost().secret('key', 'k').setting('client', 'c').setting('base_url', 'https://r.test').answer('POST', '/tokens', status, body).install();
    assert.throws(lookup, { category: 'unavailable' });
  }
});
