// Flutterwave's own client works with the simulator of Flutterwave.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';

import Flutterwave from 'flutterwave-node-v3';

import { call, complete, operator, receiver, sandbox, until, unused } from './sandbox.js';

// With a slash at the end: the client appends `v3/payments`, and to some URLs `/v3/transactions`.
const baseUrl = `${sandbox.sandbox}/flutterwave/`;
const email = 'ada@example.com';

/** A new account at the simulator. */
function account() {
  const secretKey = `FLWSECK_TEST-${unused('outside')}-X`;
  return { secretKey, flw: new Flutterwave('FLWPUBK_TEST-outside-X', secretKey, baseUrl) };
}

async function ok(call) {
  const { status, data, message } = await call;
  assert.equal(status, 'success', message);
  return data;
}

/** The link to the checkout page of a payment of NGN 5,000; the client has no call for it. */
async function link(secretKey, tx_ref) {
  const body = { tx_ref, amount: 5_000, redirect_url: sandbox.sandbox, customer: { email, name: 'Ada Obi' } };
  return (await ok(call('POST', `${baseUrl}v3/payments`, { token: secretKey, body }).then(({ body }) => body))).link;
}

/** Makes a payment and verifies it with the client. */
async function pay({ secretKey, flw }, tx_ref) {
  await complete(await link(secretKey, tx_ref), 'success');
  return ok(flw.Transaction.verify_by_tx({ tx_ref }));
}

test('verify, refund and list', async (t) => {
  const shop = account();
  const { secretKey, flw } = shop;
  const [webhook, hash] = [await receiver(t), unused('hash')];
  const settings = { secret_key: secretKey, hash, url: webhook.url, signed: true };
  await call('PUT', `${baseUrl}webhook`, { body: settings });

  const tx_ref = unused('npm');
  await link(secretKey, unused('untried'));
  const paid = await pay(shop, tx_ref);
  assert.deepEqual([paid.status, paid.amount, paid.app_fee, paid.payment_type], ['successful', 5_000, 70, 'card']);
  assert.equal(paid.card.country, 'NIGERIA NG');
  assert.deepEqual(await ok(flw.Transaction.verify({ id: String(paid.id) })), paid);
  const listed = await ok(flw.Transaction.fetch({ status: 'successful' }));
  assert.deepEqual(listed.map((row) => [row.id, row.tx_ref]), [[String(paid.id), tx_ref]]);
  assert.deepEqual(await ok(flw.Transaction.fetch()), listed);

  const refund = await ok(flw.Transaction.refund({ id: String(paid.id), amount: '2000.5' }));
  assert.deepEqual([refund.status, refund.amount_refunded, refund.tx_id], ['completed', 2_000.5, paid.id]);
  await operator('POST', '/clock/advance', { seconds: 10 });
  const refunds = await call('GET', `${baseUrl}v3/refunds?id=${paid.id}`, { token: secretKey });
  assert.deepEqual(refunds.body.data.map(({ id, status }) => [id, status]), [[refund.id, 'completed-mpgs']]);

  assert.equal(await ok(flw.Transaction.resend_hooks({ id: paid.id })), 'hook sent');
  await until('both notifications arrived', () => webhook.requests.length === 2);
  for (const { headers, body } of webhook.requests) {
    assert.equal(headers['verif-hash'], hash);
    assert.equal(headers['flutterwave-signature'], createHmac('sha256', hash).update(body).digest('base64'));
    const { event, data } = JSON.parse(body);
    assert.deepEqual([event, data.id, data.card.country, data.card.token], ['charge.completed', paid.id, 'NG', undefined]);
  }
});

test('a saved card is charged again', async () => {
  const shop = account();
  const { token } = (await pay(shop, unused('first'))).card;
  const tx_ref = unused('again');
  const order = { token, currency: 'NGN', country: 'NG', amount: 300, email, tx_ref, narration: 'Installment 2' };
  const charged = await ok(shop.flw.Tokenized.charge(order));
  assert.deepEqual([charged.status, charged.amount, charged.auth_model], ['successful', 300, 'noauth']);

  const challenged = await shop.flw.Tokenized.charge({ ...order, tx_ref: unused('3ds'), do_3ds: true });
  assert.deepEqual([challenged.message, challenged.data.status], ['Charge initiated', 'pending']);
  assert.equal(challenged.meta.authorization.mode, 'redirect');
  await complete(challenged.meta.authorization.redirect, 'success');
  const passed = await ok(shop.flw.Transaction.verify({ id: challenged.data.id }));
  assert.deepEqual([passed.status, passed.card.token], ['successful', token]);

  const moved = { token, email: 'ada@new.example.com', full_name: 'Ada Eze', phone_number: '0800' };
  assert.equal((await ok(shop.flw.Tokenized.update_token(moved))).customer_email, moved.email);
});

test('errors have the form of Flutterwave', async () => {
  const shop = account();
  const [tx_ref, failed] = [unused('paid'), unused('failed')];
  const { card } = await pay(shop, tx_ref);
  await complete(await link(shop.secretKey, failed), 'failed');
  const { id } = await ok(shop.flw.Transaction.verify_by_tx({ tx_ref: failed }));
  const order = { token: card.token, currency: 'NGN', amount: 300, email, tx_ref, narration: 'Installment 2' };
  const stranger = new Flutterwave('FLWPUBK_TEST-x', 'no-key', baseUrl);
  const cases = [
    [shop.flw.Transaction.verify_by_tx({ tx_ref: 'unheard-of' }), 'No transaction was found for this id'],
    [shop.flw.Transaction.verify({ id: 1 }), 'No transaction was found for this id'],
    [shop.flw.Transaction.refund({ id: String(id), amount: 1 }), 'Only a successful transaction can be refunded'],
    [shop.flw.Tokenized.charge(order), 'Duplicate transaction reference: tx_ref must be unique'],
    [shop.flw.Tokenized.charge({ ...order, tx_ref: unused('x'), email: 'eve@example.com' }), 'Wrong token or email passed'],
    [stranger.Transaction.verify_by_tx({ tx_ref }), 'Invalid authorization key'],
  ];
  for (const [call, message] of cases) assert.deepEqual(await call, { status: 'error', message, data: null });
});
