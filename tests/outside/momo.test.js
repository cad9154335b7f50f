// A client for MTN MoMo from npm works with the simulator of MoMo.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';

import momo from 'mtn-momo';

import { complete, receiver, sandbox, until, unused } from './sandbox.js';

const baseUrl = `${sandbox.sandbox}/momo`;
const callbackHost = '127.0.0.1';

/** A new API user at the simulator, provisioned as in MTN's sandbox. */
async function account() {
  const { Users, Collections, Disbursements } = momo.create({ baseUrl, callbackHost });
  const primaryKey = unused('subscription');
  const users = Users({ primaryKey });
  const userId = await users.create(callbackHost);
  const { apiKey: userSecret } = await users.login(userId);
  const keys = { primaryKey, userId, userSecret };
  return { keys, collections: Collections(keys), disbursements: Disbursements(keys) };
}

const order = (fields = {}) => ({
  amount: '12.50',
  currency: 'EUR',
  externalId: 'loan-7',
  payer: { partyIdType: 'MSISDN', partyId: '256772123456' },
  payerMessage: 'Installment 1',
  payeeNote: 'Installment 1',
  ...fields,
});

/** The page of a request to pay. */
const page = (referenceId) => `${sandbox.sandbox}/checkout/${referenceId}`;

test('a request to pay is approved, called back and queried', async (t) => {
  const [{ collections, disbursements }, hook] = [await account(), await receiver(t)];
  const reference = await collections.requestToPay(order({ callbackUrl: `${hook.url}/callback` }));
  const pending = await collections.getTransaction(reference);
  assert.deepEqual(pending, { ...order(), status: 'PENDING' });

  await complete(page(reference), 'success');
  const paid = await collections.getTransaction(reference);
  assert.match(paid.financialTransactionId, /^\d+$/);
  assert.deepEqual(paid, { ...pending, status: 'SUCCESSFUL', financialTransactionId: paid.financialTransactionId });
  await until('the callback arrived', () => hook.requests.length === 1);
  const [{ method, path, body }] = hook.requests;
  assert.deepEqual([method, path], ['PUT', '/callback']);
  assert.deepEqual(JSON.parse(body), paid);
  for (const product of [collections, disbursements]) {
    assert.deepEqual(await product.getBalance(), { availableBalance: '12.5', currency: 'EUR' });
  }
});

test('failures have the reasons of MoMo', async () => {
  const { collections } = await account();
  for (const [outcome, name] of [['failed', 'NotEnoughFundsError'], ['abandoned', 'ApprovalRejectedError']]) {
    const reference = await collections.requestToPay(order());
    await complete(page(reference), outcome);
    await assert.rejects(collections.getTransaction(reference), (error) => error.name === name && error.transaction.status === 'FAILED');
  }
});

test('payers without an account are not active', async () => {
  const { collections } = await account();
  assert.deepEqual(await collections.isPayerActive('256772123456'), { result: true });
  assert.deepEqual(await collections.isPayerActive('256770000003'), { result: false });
});

test('errors have the form of MoMo', async () => {
  const { keys, collections } = await account();
  const elsewhere = momo.create({ baseUrl, callbackHost, environment: 'mtnuganda' }).Collections(keys);
  const stranger = momo.create({ baseUrl, callbackHost }).Collections({ ...keys, userSecret: 'wrong' });
  for (const [call, name] of [
    [() => collections.getTransaction(randomUUID()), 'ResourceNotFoundError'],
    [() => collections.requestToPay(order({ currency: 'UGX' })), 'InvalidCurrencyError'],
    [() => collections.requestToPay(order({ callbackUrl: 'https://elsewhere.example/' })), 'InvalidCallbackUrlHostError'],
    [() => elsewhere.requestToPay(order()), 'NotAllowedTargetEnvironmentError'],
    [() => stranger.requestToPay(order()), 'UnspecifiedError'],
  ]) {
    await assert.rejects(call, { name });
  }
  const headers = { 'Ocp-Apim-Subscription-Key': keys.primaryKey, 'X-Reference-Id': keys.userId, 'content-type': 'application/json' };
  const again = await fetch(`${baseUrl}/v1_0/apiuser`, { method: 'POST', headers, body: JSON.stringify({ providerCallbackHost: callbackHost }) });
  assert.deepEqual([again.status, (await again.json()).code], [409, 'RESOURCE_ALREADY_EXIST']);
});
