// Safaricom's own client works with the simulator of M-Pesa.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import Mpesa from 'mpesa-node';

import { ROOT } from './machine.js';
import { call, operator, receiver, sandbox, until, unused } from './sandbox.js';

const baseURL = `${sandbox.sandbox}/mpesa`;
const shortcode = '174379';
const description = 'Installment 1';

/** A new account at the simulator. */
async function account() {
  const consumerKey = unused('outside');
  const [consumerSecret, passkey, password] = ['a_secret', 'a_passkey', 'a_password'];
  const credentials = {
    consumer_key: consumerKey, consumer_secret: consumerSecret, shortcode, passkey, initiator: 'ada',
    initiator_password: password,
  };
  const { status } = await call('PUT', `${baseURL}/account`, { body: credentials });
  assert.equal(status, 204);
  return client({
    consumerKey, consumerSecret, shortCode: shortcode, lipaNaMpesaShortCode: shortcode, lipaNaMpesaShortPass: passkey,
    initiatorName: 'ada', securityCredential: password, certPath: `${ROOT}/sandbox/src/mpesa/certificate.pem`,
  });
}

function client(configuration) {
  return Object.assign(new Mpesa(configuration), { baseURL });
}

let subscribers = 0;

/** A phone number that no earlier run against the same sandbox has used. */
const phone = () => `2541${String(Date.now() + (subscribers += 1)).slice(-8)}`;

const answer = (number, answer) => call('POST', `${sandbox.sandbox}/phone/${number}/answer`, { body: { answer } });

/** Pays KES 500 and returns the receipt. */
async function pay(mpesa, callback) {
  const payer = phone();
  await mpesa.lipaNaMpesaOnline(payer, 500, callback, 'loan-7', description);
  const { body } = await answer(payer, 'pay');
  assert.equal(body.result_code, 0);
  return body.receipt;
}

/** Executes a command and returns its result. */
async function result(hook, command) {
  const { data } = await command;
  assert.equal(data.ResponseCode, '0');
  await operator('POST', '/clock/advance', { seconds: 10 });
  return until(`a result of ${data.ConversationID}`, () => {
    const results = hook.requests.map(({ body }) => JSON.parse(body).Result);
    return results.find((result) => result?.ConversationID === data.ConversationID);
  });
}

/** The parameters of a result. */
const parameters = ({ ResultParameters }) =>
  Object.fromEntries(ResultParameters.ResultParameter.map(({ Key, Value }) => [Key, Value]));

test('a prompt is paid, called back and queried', async (t) => {
  const [mpesa, hook, payer] = [await account(), await receiver(t), phone()];
  const { data: begun } = await mpesa.lipaNaMpesaOnline(payer, 500, `${hook.url}/callback`, 'loan-7', description);
  assert.deepEqual([begun.ResponseCode, begun.CheckoutRequestID.slice(0, 6)], ['0', 'ws_CO_']);
  const query = () => mpesa.lipaNaMpesaQuery(begun.CheckoutRequestID);
  await assert.rejects(query, ({ response }) => response.data.errorMessage === 'The transaction is being processed');

  const { body: paid } = await answer(payer, 'pay');
  assert.deepEqual([paid.checkout_request_id, paid.result_code], [begun.CheckoutRequestID, 0]);
  const { data: queried } = await query();
  assert.deepEqual([queried.ResultCode, queried.MerchantRequestID], ['0', begun.MerchantRequestID]);
  await until('the callback arrived', () => hook.requests.length === 1);
  const { method, path, body } = hook.requests[0];
  assert.deepEqual([method, path], ['POST', '/callback']);
  const { ResultCode, CheckoutRequestID, CallbackMetadata } = JSON.parse(body).Body.stkCallback;
  assert.deepEqual([ResultCode, CheckoutRequestID], [0, begun.CheckoutRequestID]);
  const items = Object.fromEntries(CallbackMetadata.Item.map(({ Name, Value }) => [Name, Value]));
  assert.deepEqual([items.Amount, items.MpesaReceiptNumber], [500, paid.receipt]);
  assert.equal(items.PhoneNumber, Number(payer));
});

test('a payment is reversed once', async (t) => {
  const [mpesa, hook] = [await account(), await receiver(t)];
  const receipt = await pay(mpesa, hook.url);
  const status = async () => {
    const command = mpesa.transactionStatus(receipt, shortcode, 4, hook.url, hook.url);
    return parameters(await result(hook, command));
  };
  const { ReceiptNo, Amount, TransactionStatus } = await status();
  assert.deepEqual([ReceiptNo, Amount, TransactionStatus], [receipt, 500, 'Completed']);

  const reverse = () => result(hook, mpesa.reversal(receipt, 500, hook.url, hook.url));
  const reversed = await reverse();
  assert.equal(reversed.ResultCode, 0);
  assert.equal(parameters(reversed).OriginalTransactionID, receipt);
  assert.equal((await reverse()).ResultCode, 'R000001');
  assert.equal((await status()).TransactionStatus, 'Reversed');
});

test('errors have the form of M-Pesa', async (t) => {
  const [mpesa, hook, busy] = [await account(), await receiver(t), phone()];
  const push = (payer, amount, of = mpesa) => of.lipaNaMpesaOnline(payer, amount, hook.url, 'loan-7', description);
  await push(busy, 500);
  const stranger = client({ ...mpesa.configs, consumerSecret: 'wrong' });
  const guesser = client({ ...mpesa.configs, lipaNaMpesaShortPass: 'wrong' });
  const cases = [
    [() => push('0712345678', 500), 400, 'Bad Request - Invalid PhoneNumber'],
    [() => push(phone(), 0), 400, 'Bad Request - Invalid Amount'],
    [() => push(busy, 500), 500, /^Unable to lock subscriber/],
    [() => push(phone(), 500, guesser), 500, 'Wrong credentials'],
    [() => mpesa.lipaNaMpesaQuery('ws_CO_none'), 500, 'The transaction does not exist'],
    [() => push(phone(), 500, stranger), 400, undefined],
  ];
  for (const [call, status, message] of cases) {
    const is = ({ response }) => {
      const { errorMessage } = response.data;
      const matches = message instanceof RegExp ? message.test(errorMessage) : errorMessage === message;
      return response.status === status && matches;
    };
    await assert.rejects(call, is, String(message));
  }
  const guessed = client({ ...mpesa.configs, securityCredential: 'wrong' });
  const refused = await result(hook, guessed.reversal('TLJ7RT61SV', 500, hook.url, hook.url));
  assert.deepEqual([refused.ResultCode, refused.ResultDesc], [2001, 'The initiator information is invalid.']);
});
