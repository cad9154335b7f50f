import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { pages } from '../../reference.mjs';

for (const [path, text] of pages()) {
  test(`${path.split('/').at(-1)} of docs/plugins/reference is current`, () => {
    assert.equal(readFileSync(path, 'utf8'), text, 'run node plugins/sdk/reference.mjs');
  });
}
