// A person signs in to the console with an OpenID provider: panva's oidc-provider, in Debian's
// Chromium.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';

import Provider from 'oidc-provider';

import { browser } from './browser.js';
import { ROOT, folder, freePorts } from './machine.js';
import { call, until } from './sandbox.js';

const CLIENT = { client_id: 'tollhouse', client_secret: 'a client secret: 50 %' };
const TOKEN = `op_${randomBytes(20).toString('hex')}`;

/** Starts a provider at which everyone may sign in with a name. Returns its issuer URL. */
async function startProvider(t, redirect) {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ ...CLIENT, redirect_uris: [redirect] }],
    claims: { email: ['email', 'email_verified'] },
    cookies: { keys: [randomBytes(20).toString('hex')] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@Lender.example`, email_verified: true }),
    }),
    // Everyone consents.
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid email');
      await grant.save();
      return grant;
    },
  });
  const others = provider.callback();
  server.on('request', async (request, response) => {
    if (!request.url.startsWith('/interaction/')) return others(request, response);
    if (request.method === 'GET') return response.setHeader('content-type', 'text/html').end(PAGE);
    const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    await provider.interactionFinished(request, response, { login: { accountId: form.get('name') } });
  });
  return issuer;
}

const PAGE = `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,">
<form method="post"><label>Name <input name="name"></label><button>Continue</button></form>`;

/** Starts a host with these settings, until the test ends. */
async function startHost(t, internal, settings) {
  const dir = folder(t, 'oidc');
  const [port] = await freePorts(1);
  const host = spawn(`${ROOT}/target/debug/tollhouse`, ['serve', '--development'], {
    cwd: dir,
    env: {
      PATH: process.env.PATH,
      HOME: dir,
      RUST_LOG: 'warn',
      TOLLHOUSE_DATABASE: `sqlite://${dir}/tollhouse.db`,
      TOLLHOUSE_FILES: `${dir}/files`,
      TOLLHOUSE_LISTEN: `127.0.0.1:${port}`,
      TOLLHOUSE_INTERNAL_LISTEN: internal,
      TOLLHOUSE_MASTER_KEY: randomBytes(32).toString('hex'),
      TOLLHOUSE_OPERATOR_TOKEN: TOKEN,
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await once(host, 'spawn');
  t.after(async () => {
    host.kill('SIGKILL');
    await once(host, 'exit');
  });
  await until('the host is up', async () => {
    assert.equal(host.exitCode, null, 'the host ended');
    return fetch(`http://${internal}/health/live`).then(({ ok }) => ok, () => false);
  });
}

describe('sign-in with an OpenID provider', () => {
  const open = browser();

  test('a person signs in, signs out and signs in again', { timeout: 120_000 }, async (t) => {
    const [port] = await freePorts(1);
    const internal = `127.0.0.1:${port}`;
    const url = `http://${internal}`;
    const issuer = await startProvider(t, `${url}/console/sign-in/oidc/callback`);
    await startHost(t, internal, {
      TOLLHOUSE_OIDC_ISSUER: issuer,
      TOLLHOUSE_OIDC_CLIENT_ID: CLIENT.client_id,
      TOLLHOUSE_OIDC_CLIENT_SECRET: CLIENT.client_secret,
      TOLLHOUSE_OIDC_NAME: 'Lender',
    });
    const ada = { name: 'ada', email: 'ada@lender.example', roles: ['support-read'] };
    const created = await call('POST', `${url}/internal/v1/operators`, { token: TOKEN, body: ada });
    assert.equal(created.status, 200, JSON.stringify(created.body));

    const page = await open(t);
    await page.goto(`${url}/console/companies`);
    await page.getByRole('link', { name: 'Sign in with Lender' }).click();
    await page.getByLabel('Name').fill('ada');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${url}/console/companies`);
    assert.ok(await page.getByText('ada', { exact: true }).isVisible());

    await page.locator('.person summary').click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL(`${url}/console/sign-in`);
    // The provider still knows the person.
    await page.getByRole('link', { name: 'Sign in with Lender' }).click();
    await page.waitForURL(`${url}/console`);

    const log = await call('GET', `${url}/internal/v1/audit`, { token: TOKEN });
    const actions = log.body.data.docs.map(({ action }) => action);
    assert.deepEqual(actions.reverse(), [
      'operator.create', 'operator.identity', 'session.create', 'session.end', 'session.create',
    ]);
  });
});
