// A developer tries a request in the viewer of the OpenAPI documents.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { sandbox } from './sandbox.js';

const PICTURES = process.env.PICTURES;

describe('the viewer at /docs', () => {
  const open = browser();

  for (const [name, url, key, path] of [
    ['companies', sandbox.api, sandbox.api_key, '/api/v1/payment/list'],
    ['operators', sandbox.internal, sandbox.operator_token, '/internal/v1/companies'],
  ]) {
    test(`${name} try a request with their key`, async (t) => {
      const page = await open(t, { viewport: { width: 1200, height: 1600 } });
      await page.goto(`${url}/docs`);
      await page.getByRole('button', { name: 'Authorize', exact: true }).click();
      await page.locator('.auth-container input').fill(key);
      await page.locator('.auth-container button[type=submit]').click();
      await page.locator('.auth-container').getByRole('button', { name: 'Close' }).click();

      const shown = page.locator('.opblock-get', { has: page.locator(`[data-path="${path}"]`) });
      await shown.locator('.opblock-summary-control').click();
      await shown.getByRole('button', { name: 'Try it out' }).click();
      const [executed] = await Promise.all([
        page.waitForResponse((response) => new URL(response.url()).pathname === path),
        shown.getByRole('button', { name: 'Execute' }).click(),
      ]);
      assert.equal(executed.status(), 200);
      assert.equal((await executed.json()).error, false);
      await shown.locator('.live-responses-table').waitFor();
      if (PICTURES) await page.screenshot({ path: `${PICTURES}/docs-${name}.png` });
    });
  }
});
