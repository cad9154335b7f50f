// Projects of `tollhouse plugin new`, of every kind and in every language, build, pass their own
// tests and are admitted, and their examples succeed in the component.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { sandbox } from './sandbox.js';

const TARGET = fileURLToPath(new URL('../../target', import.meta.url));
const FOLDER = `${TARGET}/outside/templates`;
const TSC = fileURLToPath(new URL('node_modules/.bin/tsc', import.meta.url));
const TYPES = '--noEmit --allowJs --checkJs --strict --noImplicitAny false --module nodenext --target es2024';

const MYPY = `${process.env.PYTHON ?? 'python3'} -m mypy`;

const ENVIRONMENT = {
  ...process.env,
  PATH: `${TARGET}/debug:${process.env.PATH}`,
  CARGO_TARGET_DIR: `${TARGET}/outside/cargo`,
  CARGO_TERM_QUIET: 'true',
  MYPYPATH: 'build/bindings:vendor/sdk/python',
  // Node's test runner does not run nested tests otherwise.
  NODE_TEST_CONTEXT: undefined,
  TOLLHOUSE_INTERNAL_URL: sandbox.internal,
  TOLLHOUSE_OPERATOR_TOKEN: sandbox.operator_token,
};

/** Runs a script. Returns its output; if it fails, output and errors are shown. */
function type(cwd, script) {
  try {
    return execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd, env: ENVIRONMENT, encoding: 'utf8', stdio: 'pipe' });
  } catch ({ stdout, stderr }) {
    assert.fail(`${script}\n${stdout}${stderr}`);
  }
}

/** The commands of a project's README.md, which end with `plugin check`, and an installation. */
function commands(folder) {
  const lines = readFileSync(`${folder}/README.md`, 'utf8').split('\n');
  const script = lines.filter((line) => line.startsWith('    ')).join('\n');
  const [check] = script.match(/tollhouse plugin check \S+$/) ?? assert.fail(script);
  const install = check.replace('plugin check', 'plugin install --grant');
  return `${script}\n${install}`.replaceAll('target/', '$CARGO_TARGET_DIR/');
}

for (const lang of ['rust', 'js', 'python']) {
  describe(`templates in ${lang}`, () => {
    for (const kind of ['provider', 'push', 'country', 'sms']) {
      test(kind, () => {
        const name = `sample_${lang}_${kind}`;
        const folder = `${FOLDER}/${name}`;
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(FOLDER, { recursive: true });
        type(FOLDER, `tollhouse plugin new ${name} --kind ${kind} --lang ${lang}`);

        const script = commands(folder);
        assert.match(type(folder, script), new RegExp(`^${name} 0\\.1\\.0 is active`, 'm'));
        if (lang === 'rust') type(folder, 'cargo fmt --check && cargo clippy --all-targets -- -D warnings');
        if (lang === 'js') type(folder, `${TSC} ${TYPES} plugin.js`);
        if (lang === 'python') type(folder, `${MYPY} plugin.py test_plugin.py`);

        const file = script.match(/\S+$/)[0];
        const { functions } = JSON.parse(type(folder, `tollhouse plugin bench --json --iterations 5 --cold-starts 1 ${file}`));
        const results = functions.map(({ function: called, answer }) => `${called} ${answer}`);
        const expected = {
          provider: ['checkout.start ok', 'notifications.parse ok', 'verification.verify ok'],
          push: ['sessions.receive ok', 'sessions.start ok', 'sessions.verify ok'],
          country: ['identity-lookup.lookup ok'],
          sms: ['sms.send ok'],
        };
        assert.deepEqual(results.sort(), expected[kind]);
      });
    }
  });
}
