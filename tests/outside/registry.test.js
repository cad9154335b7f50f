// Plugins from author to operator: signed by OpenSSL, published to a registry, installed from
// there.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { ROOT, folder, freePorts } from './machine.js';
import { operator, sandbox, unused } from './sandbox.js';

const TARGET = `${ROOT}/target`;
const SPROUT = `${TARGET}/plugins/wasm32-wasip2/plugin/sprout.wasm`;

/** Starts Debian's registry on loopback, with one user. Returns its address. */
async function registry(t, dir) {
  const address = `127.0.0.1:${await freePorts(1)}`;
  // The output of `htpasswd -nbB author secret`.
  writeFileSync(`${dir}/users`, 'author:$2y$05$GyLHsnriUrc3pfSd/qPrI.oXRA60EuLl4PhdEl2rHS2tQwYjpfIeG\n');
  const settings = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: `${dir}/blobs` } },
    http: { addr: address },
    auth: { htpasswd: { realm: 'plugins', path: `${dir}/users` } },
    log: { level: 'error' },
  };
  writeFileSync(`${dir}/registry.yml`, JSON.stringify(settings));
  const server = spawn('docker-registry', ['serve', `${dir}/registry.yml`], { stdio: 'ignore' });
  t.after(() => server.kill());
  for (let tries = 0; ; tries += 1) {
    const response = await fetch(`http://${address}/v2/`).catch(() => undefined);
    if (response) return address;
    assert.ok(tries < 200, 'the registry does not respond');
    await setTimeout(100);
  }
}

/** Runs the program with a login at a registry. */
function tollhouse(dir, ...args) {
  const env = {
    PATH: process.env.PATH,
    HOME: dir,
    DOCKER_CONFIG: dir,
    TOLLHOUSE_INTERNAL_URL: sandbox.internal,
    TOLLHOUSE_OPERATOR_TOKEN: sandbox.operator_token,
  };
  const { status, stdout, stderr } = spawnSync(`${TARGET}/debug/tollhouse`, args, { env, encoding: 'utf8' });
  return { status, stdout, stderr };
}

function logIn(dir, address, password) {
  const auth = Buffer.from(`author:${password}`).toString('base64');
  writeFileSync(`${dir}/config.json`, JSON.stringify({ auths: { [address]: { auth } } }));
}

const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'inherit'] });

test('a plugin signed by OpenSSL with its own key is installed', async (t) => {
  const dir = folder(t, 'registry');
  const [component, key, pub] = [`${dir}/sprout.wasm`, `${dir}/author.key`, `${dir}/author.pub`];
  writeFileSync(component, readFileSync(SPROUT));
  openssl('genpkey', '-algorithm', 'ed25519', '-out', key);
  openssl('pkey', '-in', key, '-pubout', '-out', pub);
  const digest = openssl('dgst', '-sha256', '-r', component).toString().split(' ')[0];
  writeFileSync(`${dir}/line`, `tollhouse plugin sha256:${digest}\n`);
  openssl('pkeyutl', '-sign', '-rawin', '-inkey', key, '-in', `${dir}/line`, '-out', `${component}.sig`);

  const publisher = unused('openssl');
  assert.equal(tollhouse(dir, 'publisher', 'trust', publisher, pub).status, 0);
  assert.equal(tollhouse(dir, 'plugin', 'key', key).stdout, readFileSync(pub, 'utf8'), 'a key of OpenSSL is read');
  const installed = tollhouse(dir, 'plugin', 'install', '--grant', component);
  assert.equal(installed.status, 0, installed.stderr);
  const [{ digest: known, publisher: signer }] = await operator('GET', '/plugins/sprout');
  assert.deepEqual([known, signer], [digest, publisher]);
});

test('OpenSSL verifies a signature of a generated key', (t) => {
  const dir = folder(t, 'registry');
  const [component, key, pub] = [`${dir}/sprout.wasm`, `${dir}/author.key`, `${dir}/author.pub`];
  writeFileSync(component, readFileSync(SPROUT));
  writeFileSync(pub, tollhouse(dir, 'plugin', 'key', key).stdout);
  assert.equal(tollhouse(dir, 'plugin', 'sign', component, '--key', key, '--detached').status, 0);
  const digest = openssl('dgst', '-sha256', '-r', component).toString().split(' ')[0];
  writeFileSync(`${dir}/line`, `tollhouse plugin sha256:${digest}\n`);
  const believed = openssl('pkeyutl', '-verify', '-rawin', '-pubin', '-inkey', pub, '-in', `${dir}/line`, '-sigfile', `${component}.sig`);
  assert.match(believed.toString(), /Verified Successfully/);
});

test('a plugin is published to a registry and installed from it', async (t) => {
  const dir = folder(t, 'registry');
  const address = await registry(t, dir);
  const name = `oci://${address}/plugins/sprout:1.0.0`;
  const [component, key] = [`${dir}/sprout.wasm`, `${dir}/author.key`];
  writeFileSync(component, readFileSync(SPROUT));
  const publisher = unused('registry');
  writeFileSync(`${dir}/author.pub`, tollhouse(dir, 'plugin', 'key', key).stdout);
  assert.equal(tollhouse(dir, 'publisher', 'trust', publisher, `${dir}/author.pub`).status, 0);
  assert.equal(tollhouse(dir, 'plugin', 'sign', component, '--key', key).status, 0);

  const refused = tollhouse(dir, 'plugin', 'publish', component, name, '--plain-http');
  assert.equal(refused.status, 1, 'publishing needs a login');
  assert.match(refused.stderr, /docker login/);
  logIn(dir, address, 'wrong');
  assert.equal(tollhouse(dir, 'plugin', 'publish', component, name, '--plain-http').status, 1);
  logIn(dir, address, 'secret');
  const published = tollhouse(dir, 'plugin', 'publish', component, name, '--plain-http');
  assert.equal(published.status, 0, published.stderr);
  const pinned = published.stdout.trim().split(': ')[1];
  assert.match(pinned, new RegExp(`^oci://${address}/plugins/sprout@sha256:[0-9a-f]{64}$`));

  for (const source of [name, pinned]) {
    const installed = tollhouse(dir, 'plugin', 'install', '--grant', source, '--plain-http');
    assert.equal(installed.status, 0, installed.stderr);
    assert.match(installed.stdout, /^sprout 1\.0\.0 is active/);
  }
  const [{ publisher: signer }] = await operator('GET', '/plugins/sprout');
  assert.equal(signer, publisher);

  const missing = tollhouse(dir, 'plugin', 'install', `oci://${address}/plugins/sprout:2.0.0`, '--plain-http');
  assert.equal(missing.status, 1, missing.stderr);
  assert.match(missing.stderr, /sprout:2\.0\.0/);
  const unreachable = tollhouse(dir, 'plugin', 'install', `oci://127.0.0.1:${await freePorts(1)}/a/b:1`, '--plain-http');
  assert.equal(unreachable.status, 3, unreachable.stderr);

  // The manifest has the form that other tools use for components.
  const headers = { authorization: `Basic ${Buffer.from('author:secret').toString('base64')}`, accept: 'application/vnd.oci.image.manifest.v1+json' };
  const manifest = await (await fetch(`http://${address}/v2/plugins/sprout/manifests/1.0.0`, { headers })).json();
  assert.deepEqual(manifest.layers.map((layer) => layer.mediaType), ['application/wasm']);
  assert.equal(manifest.config.mediaType, 'application/vnd.wasm.config.v0+json');
  const config = await (await fetch(`http://${address}/v2/plugins/sprout/blobs/${manifest.config.digest}`, { headers })).json();
  assert.deepEqual([config.architecture, config.os, config.layerDigests], ['wasm', 'wasip2', [manifest.layers[0].digest]]);
  assert.ok(config.component.exports.some((name) => name.startsWith('tollhouse:plugin/checkout@')), 'the exports are listed');
});
