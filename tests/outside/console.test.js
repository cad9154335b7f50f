// A person uses the operator console, in Debian's Chromium.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { Company, sandbox, unused } from './sandbox.js';

const PICTURES = process.env.PICTURES;
const PASSWORD = 'correct horse battery staple';
const ROLES = ['support-act', 'finance-act', 'platform', 'company-admin', 'security'];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function operator(method, path, body) {
  const response = await fetch(`${sandbox.internal}/internal/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${sandbox.operator_token}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.data;
}

/** The code of an authenticator app (RFC 6238) for a secret in base32. */
function code(secret, at = Date.now()) {
  const bits = [...secret].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const period = Buffer.alloc(8);
  period.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const hash = createHmac('sha1', key).update(period).digest();
  const number = (hash.readUInt32BE(hash[19] & 15) & 0x7fffffff) % 1_000_000;
  return String(number).padStart(6, '0');
}

describe('the operator console', () => {
  const open = browser();
  const picture = (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/console-${name}.png`, fullPage: true });

  /** Creates a person, who accepts the invitation in the browser. */
  async function signIn(page) {
    const name = unused('ada');
    const { id } = await operator('POST', '/operators', { name, email: `${name}@lender.example`, roles: ROLES });
    const { invitation } = await operator('POST', `/operators/${id}/invite`, {});
    await page.goto(`${sandbox.internal}/console/welcome/${invitation}`);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Enter the secret manually').click();
    const secret = await page.locator('code').innerText();
    await picture(page, 'enrolment');
    await page.getByLabel('Authenticator code').fill(code(secret, await now()));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${sandbox.internal}/console`);
    return { name, secret };
  }

  /** The time of the host, which other tests may have advanced. */
  const now = async () => Date.parse((await operator('POST', '/clock/advance', { seconds: 0 })).now);

  test('a pending payment is found by its reference and verified', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t), unused('pending')];
    await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    const { name } = await signIn(page);

    await page.getByRole('searchbox', { name: 'Search' }).fill(reference);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: reference }).waitFor();
    assert.ok(await page.getByText('Charge open').isVisible());
    assert.ok(await page.getByText('Next verification with the provider').isVisible());
    await page.getByRole('button', { name: 'Verify with the provider' }).click();
    await page.getByRole('heading', { name: reference }).waitFor();
    await picture(page, 'payment');

    await page.locator('.tabs').getByRole('link', { name: 'Audit log' }).click();
    assert.ok(await page.getByText('payment.verify').first().isVisible());
    assert.ok(await page.getByRole('cell', { name, exact: true }).first().isVisible());
  });

  test('a refund is confirmed, and the timeline shows it', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t), unused('refund')];
    const begun = await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    const paid = await fetch(`${begun.checkout.url}/complete`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"outcome":"success"}',
    });
    assert.equal(paid.status, 200);
    await company.settled(reference, 'success');
    await signIn(page);
    await page.goto(`${sandbox.internal}/console?q=${reference}`);
    await page.getByText('Refund…').click();
    await page.getByRole('button', { name: 'Refund the payment' }).click();
    await page.getByText('Refund requested').waitFor();
    assert.ok(await page.locator('.summary').getByText('refunded').isVisible());
  });

  test('"I was charged twice" is answered in three clicks', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill('chidi.eze@example.com');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'chidi', exact: true }).click();
    const payments = page.getByRole('region', { name: 'Payments' });
    assert.ok(await payments.getByRole('row', { name: /charged-twice-1.*success/ }).isVisible());
    await payments.getByRole('link', { name: 'charged-twice-2' }).click();
    await page.getByText('Refund…').click();
    assert.ok(await page.getByRole('button', { name: 'Refund the payment' }).isVisible());
    await picture(page, 'charged-twice');
  });

  test('"I paid but it shows pending" is answered in three clicks', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill('paid-but-pending');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Verify with the provider' }).click();
    await page.locator('.summary').getByText('success').waitFor();
    await picture(page, 'paid-but-pending');
  });

  test('"No SMS came" is answered in three clicks', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill('+2348031000009');
    await page.keyboard.press('Enter');
    const messages = page.getByRole('region', { name: 'Text messages' });
    await messages.getByRole('row', { name: /failed.*do-not-disturb/ }).waitFor();
    await picture(page, 'no-sms');
  });

  test('a month of a company is downloaded as CSV', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.goto(`${sandbox.internal}/console/companies/${sandbox.company_id}/statement`);
    const [file] = await Promise.all([
      page.waitForEvent('download'), page.getByRole('link', { name: 'Download as CSV' }).click(),
    ]);
    assert.match(readFileSync(await file.path(), 'utf8'), /^Kind,Transactions,Amount,Amount currency\r?\n/);
  });

  test('every page is accessible in light and dark, by keyboard, and fits a phone', async (t) => {
    const page = await open(t, { bypassCSP: true });
    const { name, secret } = await signIn(page);
    const company = `/console/companies/${sandbox.company_id}`;
    const { docs: [user] } = await operator('GET', `/companies/${sandbox.company_id}/users?user_id=amaka`);
    const tabs = ['', '/users', `/users/${user.id}`, '/payments', '/recollections', '/messages', '/events', '/wallet',
      '/statement', '/totals', '/audit'];
    const pages = tabs.map((tab) => company + tab);
    for (const path of ['/console', '/console/today', '/console/totals', '/console/companies', '/console/refunds', '/console/exceptions', '/console/jobs',
      '/console/plugins', '/console/operators', '/console/approvals', '/console/audit', ...pages]) {
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await page.goto(sandbox.internal + path);
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
          runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
        }));
        assert.deepEqual(violations.map((v) => `${path} ${colorScheme}: ${v.id} ${v.nodes[0].html}`), []);
        await picture(page, `${path.replaceAll('/', '-').replace(sandbox.company_id, 'id').replace(user.id, 'user').slice(9)}-${colorScheme}`);
      }
      await page.setViewportSize({ width: 360, height: 740 });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 360, `${path} is ${width} px wide on a phone`);
      await page.setViewportSize({ width: 800, height: 900 });
    }
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'q');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/console/sign-in');
    await picture(page, 'sign-in');
    await page.getByLabel('E-mail address').fill(`${name}@lender.example`);
    await page.getByLabel('Password').fill(PASSWORD);
    await operator('POST', '/clock/advance', { seconds: 30 });
    await page.getByLabel('Authenticator code').fill(code(secret, await now()));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${sandbox.internal}/console`);
  });
});
