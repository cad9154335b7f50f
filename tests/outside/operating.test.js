// The commands in docs/OPERATING.md and docs/guides/another-host.md that set up a host work as
// documented.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { ROOT, Terminal, commands, folder, freePorts } from './machine.js';
import { call, complete, until } from './sandbox.js';

/** A PostgreSQL server whose user may create databases and roles. */
const SERVER = process.env.TOLLHOUSE_TEST_POSTGRES && new URL(process.env.TOLLHOUSE_TEST_POSTGRES);
const skip = !SERVER && 'SKIPPED: TOLLHOUSE_TEST_POSTGRES names no server';
const ADMINISTRATOR = SERVER && {
  PGHOST: SERVER.hostname,
  PGPORT: SERVER.port || '5432',
  PGUSER: SERVER.username,
  PGPASSWORD: decodeURIComponent(SERVER.password),
};
const PROGRAMS = `${ROOT}/target/debug`;

let drawn = 0;
const unused = () => `t${process.pid}_${Date.now()}_${(drawn += 1)}`;

/** The environment after a login. */
const environment = (dir, more) => ({ PATH: `${PROGRAMS}:${process.env.PATH}`, HOME: dir, LANG: 'C.UTF-8', ...more });

const sql = (...statements) =>
  execFileSync('psql', ['--quiet', '--set=ON_ERROR_STOP=1', ...statements.map((one) => `--command=${one}`), 'postgres'], {
    env: { ...process.env, ...ADMINISTRATOR, PGOPTIONS: '-c client_min_messages=warning' },
    encoding: 'utf8',
  });

/** A terminal in an empty folder, whose processes end with the test. */
function terminal(t, name, more) {
  const dir = folder(t, name);
  const opened = new Terminal(dir, environment(dir, more));
  return opened;
}

/** Replaces the ports in a text by unused ones. */
async function moved(text, named) {
  const free = await freePorts(named.length);
  const ports = Object.fromEntries(named.map((port, n) => [port, free[n]]));
  return { ports, text: text.replaceAll(/\b\d{4,5}\b/g, (number) => ports[number] ?? number) };
}

describe('docs/OPERATING.md', () => {
  test('production, step by step', { skip, timeout: 300_000 }, async (t) => {
    const blocks = commands('docs/OPERATING.md', '## Production, step by step');
    assert.equal(blocks.length, 12);
    const steps = blocks.map((block, n) => `echo '== ${n + 1} =='\n${block}`).join('');
    const name = unused();
    const built = steps
      .replace(/^SOURCE=.*\n\(cd .*cargo build --release\)$/m, `SOURCE='${ROOT}'`)
      .replaceAll('/target/release', '/target/debug')
      .replaceAll(/\btollhouse_(db|owner|host|drill)\b/g, `${name}_$1`)
      .replace(/^export PGHOST=.*$/m, '# the administrator of the tests');
    const { ports, text } = await moved(built, [8080, 8081, 9080, 9081, 10080, 10081]);
    const here = terminal(t, 'production', ADMINISTRATOR);
    try {
      const { code, output } = await here.type(text);
      const logs = () => ['first', 'second', 'drill'].map((log) => `${log}.log: ${read(here, `${log}.log`)}`);
      assert.equal(code, 0, `${output}\n${logs().join('\n')}`);
      const step = (n) => output.split(`== ${n} ==\n`)[1].split(/^== \d+ ==$/m)[0];
      assert.match(step(4), /^No problems found\.$/m);
      assert.match(step(6), /^acme is trusted/m);
      assert.match(step(6), /^provider_a \S+ is active/m);
      assert.match(step(6), new RegExp(`https://localhost:${ports[8080]}/api/v1/notifications/provider_a/`));
      for (const n of [7, 8, 11]) assert.match(step(n), /"message":"Payment listed successfully"/);
      assert.match(step(8), /^provider_a +\S+ +active +acme/m);
      assert.match(step(10), /"message":"ready, without jobs"/);
      assert.match(step(11), /Acme Lending/);
      assert.match(step(11), /^provider_a +live +yes +yes/m);
      assert.match(step(11), /^tollhouse_jobs_enabled 0$/m);
      for (const series of step(11).matchAll(/^tollhouse_ledger_\S+ (.*)$/gm)) assert.equal(series[1], '0', series[0]);
      assert.match(read(here, 'drill.log'), /no_jobs is set: this host runs no jobs/);
      assert.doesNotMatch(read(here, 'first.log') + read(here, 'second.log'), /no_jobs|ERROR|panic/);

      const own = 'tollhouse config check --config conf/tollhouse.toml --tls-certificate ca.pem --tls-key ca.key';
      const refused = await here.type(own);
      assert.equal(refused.code, 1);
      assert.match(refused.output, /ca\.pem: this is a CA certificate/);
    } finally {
      here.end();
      const forced = (database) => `DROP DATABASE IF EXISTS ${name}_${database} WITH (FORCE)`;
      sql(forced('db'), forced('drill'), `DROP ROLE IF EXISTS ${name}_host`, `DROP ROLE IF EXISTS ${name}_owner`);
    }
  });
});

function read(terminal, file) {
  try {
    return readFileSync(`${terminal.dir}/${file}`, 'utf8');
  } catch {
    return 'not written';
  }
}

describe('docs/guides/another-host.md', () => {
  async function recipe(t, more) {
    const [block] = commands('docs/guides/another-host.md', '## Point another host at the simulators');
    const script = block
      .replaceAll('cargo sandbox', 'sandbox')
      .replaceAll('cargo run --', 'tollhouse')
      .replaceAll('target/plugins/', `${ROOT}/target/plugins/`);
    const { ports, text } = await moved(script, [9080, 9081, 9082]);
    const here = terminal(t, 'simulators', more);
    try {
      const { code, output } = await here.type(`mkdir target\n${text}`);
      assert.equal(code, 0, `${output}\n${read(here, 'target/host/log')}`);
      const { api_key: token } = JSON.parse(read(here, 'target/host/company.json'));
      await pay(`http://127.0.0.1:${ports[9080]}/api/v1`, `http://127.0.0.1:${ports[9082]}`, token);
    } finally {
      here.end();
    }
  }

  /** The simulator sends a webhook to the host, and the host sends the event to the simulator. */
  async function pay(api, simulators, token) {
    const order = { email: 'ada@example.com', amount: 100, currency: 'NGN', reference: 'order-1', checkout: { success_url: simulators } };
    const begun = await call('POST', `${api}/payment/initialize`, { token, body: order });
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    assert.equal((await complete(begun.body.data.checkout.url, 'success')).status, 200);
    // No request verifies the payment, and the schedule would do so only after a minute.
    await until('the payment is a success', async () => {
      const { body } = await call('GET', `${api}/payment/fetch/reference/order-1`, { token });
      return body.data.status === 'success';
    });
    const event = await until('the event arrives', async () => {
      const { body } = await call('GET', `${simulators}/events.json`);
      return body[0];
    });
    assert.deepEqual([event.event, event.signature], ['payment.success', 'valid']);
  }

  test('on SQLite', { timeout: 300_000 }, async (t) => recipe(t, {}));

  test('on PostgreSQL', { skip, timeout: 300_000 }, async (t) => {
    const name = unused();
    sql(`CREATE DATABASE ${name}`);
    const url = new URL(SERVER);
    url.pathname = name;
    try {
      await recipe(t, { TOLLHOUSE_DATABASE: url.href, TOLLHOUSE_DATABASE_AS_OWNER: 'true' });
    } finally {
      sql(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});
