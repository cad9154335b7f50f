import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const QUOTATION = /^<!-- from (\S+) -->\n```\w+\n(.*?)^```$/gms;
const MAX_LINES = 120;

const read = (path) => readFileSync(`${ROOT}${path}`, 'utf8');
const lineCount = (text) => text.trimEnd().split('\n').length;
const unindented = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean);

/** Returns the position after the lines, at or after `from`; -1 if the source does not have them. */
function endOf(lines, source, from) {
  const fits = (at) => lines.every((line, n) => source[at + n] === line);
  for (let at = from; at <= source.length - lines.length; at += 1) if (fits(at)) return at + lines.length;
  return -1;
}

for (const file of ['redirect.md', 'push.md', 'country.md', 'sms.md']) {
  test(`docs/plugins/${file} quotes its sources`, () => {
    const text = read(`docs/plugins/${file}`);
    const quotations = [...text.matchAll(QUOTATION)];
    assert.ok(quotations.length >= 3, 'at least three quotations');
    assert.ok(lineCount(text) <= MAX_LINES, `at most ${MAX_LINES} lines`);
    for (const [, path, block] of quotations) {
      const source = unindented(read(path));
      let at = 0;
      for (const part of block.split(/^ *\/\/ …$/m)) {
        at = endOf(unindented(part), source, at);
        assert.ok(at > 0, `${path} does not have:\n${part}`);
      }
    }
  });
}

test('docs/PLUGINS.md has fewer than 400 lines', () => {
  assert.ok(lineCount(read('docs/PLUGINS.md')) < 400);
});
