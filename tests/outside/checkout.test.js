// A customer pays on the hosted checkout page, in Debian's Chromium.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { browser } from './browser.js';
import { Company, receiver, sandbox, until, unused } from './sandbox.js';

const PICTURES = process.env.PICTURES;

describe('the hosted checkout page', () => {
  const open = browser();

  const picture = (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  const press = (page, name) => page.getByRole('button', { name }).click();

  test('a payment with the success card', async (t) => {
    const [company, shop, page, reference] = [await Company.create(), await receiver(t), await open(t), unused('paid')];
    const begun = await company.initialize({ reference, checkout: { success_url: `${shop.url}/thanks?order=7` } });
    assert.equal(begun.status, 'pending');

    await page.goto(begun.checkout.url);
    await picture(page, 'checkout');
    assert.equal(await page.getByRole('heading').innerText(), 'NGN 2,500.50');
    for (const text of ['ada@example.com', reference]) assert.ok(await page.getByText(text, { exact: true }).isVisible(), text);
    await page.getByRole('radio', { name: '4084084084084081' }).check();
    await press(page, 'Pay');

    await page.waitForURL(`${shop.url}/**`);
    const back = new URL(page.url());
    assert.equal(back.pathname, '/thanks');
    assert.deepEqual(Object.fromEntries(back.searchParams), { order: '7', trxref: reference, reference });

    const paid = await company.settled(reference, 'success');
    assert.deepEqual([paid.amount, paid.fees, paid.currency, paid.payment_channel], [2500.5, 137.51, 'NGN', 'card']);

    await page.goto(begun.checkout.url);
    assert.ok(await page.getByText('This checkout is completed.').isVisible());
    assert.equal(await page.getByRole('button').count(), 0);
    await picture(page, 'completed');
  });

  test('a declined card, then a valid one on the same page', async (t) => {
    const [company, shop, page, reference] = [await Company.create(), await receiver(t), await open(t), unused('declined')];
    const begun = await company.initialize({ reference, checkout: { success_url: shop.url } });

    await page.goto(begun.checkout.url);
    await page.getByRole('radio', { name: 'is declined' }).check();
    await press(page, 'Pay');
    await page.waitForURL(`${shop.url}/**`);

    // The provider sends no webhook for a failure: Tollhouse verifies, here on request.
    const verified = await company.call('POST', `/payment/verify/${reference}`);
    assert.deepEqual([verified.status, verified.body.data.status], [200, 'failed']);
    assert.equal(verified.body.data.message, 'Declined');

    await page.goto(begun.checkout.url);
    await page.getByRole('radio', { name: '4084084084084081' }).check();
    await press(page, 'Pay');
    await page.waitForURL(`${shop.url}/**`);
    await company.settled(reference, 'success');
  });

  test('a customer who leaves and returns', async (t) => {
    const [company, shop, page, reference] = [await Company.create(), await receiver(t), await open(t), unused('left')];
    const checkout = { success_url: `${shop.url}/thanks`, cancel_url: `${shop.url}/basket` };
    const begun = await company.initialize({ reference, checkout });

    await page.goto(begun.checkout.url);
    await press(page, 'Leave');
    await page.waitForURL(checkout.cancel_url);
    const verified = await company.call('POST', `/payment/verify/${reference}`);
    assert.deepEqual([verified.status, verified.body.message], [400, 'payment still pending']);
    assert.equal((await company.payment(reference)).status, 'pending');

    await page.goBack();
    await press(page, 'Pay');
    await page.waitForURL(`${checkout.success_url}**`);
    await company.settled(reference, 'success');
  });

  test('a browser without JavaScript', async (t) => {
    const [company, shop, reference] = [await Company.create(), await receiver(t), unused('plain')];
    const page = await open(t, { javaScriptEnabled: false });
    const begun = await company.initialize({ reference, checkout: { success_url: shop.url } });

    await page.goto(begun.checkout.url);
    await press(page, 'Pay');
    await page.waitForURL(`${shop.url}/**`);
    await company.settled(reference, 'success');
  });

  test("the sandbox's front page leads to a checkout and shows the event of its payment", async (t) => {
    const [company, page, reference] = [new Company(sandbox), await open(t), unused('front')];
    await company.initialize({ reference, checkout: { success_url: sandbox.sandbox } });

    await page.goto(sandbox.sandbox);
    assert.equal(await page.title(), 'Tollhouse sandbox');
    assert.ok(await page.getByText(sandbox.api_key).first().isVisible());
    await page.getByRole('link', { name: reference }).click();
    await press(page, 'Pay');

    await page.waitForURL(`${sandbox.sandbox}/?**`);
    const event = page.locator('details', { hasText: reference });
    await until('the event is shown', async () => {
      await page.reload();
      return (await event.count()) === 1;
    });
    await event.locator('summary').click();
    assert.match(await event.innerText(), /payment\.success · signature valid/);
    assert.equal(JSON.parse(await event.locator('pre').innerText()).data.reference, reference);
    assert.equal(await page.getByRole('link', { name: reference }).count(), 0);
    await picture(page, 'front');
  });
});
