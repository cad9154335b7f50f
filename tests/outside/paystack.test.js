// A client for Paystack from npm works with the simulator of Paystack.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PaystackApiError, assertOk, createPaystack, verifyPaystackWebhookSignature } from '@alexasomba/paystack-node';

import { call, complete, operator, receiver, sandbox, until, unused } from './sandbox.js';

const baseUrl = `${sandbox.sandbox}/paystack`;

/** A new account at the simulator. */
function account() {
  const secretKey = unused('sk_test_outside');
  const paystack = createPaystack({ secretKey, baseUrl, timeoutMs: 10_000, retry: { retries: 0 } });
  const ok = async (call) => {
    const { status, data } = assertOk(await call);
    assert.equal(status, true);
    return data;
  };
  return { secretKey, paystack, ok };
}

test('initialize, verify and refund', async (t) => {
  const { secretKey, paystack, ok } = account();
  const webhook = await receiver(t);
  await call('PUT', `${baseUrl}/webhook`, { body: { secret_key: secretKey, url: webhook.url } });

  const reference = unused('npm');
  const body = { email: 'ada@example.com', amount: 500_000, currency: 'NGN', reference, metadata: '{"order":7}' };
  const begun = await ok(paystack.transaction_initialize({ body }));
  assert.equal(begun.reference, reference);
  assert.ok(begun.authorization_url.endsWith(begun.access_code));

  const verify = () => ok(paystack.transaction_verify({ params: { path: { reference } } }));
  assert.equal((await verify()).status, 'abandoned');
  await complete(begun.authorization_url, 'success');
  const paid = await verify();
  assert.deepEqual([paid.status, paid.amount, paid.fees, paid.channel], ['success', 500_000, 17_500, 'card']);
  assert.deepEqual(paid.metadata, { order: 7 });
  assert.equal(paid.customer.email, 'ada@example.com');
  assert.equal(paid.authorization.reusable, true);
  const fetched = await ok(paystack.transaction_fetch({ params: { path: { id: paid.id } } }));
  assert.deepEqual(fetched, paid);

  const refund = await ok(paystack.refund_create({ body: { transaction: reference, amount: 200_000 } }));
  assert.deepEqual([refund.status, refund.amount, refund.transaction.reference], ['pending', 200_000, reference]);
  await operator('POST', '/clock/advance', { seconds: 10 });
  const refunded = await ok(paystack.refund_fetch({ params: { path: { id: refund.id } } }));
  assert.deepEqual([refunded.status, refunded.transaction], ['processed', paid.id]);
  const listed = await ok(paystack.refund_list({ params: { query: { perPage: 10 } } }));
  assert.deepEqual(listed.map(({ id }) => id), [refund.id]);

  const events = ['charge.success', 'refund.pending', 'refund.processed'];
  await until('all notifications arrived', () => webhook.requests.length === events.length);
  for (const [at, { headers, body }] of webhook.requests.entries()) {
    const signed = { rawBody: body, signature: headers['x-paystack-signature'], secret: secretKey };
    assert.ok(verifyPaystackWebhookSignature(signed));
    assert.ok(!verifyPaystackWebhookSignature({ ...signed, rawBody: Buffer.concat([body, Buffer.from(' ')]) }));
    assert.equal(JSON.parse(body).event, events[at]);
  }
});

test('a saved card is charged again', async () => {
  const { paystack, ok } = account();
  const begun = await ok(paystack.transaction_initialize({ body: { email: 'ada@example.com', amount: 5_000 } }));
  await complete(begun.authorization_url, 'success');
  const path = { reference: begun.reference };
  const { authorization } = await ok(paystack.transaction_verify({ params: { path } }));
  const body = { email: 'ada@example.com', amount: 300_000, authorization_code: authorization.authorization_code };
  const charged = await ok(paystack.transaction_chargeAuthorization({ body }));
  assert.deepEqual([charged.status, charged.amount], ['success', 300_000]);
  const listed = await ok(paystack.transaction_list({ params: { query: { perPage: 10, status: 'success' } } }));
  assert.deepEqual(listed.map(({ amount }) => amount), [300_000, 5_000]);
});

test('errors have the form of Paystack', async () => {
  const { paystack, ok } = account();
  const body = { email: 'ada@example.com', amount: 5_000, reference: unused('twice') };
  await ok(paystack.transaction_initialize({ body }));
  const stranger = createPaystack({ secretKey: 'no-key', baseUrl });
  const path = { reference: 'unheard-of' };
  const cases = [
    [paystack.transaction_initialize({ body }), 400, 'Duplicate Transaction Reference'],
    [paystack.transaction_initialize({ body: { email: 'ada@example.com' } }), 400, 'amount is required'],
    [paystack.transaction_verify({ params: { path } }), 404, 'Transaction reference not found.'],
    [paystack.refund_create({ body: { transaction: body.reference } }), 400, 'Transaction has not been paid'],
    [stranger.transaction_verify({ params: { path } }), 401, 'Invalid key'],
  ];
  for (const [call, status, message] of cases) {
    const result = await call;
    const is = (error) => error instanceof PaystackApiError && error.status === status && error.error.message === message;
    assert.throws(() => assertOk(result), is, `${message}: ${JSON.stringify(result.error ?? result.data)}`);
  }
});
