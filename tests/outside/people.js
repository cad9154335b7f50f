// Helpers for tests of the pages for people: enrolment, codes and accessibility.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { operator } from './sandbox.js';

export const PASSWORD = 'correct horse battery staple';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PICTURES = process.env.PICTURES;

/** Saves a screenshot under this name, if PICTURES names a folder. */
export const picture = (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });

/** The code of an authenticator app (RFC 6238) for a secret in base32. */
export function code(secret, at = Date.now()) {
  const bits = [...secret].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const period = Buffer.alloc(8);
  period.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const hash = createHmac('sha1', key).update(period).digest();
  const number = (hash.readUInt32BE(hash[19] & 15) & 0x7fffffff) % 1_000_000;
  return String(number).padStart(6, '0');
}

/** The time of the host, which other tests may have advanced. */
export const now = async () => Date.parse((await operator('POST', '/clock/advance', { seconds: 0 })).now);

/** Sets a password at the address of an invitation, and registers an app. Returns its secret. */
export async function acceptInvitation(page, address) {
  await page.goto(address);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Enter the secret manually').click();
  const secret = await page.locator('code').innerText();
  await picture(page, 'enrolment');
  await page.getByLabel('Authenticator code').fill(code(secret, await now()));
  await page.getByRole('button', { name: 'Continue' }).click();
  return secret;
}

/** Signs in with a code that was not used before. */
export async function signInAgain(page, email, secret) {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await operator('POST', '/clock/advance', { seconds: 30 });
  await page.getByLabel('Authenticator code').fill(code(secret, await now()));
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Checks that a page is accessible in light and dark, and fits a phone. The page must bypass CSP. */
export async function checkAccessible(page, url, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
    }));
    assert.deepEqual(violations.map((v) => `${url} ${colorScheme}: ${v.id} ${v.nodes[0].html}`), []);
    await picture(page, `${name}-${colorScheme}`);
  }
  await page.setViewportSize({ width: 360, height: 740 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${url} is ${width} px wide on a phone`);
  await page.setViewportSize({ width: 800, height: 900 });
}
