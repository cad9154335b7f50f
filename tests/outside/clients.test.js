// The clients in clients/ are generated from the document that the sandbox serves. They pass their
// type checkers, and so do the examples in their READMEs. Between client and sandbox is a proxy.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { ROOT, commands } from './machine.js';
import { Company, complete, receiver, sandbox, until, unused } from './sandbox.js';

const FOLDER = `${ROOT}/target/outside/clients`;
const PROGRAMS = fileURLToPath(new URL('clients', import.meta.url));
const VENV = `${FOLDER}/venv`;

/** What a developer's own build leaves in the folder of a client. */
const BUILT = ['node_modules', 'dist', '.mypy_cache', '__pycache__'];

/** Runs a program. Returns its output; if it fails, output and errors are shown. */
async function run(cwd, program, args, input) {
  const env = { ...process.env, PATH: `${VENV}/bin:${process.env.PATH}`, NO_PROXY: '127.0.0.1' };
  const child = spawn(program, args, { cwd, env, stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  child.stdin?.end(input);
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  assert.equal(code, 0, `${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

const shell = (cwd, script) => run(cwd, 'bash', ['-euo', 'pipefail', '-c', script]);

/** The examples of a README in one file, for the running sandbox. */
function examples(client, language) {
  const readme = readFileSync(`${ROOT}/clients/${client}/README.md`, 'utf8');
  const blocks = [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))];
  assert.equal(blocks.length, 2);
  return blocks
    .map(([, block]) => block)
    .join('\n')
    .replace('first-payment', unused('first-payment'))
    .replace('http://127.0.0.1:8080', sandbox.api)
    .replace('sk_test_…', sandbox.api_key);
}

const TSC = 'node_modules/.bin/tsc --strict --module nodenext --target es2022 --types node';

const CLIENTS = {
  typescript: { language: 'ts', source: 'ts', check: `${TSC} calls.ts examples.ts`, script: 'js', program: 'node' },
  python: {
    language: 'python',
    source: 'py',
    check: 'mypy && mypy --strict generate.py calls.py examples.py',
    script: 'py',
    program: `${VENV}/bin/python`,
  },
};

/** A failure that the proxy returns instead of forwarding the request. */
const failure = (status, message, headers = {}) => ({ status, message, headers });

/** The proxy forwards the request, and closes the connection instead of returning the response. */
const LOST = { status: 0 };

const UNAVAILABLE = failure(503, 'the database is unavailable, try again later', { 'retry-after': '1' });

/** Starts a proxy before the API, until the test `t` ends. Its first requests meet `faults`. */
async function proxy(t, ...faults) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const { authorization, 'content-type': type, 'idempotency-key': key } = request.headers;
    const body = Buffer.concat(await request.toArray());
    const seen = { key, atMs: performance.now() };
    requests.push(seen);
    const fault = faults.shift();
    if (fault?.status) {
      response.writeHead(fault.status, fault.headers);
      response.end(JSON.stringify({ error: true, message: fault.message }));
      return;
    }
    const optional = { ...(type && { 'content-type': type }), ...(key && { 'idempotency-key': key }) };
    const answer = await fetch(`${sandbox.api}${request.url}`, {
      method: request.method,
      headers: { authorization, ...optional },
      body: body.length > 0 ? body : undefined,
    });
    seen.status = answer.status;
    seen.replayed = answer.headers.get('idempotent-replayed') === 'true';
    const content = await answer.text();
    if (fault === LOST) request.socket.destroy();
    else response.writeHead(answer.status, { 'x-request-id': answer.headers.get('x-request-id') }).end(content);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { baseUrl: `http://127.0.0.1:${server.address().port}`, requests };
}

/** Asserts that all requests had the same key, and that one payment exists. */
async function assertOnePayment(company, requests) {
  assert.match(requests[0].key, /^[0-9a-f-]{36}$/);
  assert.equal(new Set(requests.map(({ key }) => key)).size, 1);
  const { body } = await company.call('GET', '/payment/list');
  assert.equal(body.data.total, 1);
}

for (const [client, { language, source, check, script, program }] of Object.entries(CLIENTS)) {
  describe(`the client in ${client}`, () => {
    const folder = `${FOLDER}/${client}`;

    /** Makes one call. Returns its `result` or `error`. */
    async function call(action, { company, baseUrl = sandbox.api, maxAttempts, ...input }) {
      const options = { apiKey: company.api_key, baseUrl, maxAttempts };
      return JSON.parse(await run(folder, program, [`calls.${script}`], JSON.stringify({ action, options, ...input })));
    }

    before(async () => {
      rmSync(folder, { recursive: true, force: true });
      const isSource = (path) => !BUILT.some((name) => path.endsWith(`/${name}`));
      cpSync(`${ROOT}/clients/${client}`, folder, { recursive: true, filter: isSource });
      const [install] = commands(`clients/${client}/README.md`, '## Install');
      await shell(ROOT, `[ -x ${VENV}/bin/python ] || python3 -m venv ${VENV}`);
      await shell(folder, install.replace('http://127.0.0.1:8080', sandbox.api));
      cpSync(`${PROGRAMS}/calls.${source}`, `${folder}/calls.${source}`);
      writeFileSync(`${folder}/examples.${source}`, examples(client, language));
      await shell(folder, check);
    });

    test('runs the examples of its README', async () => {
      const url = (await run(folder, program, [`examples.${script}`])).trim();
      assert.ok(url.startsWith(sandbox.sandbox), url);
    });

    test('initializes, fetches and lists payments', async () => {
      const company = await Company.create();
      const reference = unused('pay/ment');
      const { result: payment } = await call('initialize', { company, reference, amount: 2500.5 });
      assert.deepEqual([payment.reference, payment.amount, payment.status], [reference, 2500.5, 'pending']);
      const { result: fetched } = await call('fetch', { company, reference });
      assert.equal(fetched.id, payment.id);
      const { result: page } = await call('list', { company });
      assert.deepEqual([page.total, page.per_page, page.docs[0].id], [1, 5, payment.id]);
      await complete(payment.checkout.url, 'success');
      await until('no payment is pending', async () => (await call('list', { company })).result.total === 0);
    });

    test('filters users by metadata', async () => {
      const company = await Company.create();
      for (const plan of ['gold', 'iron']) {
        const user = { email: `${plan}@example.com`, first_name: 'Ada', last_name: 'Obi', metadata: { plan } };
        assert.equal((await company.call('POST', '/user/create', user)).status, 200);
      }
      const { result } = await call('users', { company });
      assert.deepEqual(result.docs.map(({ email }) => email), ['gold@example.com']);
    });

    test('reports the invalid field of a rejected request, and does not retry', async (t) => {
      const { baseUrl, requests } = await proxy(t);
      const { error } = await call('initialize', { company: await Company.create(), baseUrl, amount: -1 });
      assert.deepEqual([error.status, error.message], [400, 'the amount field must be greater than 0']);
      assert.deepEqual(error.fields, { amount: 'must be greater than 0' });
      assert.ok(error.requestId);
      assert.equal(requests.length, 1);
    });

    test('a lost response is replayed', async (t) => {
      const company = await Company.create();
      const { baseUrl, requests } = await proxy(t, LOST);
      const { result } = await call('initialize', { company, baseUrl, amount: 100 });
      assert.equal(result.status, 'pending');
      assert.deepEqual(requests.map(({ status, replayed }) => [status, replayed]), [[200, false], [200, true]]);
      await assertOnePayment(company, requests);
    });

    test('a lost response and an attempt that is still running are waited for', async (t) => {
      const company = await Company.create();
      const running = failure(409, 'the request with this Idempotency-Key is in progress');
      const { baseUrl, requests } = await proxy(t, LOST, running);
      assert.ok((await call('initialize', { company, baseUrl, amount: 100 })).result);
      assert.equal(requests.length, 3);
      await assertOnePayment(company, requests);
    });

    test('409 is not retried if nothing is in progress', async (t) => {
      const conflict = failure(409, 'the Idempotency-Key was used with another request');
      const { baseUrl, requests } = await proxy(t, conflict);
      const { error } = await call('initialize', { company: await Company.create(), baseUrl, amount: 100 });
      assert.deepEqual([error.status, requests.length], [409, 1]);
    });

    test('503 is retried after Retry-After', async (t) => {
      const company = await Company.create();
      const { baseUrl, requests } = await proxy(t, UNAVAILABLE);
      assert.ok((await call('initialize', { company, baseUrl, amount: 100 })).result);
      const [first, second] = requests;
      assert.ok(second.atMs - first.atMs >= 1_000, `${second.atMs - first.atMs} ms`);
      await assertOnePayment(company, requests);
    });

    test('429, 502 and 409 with Retry-After are retried', async (t) => {
      const company = await Company.create();
      const busy = failure(409, 'busy', { 'retry-after': '0' });
      const faults = [failure(429, 'too many requests'), failure(502, 'unavailable'), busy];
      const { baseUrl, requests } = await proxy(t, ...faults);
      assert.ok((await call('initialize', { company, baseUrl, amount: 100 })).result);
      assert.equal(requests.length, 4);
      await assertOnePayment(company, requests);
    });

    test('500 and a long Retry-After are not retried', async (t) => {
      const company = await Company.create();
      for (const fault of [failure(500, 'outcome unknown'), failure(503, 'unavailable', { 'retry-after': '61' })]) {
        const { baseUrl, requests } = await proxy(t, fault);
        const { error } = await call('initialize', { company, baseUrl, amount: 100 });
        assert.deepEqual([error.status, error.message, requests.length], [fault.status, fault.message, 1]);
      }
    });

    test('the last error has the key, to repeat the request', async (t) => {
      const { baseUrl, requests } = await proxy(t, UNAVAILABLE, UNAVAILABLE, UNAVAILABLE);
      const company = await Company.create();
      const { error } = await call('initialize', { company, baseUrl, maxAttempts: 2, amount: 100 });
      assert.deepEqual([error.status, requests.length], [503, 2]);
      assert.deepEqual(requests.map(({ key }) => key), [error.idempotencyKey, error.idempotencyKey]);
    });

    test('a code is not sent twice', async (t) => {
      const { baseUrl, requests } = await proxy(t, LOST);
      const { error } = await call('send_code', { company: await Company.create(), baseUrl, user_id: 'nobody' });
      assert.deepEqual([error.status, error.fields, requests.length], [0, {}, 1]);
    });

    test('verifies an event as it was delivered, and rejects a changed one', async (t) => {
      const inbox = await receiver(t);
      const company = await Company.create({ event_url: `${inbox.url}/events` });
      const reference = unused('event');
      const { checkout } = await company.initialize({ reference });
      await complete(checkout.url, 'success');
      await until('the event arrives', () => inbox.requests.length === 1);
      const [{ headers, body }] = inbox.requests;
      const verify = (bytes) =>
        call('verify', { company, secret: company.event_secret, headers, body: bytes.toString('base64') });
      assert.deepEqual(await verify(body), { result: { reference, amount: 2500.5 } });
      const more = Buffer.from(body.toString().replace('2500.5', '9500.5'));
      assert.deepEqual(await verify(more), { error: { name: 'WebhookVerificationError' } });
      assert.deepEqual(await verify(Buffer.from([0xff])), { error: { name: 'WebhookVerificationError' } });
    });
  });
}
