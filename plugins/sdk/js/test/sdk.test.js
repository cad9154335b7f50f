import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Fault, cache, http, log, settings, vault } from '../src/index.js';
import { code, short } from '../src/text.js';
import { decode, encode } from '../src/utf8.js';
import { FakeHost } from '../testing/host.js';
import { packed } from '../bin/pack.js';

/** Returns the fault that a call throws. */
function fault(call) {
  try {
    call();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  assert.fail('no fault');
}

describe('texts', () => {
  test('personal data and tokens are removed', () => {
    const text = 'Customer ada@example.com (+2348012345678) has no AUTH_uh8bcl3zbn, try\n again in 5 min';
    assert.equal(short(text), 'Customer [...] [...] has no [...] try again in 5 min');
    assert.equal(short('no '.repeat(500)).length, 163);
    assert.equal(code('missing params\n<b>'), 'missingparamsb');
  });

  test('UTF-8 is converted as by Node', () => {
    for (const text of ['', 'plain', 'é € 😀', 'x'.repeat(10_000), '\ud800']) {
      assert.deepEqual(encode(text), new TextEncoder().encode(text));
      assert.equal(decode(encode(text)), text.toWellFormed());
    }
    for (const bytes of [[0xff], [0xc3], [0x80, 0x41], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      assert.match(decode(Uint8Array.from(bytes)), /^\ufffd+A?$/);
    }
  });
});

test('URLs are joined by one slash and values are encoded', () => {
  assert.equal(http.join('https://a.test/', '/x'), 'https://a.test/x');
  assert.equal(http.encode("a/../b?c=1&é'"), 'a%2F..%2Fb%3Fc%3D1%26%C3%A9%27');
});

test('placeholders are replaced and requests are recorded', () => {
  const host = new FakeHost().secret('token', 't0p').setting('user', 'ada').answer('POST', '/x', 201, { n: 1 }).answer('POST', '/x', 409).install();
  const token = vault.secret('token');
  assert.ok(!token.includes('t0p'));
  const send = () => http.post('https://a.test/x?q=1').basic(vault.basic('user', 'token')).json({ key: token }).send();
  assert.deepEqual([send(), send(), send()].map(({ status }) => status), [201, 409, 409]);
  assert.equal(host.requests[0].body, '{"key":"t0p"}');
  assert.equal(host.requests[0].header('Authorization'), 'Basic YWRhOnQwcA==');
  assert.throws(() => http.get('https://a.test/y').send(), /no response for GET/);
});

test('a template is transformed with its secrets', () => {
  const manifest = { secrets: { pass: { to: ['a.test'], in: ['body'] }, key: {} }, examples: { answers: [{ to: 'POST /x', body: {} }] } };
  const host = new FakeHost().examples(manifest).secret('pass', 'p4ss').setting('certificate', 'PEM').install();
  const transformed = (...steps) => vault.transform(`174379${vault.secret('pass')}20210628`, ...steps);
  const body = {
    password: transformed('base64'),
    hash: transformed('sha256', 'hex'),
    signature: transformed(['rsa-sha256', 'key']),
    encrypted: transformed(['rsa-encrypt', 'certificate']),
  };
  http.post('https://a.test/x').json(body).send();
  const hash = '1fc92f34b72bc5c33c087deb4e63bb91e0f4fdca5ec86375b5be4dbeaed3bae7';
  assert.deepEqual(JSON.parse(host.requests[0].body), {
    password: 'MTc0Mzc5cDRzczIwMjEwNjI4',
    hash,
    signature: `rsa-sha256(key, ${hash})`,
    encrypted: 'rsa-encrypt(certificate, 174379p4ss20210628)',
  });
  assert.throws(() => http.post('https://a.test/x').bearer(body.password).send(), /the secret pass is in/);
  assert.equal(fault(() => transformed('sha256')).category, 'misconfigured');
});

test('a secret is sent only where the manifest binds it', () => {
  const manifest = {
    secrets: { key: { to: ['base_url', 'b.test'], in: ['header:x-key', 'body'] }, other: {} },
    settings: { base_url: { kind: 'url', default: 'https://a.test/v1' } },
    examples: { answers: [{ to: 'GET /x', body: {} }, { to: 'POST /x', body: {} }] },
  };
  const url = 'https://a.test/x';
  for (const [name, sent, request] of [
    ['key', true, (key) => http.get(url).header('X-Key', key)],
    ['key', true, (key) => http.post('https://b.test/x').body(key)],
    ['key', false, (key) => http.get(url).bearer(key)],
    ['key', false, (key) => http.get('https://c.test/x').header('x-key', key)],
    ['key', false, (key) => http.get(`${url}?key=${http.encode(key)}`)],
    ['key', false, (key) => http.get(url).header(key, '1')],
    ['other', false, (key) => http.get(url).header('x-key', key)],
    ['other', true, () => http.get(url)],
  ]) {
    const host = new FakeHost().examples(manifest).install();
    const send = () => request(vault.secret(name)).send();
    if (sent) send();
    else assert.throws(send, /the host rejects a request/);
    assert.equal(host.requests.length, sent ? 1 : 0, `${name} in ${request}`);
  }
});

test('a body without the required fields is unavailable', () => {
  new FakeHost().answer('GET', '/good', 200, { id: 'a', n: 1 }).answer('GET', '/list', 200, []).answer('GET', '/page', 200, '<p>Ada').install();
  const get = (path) => http.get(`https://a.test${path}`).send();
  assert.equal(get('/good').json({ id: 'string' }).n, 1);
  for (const [path, shape] of [['/good', { n: 'string' }], ['/good', { x: 'string' }], ['/list', {}], ['/page', {}]]) {
    const { category, code, message } = fault(() => get(path).json(shape));
    assert.deepEqual([category, code], ['unavailable', 'unexpected-answer']);
    assert.ok(!message.includes('Ada'));
  }
});

test('faults, settings, cache and logs work as on the host', () => {
  const host = new FakeHost().setting('base_url', 'https://a.test/').timeout('GET', '/slow').noConnection('GET', '/down').cut('GET', '/cut').install();
  const code = (path) => fault(() => http.get(settings.url('base_url', path)).send()).code;
  assert.deepEqual(['/slow', 'down', 'cut'].map(code), ['timeout', 'connect', 'cut']);
  assert.equal(settings.get('mode', 'live'), 'live');
  assert.equal(fault(() => settings.required('mode')).category, 'misconfigured');
  assert.equal(fault(() => vault.secret('none')).category, 'misconfigured');
  assert.equal(cache.get('k'), undefined);
  cache.put('k', 'v', 60);
  assert.deepEqual([cache.get('k'), host.cache.get('k')], ['v', ['v', 60]]);
  log.warn('hm');
  assert.deepEqual(host.logs, [['warn', 'hm']]);
});

test('signatures and secrets are verified', () => {
  // RFC 4231, test case 2.
  new FakeHost().secret('key', 'Jefe').install();
  const data = 'what do ya want for nothing?';
  const hex = '5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843';
  const base64 = 'W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=';
  assert.ok(vault.signedHex('sha256', 'key', data, hex));
  assert.ok(vault.signedBase64('sha256', 'key', data, base64));
  for (const [text, signature] of [['else', hex], [data, ''], [data, hex.slice(1)], [data, `${hex}00`]]) {
    assert.ok(!vault.signedHex('sha256', 'key', text, signature));
  }
  for (const [text, signature] of [['else', base64], [data, ''], [data, `A${base64.slice(1)}`]]) {
    assert.ok(!vault.signedBase64('sha256', 'key', text, signature));
  }
  assert.ok(vault.matches('key', 'Jefe') && !vault.matches('key', 'Jeff'));
  assert.equal(fault(() => vault.hmac('md5', 'key', data)).category, 'invalid');
});

test('the manifest is the last custom section of the component', () => {
  const wasm = packed(Buffer.from('\0asm'), Buffer.from('x'.repeat(200)));
  // The name with its length takes 19 bytes: 219 in total, which takes two bytes of LEB128.
  assert.deepEqual([...wasm.subarray(4, 8)], [0, 0xdb, 0x01, 18]);
  assert.equal(wasm.subarray(8, 26).toString(), 'tollhouse:manifest');
  assert.equal(wasm.length, 7 + 219);
});
