// Debian's Chromium, for the tests of one `describe`.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { chromium } from 'playwright-core';

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Returns a function that opens a tab for the test `t`. The test fails if a page contacts another
 * machine or logs an error.
 */
export function browser() {
  let launched;
  before(async () => {
    launched = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
  });
  after(() => launched?.close());

  return async (t, options = {}) => {
    const context = await launched.newContext({ viewport: { width: 800, height: 900 }, ...options });
    const page = await context.newPage();
    const wrong = [];
    page.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol !== 'data:' && hostname !== '127.0.0.1') wrong.push(request.url());
    });
    page.on('pageerror', (error) => wrong.push(error.message));
    page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
    t.after(async () => {
      await context.close();
      assert.deepEqual(wrong, []);
    });
    return page;
  };
}
