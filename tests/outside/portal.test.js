// People of a company use the portal, in Debian's Chromium.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { acceptInvitation, checkAccessible, picture, signInAgain } from './people.js';
import { Company, call, complete, operator, sandbox, unused, until } from './sandbox.js';

describe('the portal of a company', () => {
  const open = browser();
  const company = `${sandbox.api}/portal/companies/${sandbox.company_id}`;

  /** The address in the e-mail that invites a person. */
  async function invitation(email) {
    return until('the invitation', async () => {
      const { body } = await call('GET', `${sandbox.sandbox}/mailbox?to=${encodeURIComponent(email)}`);
      return body.map(({ text }) => text.match(/http:\S+\/portal\/welcome\/\S+/)?.[0]).find(Boolean);
    });
  }

  /** Invites a person with this role, who accepts in the browser. */
  async function enter(page, role) {
    const email = `${unused('member')}@acme.example`;
    await operator('POST', `/companies/${sandbox.company_id}/members`, { email, role });
    const secret = await acceptInvitation(page, await invitation(email));
    await page.waitForURL(`${company}**`);
    return { email, secret };
  }

  test('an owner looks at payments, invites a colleague and signs in again', async (t) => {
    const page = await open(t);
    const { email, secret } = await enter(page, 'company-owner');
    const menu = page.getByRole('navigation', { name: 'Main' });
    await menu.getByRole('link', { name: 'Payments', exact: true }).click();
    await page.getByRole('heading', { name: 'Payments' }).waitFor();
    await page.getByRole('link', { name: 'charged-twice-1' }).first().waitFor();
    await picture(page, 'portal-payments');

    await menu.getByRole('link', { name: 'Team' }).click();
    await page.getByText('Invite a person…').click();
    const colleague = `${unused('ben')}@acme.example`;
    await page.getByLabel('E-mail address').fill(colleague);
    await page.getByLabel('Role').selectOption('company-finance');
    await page.getByRole('button', { name: 'Send the invitation' }).click();
    await page.getByRole('row', { name: new RegExp(`${colleague}.*Finance.*invited`) }).waitFor();
    await picture(page, 'portal-team');

    const other = await open(t);
    await acceptInvitation(other, await invitation(colleague));
    await other.waitForURL(`${company}**`);
    const items = await other.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
    assert.ok(items.includes('Statement') && !items.includes('Customers') && !items.includes('Team'), items.join());

    await page.locator('.person summary').click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.waitForURL('**/portal/sign-in');
    await signInAgain(page, email, secret);
    await page.waitForURL(`${company}**`);
  });

  test('a developer creates a limited key and receives a test event', async (t) => {
    const page = await open(t);
    await enter(page, 'company-developer');
    await page.goto(`${company}/keys`);
    await page.getByText('Create an API key…').click();
    await page.getByLabel('Label').fill('reports');
    await page.getByLabel('payments.read').check();
    await picture(page, 'portal-new-key');
    await page.getByRole('button', { name: 'Create the key' }).click();
    const key = await page.locator('code').innerText();
    await picture(page, 'portal-key');
    const status = async (path) => (await call('GET', `${sandbox.api}/api/v1${path}`, { token: key })).status;
    assert.deepEqual([await status('/payment/list'), await status('/user/list')], [200, 403]);

    await page.goto(`${company}/events`);
    await page.getByText('Trigger a test event…').click();
    await page.getByLabel('Type').selectOption('recollection.success');
    await page.getByRole('button', { name: 'Trigger the event' }).click();
    const row = page.getByRole('row', { name: /recollection\.success.*test-/ }).first();
    await row.waitFor();
    await until('the delivery', async () => {
      await page.reload();
      return row.getByText('delivered').isVisible();
    });
    await picture(page, 'portal-events');
  });

  test('a disputed payment is contested with evidence', async (t) => {
    const [page, reference] = [await open(t), unused('disputed')];
    const company = new Company({ id: sandbox.company_id, api_key: sandbox.api_key });
    const begun = await company.initialize({ reference });
    await complete(begun.checkout.url, 'success');
    await company.settled(reference, 'success');
    const opened = await call('POST', `${sandbox.sandbox}/paystack/chargeback`, { body: { reference, amount_minor: 100_000 } });
    assert.equal(opened.status, 204, JSON.stringify(opened.body));
    await enter(page, 'company-owner');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Disputes' }).click();
    const link = page.getByRole('link', { name: reference });
    await until('the dispute', async () => {
      await page.reload();
      return link.isVisible();
    });
    await link.click();
    await page.getByText('Contest the dispute…').click();
    await page.getByLabel('Message to the bank').first().fill('The order was delivered');
    await page.getByLabel('Name of the customer').fill('Ada Obi');
    await page.getByLabel('E-mail address of the customer').fill('ada@example.com');
    await page.getByLabel('Phone number of the customer').fill('+2348012345678');
    await page.getByLabel('Goods or service').fill('Order 4711');
    await picture(page, 'portal-dispute');
    await page.getByRole('button', { name: 'Send the evidence' }).click();
    await page.locator('.amount').getByText('answered').waitFor();
    await picture(page, 'portal-dispute-answered');
  });

  test('every page is accessible in light and dark, and fits a phone', async (t) => {
    const page = await open(t, { bypassCSP: true });
    await enter(page, 'company-owner');
    const paths = await page.getByRole('navigation', { name: 'Main' }).getByRole('link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    assert.ok(paths.length > 10, paths.join());
    for (const path of paths) {
      const name = `portal-${path.split('/')[4] ?? 'overview'}`;
      await checkAccessible(page, sandbox.api + path, name);
    }
    await page.goto(`${sandbox.api}/portal/sign-in`);
    await picture(page, 'portal-sign-in');
  });
});
