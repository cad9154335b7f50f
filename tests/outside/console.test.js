// A person uses the operator console, in Debian's Chromium.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { acceptInvitation, checkAccessible, picture, signInAgain } from './people.js';
import { Company, operator, sandbox, unused } from './sandbox.js';

const ROLES = ['support-act', 'finance-act', 'platform', 'company-admin', 'security'];

describe('the operator console', () => {
  const open = browser();

  /** Creates a person, who accepts the invitation in the browser. */
  async function signIn(page) {
    const name = unused('ada');
    const { id } = await operator('POST', '/operators', { name, email: `${name}@lender.example`, roles: ROLES });
    const { invitation } = await operator('POST', `/operators/${id}/invite`, {});
    const secret = await acceptInvitation(page, `${sandbox.internal}/console/welcome/${invitation}`);
    await page.waitForURL(`${sandbox.internal}/console`);
    return { name, secret };
  }

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
    await picture(page, 'console-payment');

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
    await picture(page, 'console-charged-twice');
  });

  test('"I paid but it shows pending" is answered in three clicks', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill('paid-but-pending');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Verify with the provider' }).click();
    await page.locator('.summary').getByText('success').waitFor();
    await picture(page, 'console-paid-but-pending');
  });

  test('"No SMS came" is answered in three clicks', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill('+2348031000009');
    await page.keyboard.press('Enter');
    const messages = page.getByRole('region', { name: 'Text messages' });
    await messages.getByRole('row', { name: /failed.*do-not-disturb/ }).waitFor();
    await picture(page, 'console-no-sms');
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
    const tabs = ['', '/users', `/users/${user.id}`, '/payments', '/recollections', '/messages', '/events', '/endpoints', '/keys', '/members', '/wallet',
      '/statement', '/totals', '/audit'];
    const pages = tabs.map((tab) => company + tab);
    for (const path of ['/console', '/console/today', '/console/totals', '/console/companies', '/console/refunds', '/console/exceptions', '/console/jobs',
      '/console/plugins', '/console/operators', '/console/approvals', '/console/audit', ...pages]) {
      const name = path.replaceAll('/', '-').replace(sandbox.company_id, 'id').replace(user.id, 'user').slice(1);
      await checkAccessible(page, sandbox.internal + path, name);
    }
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'q');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/console/sign-in');
    await picture(page, 'console-sign-in');
    await signInAgain(page, `${name}@lender.example`, secret);
    await page.waitForURL(`${sandbox.internal}/console`);
  });
});
