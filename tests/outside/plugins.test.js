// Plugins in JavaScript and Python, built with the SDKs, are installed into the running host: they
// look up citizens of Atlantis, and take a payment with MTN MoMo.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Company, call, complete, operator, sandbox, unused } from './sandbox.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KEY = 'atlantis-key';

const SDKS = `${ROOT}/plugins/sdk`;
const TSC = fileURLToPath(new URL('node_modules/.bin/tsc', import.meta.url));

/**
 * Commands that test SDK and guest natively and build the guest, in a copy, so that no files are
 * left in the sources.
 */
const LANGUAGES = {
  js: `
    node --import ${SDKS}/js/testing/register.js --test ${SDKS}/js/test/*.test.js
    npm install --ignore-scripts --no-audit --no-fund
    ${TSC} --noEmit --allowJs --checkJs --strict --noImplicitAny false --module nodenext --target es2024 plugin.js
    npm test
    npm run build`,
  py: `
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
    .venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps -r requirements.txt
    .venv/bin/tollhouse-plugin test
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=build/bindings .venv/bin/python -m unittest discover ${SDKS}/python/tests
    .venv/bin/tollhouse-plugin build`,
};

/**
 * The component of a guest. The copy is as deep below the root as the source, so that its paths to
 * the SDK are valid.
 */
function built(language, name = `atlantis-${language}`) {
  const folder = `${ROOT}/target/outside/${name}`;
  rmSync(`${folder}/node_modules`, { recursive: true, force: true });
  cpSync(`${ROOT}/tests/guests/${name}`, folder, { recursive: true });
  // Node's test runner does not run nested tests otherwise.
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  execFileSync('bash', ['-euo', 'pipefail', '-c', LANGUAGES[language]], { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const manifest = JSON.parse(readFileSync(`${folder}/manifest.json`, 'utf8'));
  return readFileSync(`${folder}/${manifest.name}.wasm`);
}

/** Responses of the register of Atlantis by number. */
const CITIZENS = {
  204060: [200, { name: 'Critias', born: '1990-12-10', email: 'critias@people.example', phone: '+306900000000' }],
  400004: [404, {}],
  400022: [422, {}],
  400051: [451, {}],
  500000: [500, {}],
  500001: [200, '<html>'],
  500002: [402, {}],
};

/** Starts the register, which stores its requests, until the test `t` ends. */
async function register(t) {
  const requests = [];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    requests.push({ method, url, mark: headers['x-mark'] });
    const basic = Buffer.from(`tollhouse:${KEY}`).toString('base64');
    const open = headers.authorization === (url === '/tokens' ? `Basic ${basic}` : 'Bearer t0ken');
    const granted = url === '/tokens' ? [200, { token: 't0ken', expires_in: 300 }] : CITIZENS[url.split('/').at(-1)];
    const [status, body] = open ? granted : [401, {}];
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

async function install(wasm) {
  const headers = { authorization: `Bearer ${sandbox.operator_token}` };
  const response = await fetch(`${sandbox.internal}/internal/v1/plugins?grant=true`, { method: 'POST', headers, body: wasm });
  const { data, message } = await response.json();
  assert.equal(response.status, 200, message);
  return data;
}

for (const language of Object.keys(LANGUAGES)) {
  describe(`a country in ${language}`, () => {
    test('is installed over HTTP and serves lookups', async (t) => {
      const country = `atlantis_${language}`;
      const { interfaces } = await install(built(language));
      assert.deepEqual(interfaces, ['identity-lookup']);
      const { url, requests } = await register(t);
      const account = (key) => operator('PUT', `/providers/${country}`, { credentials: { key, base_url: url }, active: true });
      const company = await Company.create();
      await operator('POST', `/companies/${company.id}/wallet/credit`, { amount: 1_000, key: unused('credit') });
      const lookup = (number) => company.call('POST', `/kyc/${country}/citizen/lookup`, { number });

      const outage = 'citizen service is unavailable, please try again later';
      await account('wrong');
      const unknown = await lookup('204060');
      assert.deepEqual([unknown.status, unknown.body.message], [502, outage]);
      assert.deepEqual(requests.splice(0).map(({ url }) => url), ['/tokens']);

      await account(KEY);
      const found = await lookup('204060');
      assert.deepEqual([found.status, found.body.message], [200, 'Citizen lookup successful']);
      assert.deepEqual(found.body.data.details, { name: 'Critias', date_of_birth: '10/12/1990' });
      assert.equal(found.body.data.phone_number, '+306900000000');
      // The call ran three times: each request was sent once, and all runs had the same mark.
      assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`), ['POST /tokens', 'GET /citizens/204060']);
      assert.ok(requests.every(({ mark }) => /^\d+.* 0\.\d+$/.test(mark)), JSON.stringify(requests));

      for (const [number, status, message] of [
        ['400004', 404, 'citizen data not found'],
        ['400022', 400, 'the number field must be one that the register accepts'],
        ['400051', 400, 'citizen data cannot be disclosed'],
        ['500000', 502, outage],
        ['500001', 502, outage],
        ['500002', 502, outage],
      ]) {
        const refused = await lookup(number);
        assert.deepEqual([refused.status, refused.body.message], [status, message], number);
      }
      // The token was cached: it was requested once.
      assert.equal(requests.filter(({ url }) => url === '/tokens').length, 1);
    });
  });
}

test('a provider of push payments in js takes a payment', async () => {
  const { interfaces } = await install(built('js', 'momo-js'));
  assert.deepEqual(interfaces.toSorted(), ['session-refunds', 'sessions']);
  const base_url = `${sandbox.sandbox}/momo`;
  const keys = { api_user: randomUUID(), api_key: 'key', subscription_key: 's1', disbursement_subscription_key: 's2' };
  const opened = await call('PUT', `${base_url}/account`, { body: { ...keys, target_environment: 'mtnghana', currency: 'GHS' } });
  assert.equal(opened.status, 204);
  await operator('PUT', '/providers/momo', { credentials: { ...keys, target_environment: 'mtnghana', base_url }, active: true });

  const [company, reference] = [await Company.create(), unused('momo')];
  const order = { payment_service: 'momo', reference, currency: 'GHS', phone: '+233241234567' };
  const { service_ref } = await company.initialize(order);
  await complete(`${sandbox.sandbox}/checkout/${service_ref}`, 'success');
  const { amount, payment_channel } = await company.settled(reference, 'success');
  assert.deepEqual([amount, payment_channel], [2500.5, 'mobile_money']);
});
