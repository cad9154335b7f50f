import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { declarations } from '../bin/declarations.js';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

test('contract.d.ts matches the WIT', () => {
  assert.equal(readFileSync(at('../contract.d.ts'), 'utf8'), declarations(at('../../../../wit/v1')));
});
