// A person uses the operator console, in Debian's Chromium.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { acceptInvitation, checkAccessible, picture, signInAgain } from './people.js';
import { Company, call, complete, operator, sandbox, until, unused } from './sandbox.js';

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

  /** Opens the page of a new successful payment at the form of its refund. */
  async function openRefund(t, prefix) {
    const [company, page, reference] = [await Company.create(), await open(t), unused(prefix)];
    const begun = await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    const paid = await fetch(`${begun.checkout.url}/complete`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"outcome":"success"}',
    });
    assert.equal(paid.status, 200);
    await company.settled(reference, 'success');
    await signIn(page);
    await page.goto(`${sandbox.internal}/console?q=${reference}`);
    await page.getByText('Refund…').click();
    return page;
  }

  test('a part of a payment is refunded', async (t) => {
    const page = await openRefund(t, 'part');
    await page.getByLabel('Amount').fill('1000');
    await page.getByRole('button', { name: 'Refund the payment' }).click();
    await page.getByText('Refund requested').waitFor();
    assert.ok(await page.locator('.summary').getByText('success').isVisible());
    assert.match(await page.locator('.facts').innerText(), /Refunded\s+1\s000\.00\sNGN/);
  });

  test('an exception is taken over, noted and resolved', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t, { bypassCSP: true }), unused('mismatch')];
    const begun = await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    await call('PUT', `${sandbox.sandbox}/paystack/tamper`, { body: { reference, amount_minor: 100, currency: 'NGN' } });
    await complete(begun.checkout.url, 'success');
    const found = await until('the exception', async () => {
      const { exceptions } = await operator('GET', '/exceptions?state=open&limit=1000');
      return exceptions.find((exception) => exception.service_ref === reference);
    });
    await signIn(page);
    const url = `${sandbox.internal}/console/companies/${found.company}/exceptions/${found.id}`;
    await page.goto(url);
    await page.getByRole('button', { name: 'Assign to me' }).click();
    await page.getByRole('button', { name: 'Unassign' }).waitFor();
    await page.getByLabel('Note').fill('Asked the bank.\nIt answers tomorrow.');
    await page.getByRole('button', { name: 'Add the note' }).click();
    await page.getByText('It answers tomorrow.').first().waitFor();
    await picture(page, 'console-exception');
    await checkAccessible(page, url, 'console-exception');
    await page.getByLabel('Reason').fill('the bank corrected it');
    await page.getByRole('button', { name: 'Resolve the exception' }).click();
    await page.waitForURL(`${sandbox.internal}/console/exceptions`);
    await page.getByText('the bank corrected it').waitFor();
  });

  test('a refund is confirmed, and the timeline shows it', async (t) => {
    const page = await openRefund(t, 'refund');
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

  test('an amount finds payments, and the timeline shows webhooks and operators', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t), unused('amount')];
    const amount = 1_000_000 + Math.floor(Math.random() * 1_000_000) + 0.25;
    const begun = await company.initialize({ reference, amount, checkout: { success_url: 'https://lender.example/' } });
    const paid = await fetch(`${begun.checkout.url}/complete`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"outcome":"success"}',
    });
    assert.equal(paid.status, 200);
    await company.settled(reference, 'success');
    const { name } = await signIn(page);
    await page.getByRole('searchbox', { name: 'Search' }).fill(`${amount} NGN`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: reference }).waitFor();
    await page.getByRole('button', { name: 'Verify with the provider' }).click();
    await page.getByText(`${name}: payment.verify`).waitFor();
    assert.ok(await page.getByText('Provider webhook: charge.success').isVisible());
    await picture(page, 'console-timeline');
  });

  test('calls of a plugin are looked into, down to a recorded one', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('link', { name: 'Plugins' }).click();
    await page.getByRole('link', { name: 'provider_a' }).first().click();
    assert.ok(await page.getByRole('heading', { name: 'Calls on this host since its start' }).isVisible());
    assert.ok(await page.getByRole('region', { name: 'Calls', exact: true }).getByRole('row', { name: /1\.0\.0 active [1-9]/ }).isVisible());
    assert.ok(await page.getByRole('region', { name: 'Hosts' }).getByText('live, this host').isVisible());
    await picture(page, 'console-plugin');
    await page.getByRole('link', { name: 'All recorded calls' }).click();
    await page.getByRole('heading', { name: 'Recorded calls of provider_a' }).waitFor();
    await page.getByRole('link', { name: 'checkout.start' }).first().click();
    assert.ok(await page.getByText('tollhouse plugin replay provider_a.wasm').isVisible());
    assert.ok(await page.getByText('Status 200').first().isVisible());
    await picture(page, 'console-recording');
  });

  test('a day with a difference is reconciled and closed', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t, { bypassCSP: true }), unused('listed')];
    const begun = await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    await complete(begun.checkout.url, 'success');
    await company.settled(reference, 'success');
    await call('PUT', `${sandbox.sandbox}/paystack/listing`, { body: { reference, fees_minor: 1 } });
    await signIn(page);
    await page.getByRole('link', { name: 'Reconciliation' }).click();
    await page.getByRole('link', { name: 'provider_a' }).first().click();
    await page.getByRole('button', { name: 'Reconcile now' }).click();
    const found = await until('the exception', async () => {
      const { exceptions } = await operator('GET', '/exceptions?state=open&limit=1000');
      return exceptions.find((exception) => exception.service_ref === reference);
    });
    assert.equal(found.kind, 'fee_differs');
    const account = page.url().split('/').at(-1);
    const day = `${sandbox.internal}/console/reconciliation/${account}/${found.day.slice(0, 10)}`;
    await page.goto(day);
    assert.ok(await page.getByRole('cell', { name: reference }).isVisible());
    await checkAccessible(page, day, 'console-account-day');
    assert.ok(await page.getByText('Close the day…').isVisible());
    await page.goto(`${sandbox.internal}/console/companies/${found.company}/exceptions/${found.id}`);
    await page.getByLabel('What happens to the money').selectOption('absorb');
    await page.getByLabel('Reason').fill('Paystack charged less');
    await page.getByRole('button', { name: 'Resolve the exception' }).click();
    await page.waitForURL(`${sandbox.internal}/console/exceptions`);
    const path = `/companies/${found.company}/exceptions/${found.id}`;
    assert.equal((await operator('GET', path)).state, 'resolved');
  });

  test('filters are saved under a name, found above the list, and deleted', async (t) => {
    const page = await open(t, { bypassCSP: true });
    await signIn(page);
    const list = `${sandbox.internal}/console/companies/${sandbox.company_id}/payments`;
    await page.goto(list);
    await page.getByLabel('State').selectOption('failed');
    await page.waitForURL(/status=failed/);
    await page.getByText('Save this view…').click();
    await page.getByLabel('Name').fill('Failed payments');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const views = page.getByRole('navigation', { name: 'Saved views' });
    await views.getByRole('link', { name: 'Failed payments' }).waitFor();
    await checkAccessible(page, `${list}?status=failed`, 'console-saved-view');
    await page.goto(list);
    await views.getByRole('link', { name: 'Failed payments' }).click();
    assert.equal(await page.getByLabel('State').inputValue(), 'failed');
    await views.getByRole('button', { name: 'Delete the view Failed payments' }).click();
    await views.waitFor({ state: 'detached' });
  });

  test('a list is filtered, and a pending payment becomes paid, without loading a page', async (t) => {
    const [company, page, reference] = [await Company.create(), await open(t), unused('live')];
    const begun = await company.initialize({ reference, checkout: { success_url: 'https://lender.example/' } });
    await signIn(page);
    const loaded = () => page.evaluate(() => globalThis.loadedBefore === true);
    const list = `${sandbox.internal}/console/companies/${company.id}/payments`;
    await page.goto(list);
    await page.evaluate(() => { globalThis.loadedBefore = true; });
    await page.getByLabel('State').focus();
    await page.getByLabel('State').selectOption('failed');
    await page.getByText('There are no such payments.').waitFor();
    assert.ok(page.url().includes('status=failed') && await loaded());
    assert.equal(await page.evaluate(() => document.activeElement.name), 'status', 'the focus stays');
    await page.getByLabel('State').selectOption('pending');
    await page.getByRole('link', { name: reference }).waitFor();
    assert.ok(page.url().endsWith('status=pending&user_id=&provider=&created_at=') && await loaded());
    await page.goBack();
    await page.getByText('There are no such payments.').waitFor();

    await page.goto(`${sandbox.internal}/console?q=${reference}`);
    await page.evaluate(() => { globalThis.loadedBefore = true; });
    await complete(begun.checkout.url, 'success');
    await company.settled(reference, 'success');
    await page.locator('.summary').getByText('success').waitFor();
    assert.ok(await loaded());
    const kept = await page.evaluate(() => Object.keys({ ...localStorage, ...sessionStorage }));
    assert.ok(!kept.includes('htmx-history-cache'), 'pages are not stored in the browser');
  });

  test('values of former master keys are resealed by a button', async (t) => {
    const page = await open(t);
    await signIn(page);
    await page.getByRole('link', { name: 'Master key' }).click();
    await page.getByRole('button', { name: 'Reseal values of former keys' }).click();
    await page.getByRole('status').getByText('All values have been read').waitFor();
    await picture(page, 'console-master-key-rotated');
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
    const { docs: [recorded] } = await operator('GET', '/plugins/provider_a/recordings?limit=1');
    const tabs = ['', '/users', `/users/${user.id}`, '/payments', '/routing', '/reconciliation', '/recollections', '/collection-policy', '/disputes', '/messages', '/events', '/endpoints', '/keys', '/members', '/wallet',
      '/statement', '/totals', '/audit'];
    const pages = tabs.map((tab) => company + tab);
    for (const path of ['/console', '/console/today', '/console/totals', '/console/companies', '/console/refunds', '/console/disputes', '/console/exceptions', '/console/reconciliation', '/console/jobs',
      '/console/plugins', '/console/plugins/provider_a', '/console/plugins/provider_a/recordings',
      `/console/plugins/provider_a/recordings/${recorded.id}`, '/console/hosts', '/console/master-key', '/console/operators', '/console/approvals', '/console/audit', ...pages]) {
      const name = path.replaceAll('/', '-').replace(sandbox.company_id, 'id').replace(user.id, 'user').replace(recorded.id, 'id').slice(1);
      await checkAccessible(page, sandbox.internal + path, name);
    }
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'q');

    await page.locator('.person summary').click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL('**/console/sign-in');
    await picture(page, 'console-sign-in');
    await signInAgain(page, `${name}@lender.example`, secret);
    await page.waitForURL(`${sandbox.internal}/console`);
  });
});
