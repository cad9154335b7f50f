import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { FakeHost } from 'tollhouse-plugin/testing';

import { identityLookup } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const CITIZEN = ['GET', '/citizens/AB123456'];

/** A host with an account at the register, without responses. */
const account = () => new FakeHost().examples({ ...manifest, examples: {} });
const lookup = () => identityLookup.lookup({ identity: 'citizen_card', identifier: 'AB123456', person: null });

test('the examples succeed', () => {
  const { requests } = new FakeHost().examples(manifest).install();
  const { details, phone } = lookup();
  assert.deepEqual([JSON.parse(details).date_of_birth, phone], ['10/12/1990', '+2348012345678']);
  assert.equal(requests[0].header('authorization'), 'Bearer example-secret');
});

test('absent and invalid fields are null', () => {
  account().answer(...CITIZEN, 200, { first_name: 'Ada', last_name: 'Obi', born: 'unknown' }).install();
  const { date_of_birth, phone_number } = JSON.parse(lookup().details);
  assert.deepEqual([date_of_birth, phone_number], [null, null]);
});

test('each refusal has its category', () => {
  for (const [status, code, category] of [
    [401, '', 'misconfigured'],
    [404, 'no_such_citizen', 'not-found'],
    [422, 'bad_number', 'invalid'],
    [400, 'sealed', 'refused'],
    [402, 'no_credit', 'unavailable'],
    [400, 'a new word', 'other'],
  ]) {
    account().answer(...CITIZEN, status, { code }).install();
    assert.throws(lookup, { category }, `${status} ${code}`);
  }
});

test('failures of the register are unavailable', () => {
  for (const host of [
    account().timeout(...CITIZEN),
    account().noConnection(...CITIZEN),
    account().cut(...CITIZEN),
    account().answer(...CITIZEN, 200, '<html>'),
    account().answer(...CITIZEN, 404, '<html>'),
    account().answer(...CITIZEN, 500),
  ]) {
    host.install();
    assert.throws(lookup, { category: 'unavailable' });
  }
});
