import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { FakeHost, exampleNotification } from 'tollhouse-plugin/testing';

import { sessionRefunds, sessions } from './plugin.js';

const manifest = JSON.parse(readFileSync(new URL('manifest.json', import.meta.url), 'utf8'));
const PAYMENT = 'c72025f5-5cd1-4630-99e4-8ba4722fad56';
const REFUND = '6f2d7c1a-93b4-4c1e-8a57-1f0e2b6d9c33';
const NOTIFICATIONS = 'https://lender.example/api/v1/notifications/momo/a/c/1/d1';
const LOGIN = ['POST', '/collection/token/'];
const REQUEST = ['POST', '/collection/v1_0/requesttopay'];
const STATUS = ['GET', `/collection/v1_0/requesttopay/${PAYMENT}`];
const REFUND_LOGIN = ['POST', '/disbursement/token/'];
const REFUND_REQUEST = ['POST', '/disbursement/v1_0/refund'];
const REFUND_STATUS = ['GET', `/disbursement/v1_0/refund/${REFUND}`];

const bytes = (value) => new Uint8Array(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const token = (access_token) => ({ access_token, token_type: 'access_token', expires_in: 3600 });
const duplicate = { code: 'RESOURCE_ALREADY_EXIST', message: 'Duplicated reference id. Creation of resource failed.' };
const unknown = { code: 'RESOURCE_NOT_FOUND', message: 'Requested resource was not found.' };

/** An account without keys of its own for Disbursement, and without tokens. */
const stranger = () =>
  new FakeHost()
    .setting('base_url', 'https://proxy.momoapi.mtn.com')
    .setting('target_environment', 'mtnuganda')
    .secret('api_user', 'user')
    .secret('api_key', 'key')
    .secret('subscription_key', 's0b');
/** The same with cached tokens. */
const account = () => {
  const host = stranger();
  host.cache.set('collection_token', ['t0k', 60]).set('disbursement_token', ['d0k', 60]);
  return host;
};

const order = (fields = {}) => ({
  serviceRef: PAYMENT,
  amount: { minor: 1000, currency: 'UGX' },
  email: 'ada@example.com',
  phone: '+256772123456',
  customerName: null,
  narration: 'Ada\'s loan, "7"',
  channels: [],
  successUrl: 'https://shop.example/done',
  cancelUrl: null,
  notificationUrl: NOTIFICATIONS,
  metadata: '{"order":"1"}',
  saveInstrument: false,
  ...fields,
});
const session = (fields = {}) => ({
  serviceRef: PAYMENT,
  transactionId: '',
  amount: { minor: 1000, currency: 'UGX' },
  startedAt: '2026-01-01T09:00:00.000Z',
  state: null,
  notified: null,
  ...fields,
});
const refundOrder = (fields = {}) => ({
  session: session(),
  refundRef: REFUND,
  amount: { minor: 1000, currency: 'UGX' },
  reason: 'refund',
  notificationUrl: NOTIFICATIONS,
  ...fields,
});
const knownRefund = () => ({ session: session(), refundRef: REFUND, amount: { minor: 1000, currency: 'UGX' }, providerId: '', state: null, notified: null });
/** A payment as MoMo reports it. */
const payment = (fields = {}) => ({
  externalId: PAYMENT,
  amount: '1000',
  currency: 'UGX',
  payer: { partyIdType: 'MSISDN', partyId: '256772123456' },
  payerMessage: 'Ada s loan, 7',
  payeeNote: 'Ada s loan, 7',
  status: 'PENDING',
  ...fields,
});

/** Returns category, code, and the cause or field of the fault that a call throws. */
function fault(call) {
  try {
    call();
  } catch ({ category, code, details }) {
    const { cause, field } = Object.fromEntries(details);
    return [category, code, cause ?? field ?? ''].join(' ');
  }
  return assert.fail('no fault');
}
/** Returns the fault of `start` with this response to the request. */
const rejected = (status, body) => {
  account().answer(...REQUEST, status, body).install();
  return fault(() => sessions.start(order()));
};

test('the examples succeed', () => {
  const host = new FakeHost().examples(manifest).install();
  const known = session({ amount: { minor: 5000, currency: 'UGX' }, transactionId: '1001' });
  const refundRef = '64f11238-0459-45fd-a5c5-c5ae2b3efe82';
  assert.equal(sessions.start(order({ amount: known.amount })).serviceRef, PAYMENT);
  assert.deepEqual(sessions.verify(known).amount, known.amount);
  assert.equal(sessions.receive(known, ...exampleNotification(manifest)).length, 0);
  assert.equal(sessionRefunds.start(refundOrder({ session: known, amount: known.amount, refundRef })).status, 'pending');
  assert.equal(sessionRefunds.check({ ...knownRefund(), refundRef, providerId: '2001' }).status, 'done');
  const notification = exampleNotification({ examples: manifest.examples.refund });
  assert.equal(sessionRefunds.receive({ ...knownRefund(), refundRef }, ...notification).length, 0);
  assert.equal(host.requests.length, 6);
});

describe('start', () => {
  test('the payer is asked on the phone', () => {
    const { requests, cache } = stranger().answer(...LOGIN, 200, token('t0k')).answer(...REQUEST, 202).install();
    const { next, serviceRef, state, raw } = sessions.start(order());
    assert.deepEqual([next.tag, serviceRef, state.length, raw], ['prompt', PAYMENT, 0, '{}']);
    assert.deepEqual(cache.get('collection_token'), ['t0k', 3540]);
    const [login, request] = requests.map(({ method, url, headers, body }) => ({ method, url, headers, body }));
    assert.deepEqual(login, {
      method: 'POST',
      url: 'https://proxy.momoapi.mtn.com/collection/token/',
      headers: [['authorization', 'Basic dXNlcjprZXk='], ['Ocp-Apim-Subscription-Key', 's0b']],
      body: '',
    });
    assert.deepEqual(request, {
      method: 'POST',
      url: 'https://proxy.momoapi.mtn.com/collection/v1_0/requesttopay',
      headers: [
        ['authorization', 'Bearer t0k'],
        ['Ocp-Apim-Subscription-Key', 's0b'],
        ['X-Target-Environment', 'mtnuganda'],
        ['X-Reference-Id', PAYMENT],
        ['X-Callback-Url', NOTIFICATIONS],
        ['content-type', 'application/json'],
      ],
      body:
        `{"amount":"1000","currency":"UGX","externalId":"${PAYMENT}",` +
        '"payer":{"partyIdType":"MSISDN","partyId":"256772123456"},' +
        '"payerMessage":"Ada s loan, 7","payeeNote":"Ada s loan, 7"}',
    });
  });

  test('amounts are in the major unit', () => {
    for (const [minor, currency, text] of [
      [1, 'UGX', '1'],
      [25_000, 'XOF', '25000'],
      [500, 'RWF', '500'],
      [1250, 'GHS', '12.50'],
      [5, 'GHS', '0.05'],
      [100, 'EUR', '1.00'],
    ]) {
      const { requests } = account().answer(...REQUEST, 202).install();
      sessions.start(order({ amount: { minor, currency } }));
      assert.equal(JSON.parse(requests[0].body).amount, text, currency);
    }
  });

  test('notes have no characters that MoMo rejects', () => {
    for (const [narration, expected] of [['', 'Payment'], ['☃', 'Payment'], ['a\n\n<b>é', 'a b'], ['x'.repeat(200), 'x'.repeat(160)]]) {
      const { requests } = account().answer(...REQUEST, 202).install();
      sessions.start(order({ narration }));
      assert.equal(JSON.parse(requests[0].body).payerMessage, expected);
    }
  });

  test('an order that MoMo cannot serve is invalid, and nothing is sent', () => {
    const { requests } = account().install();
    for (const phone of [null, '256772123456', '+0772123456', '+256 772', '+2567721234567890']) {
      assert.equal(fault(() => sessions.start(order({ phone }))), 'invalid  unsupported-number', phone);
    }
    const amount = { minor: 100, currency: 'KES' };
    assert.equal(fault(() => sessions.start(order({ amount }))), 'invalid  unsupported-currency');
    assert.deepEqual(requests, []);
  });

  test('each rejection has its category and cause', () => {
    for (const [status, code, expected] of [
      [404, 'PAYER_NOT_FOUND', 'invalid PAYER_NOT_FOUND unsupported-number'],
      [500, 'SENDER_ACCOUNT_NOT_ACTIVE', 'invalid SENDER_ACCOUNT_NOT_ACTIVE unsupported-number'],
      [500, 'NOT_ENOUGH_FUNDS', 'refused NOT_ENOUGH_FUNDS insufficient-funds'],
      [500, 'PAYER_LIMIT_REACHED', 'refused PAYER_LIMIT_REACHED payer-limit'],
      [409, 'PAYER_ONGOING', 'refused PAYER_ONGOING payer-busy'],
      [500, 'INVALID_CURRENCY', 'invalid INVALID_CURRENCY unsupported-currency'],
      [500, 'NOT_ALLOWED', 'refused NOT_ALLOWED account-restricted'],
      [403, 'PAYEE_NOT_ALLOWED_TO_RECEIVE', 'refused PAYEE_NOT_ALLOWED_TO_RECEIVE account-restricted'],
      [500, 'NOT_ALLOWED_TARGET_ENVIRONMENT', 'misconfigured NOT_ALLOWED_TARGET_ENVIRONMENT '],
      [500, 'INVALID_CALLBACK_URL_HOST', 'misconfigured INVALID_CALLBACK_URL_HOST '],
      [403, 'FORBIDDEN_IP', 'misconfigured http-403 '],
      [400, 'constructor', 'refused constructor '],
      [500, 'INTERNAL_PROCESSING_ERROR', 'unavailable INTERNAL_PROCESSING_ERROR '],
      [503, 'SERVICE_UNAVAILABLE', 'unavailable SERVICE_UNAVAILABLE '],
      [500, 'a new code', 'unavailable anewcode '],
    ]) {
      assert.equal(rejected(status, { code, message: 'no' }), expected);
    }
  });

  test('a response without a code of MoMo leaves the outcome unknown', () => {
    for (const [status, body] of [[200, ''], [200, '<html>'], [400, ''], [400, '<html>'], [404, { statusCode: 404, message: 'Resource not found' }], [429, ''], [502, '<html>']]) {
      assert.equal(rejected(status, body), `unavailable http-${status} `);
    }
    for (const host of [account().timeout(...REQUEST), account().noConnection(...REQUEST), account().cut(...REQUEST)]) {
      host.install();
      assert.throws(() => sessions.start(order()), { category: 'unavailable' });
    }
  });
});

describe('a duplicate reference', () => {
  const repeated = (status, found) => account().answer(...REQUEST, 409, duplicate).answer(...STATUS, status, found).install();

  test('of the same order is the started session while its payer can approve it', () => {
    for (const found of [payment(), payment({ status: 'CREATED' }), payment({ status: 'ONGOING', amount: '1000.00' })]) {
      const { requests } = repeated(200, found);
      assert.equal(sessions.start(order()).serviceRef, PAYMENT);
      assert.deepEqual(requests.map(({ method }) => method), ['POST', 'GET']);
    }
  });

  test('of another payment, or of one with an outcome, is refused', () => {
    for (const fields of [
      { externalId: 'order-7' },
      { amount: '1001' },
      { currency: 'RWF' },
      { payer: { partyIdType: 'MSISDN', partyId: '256772000000' } },
      { payer: null },
      { status: 'SUCCESSFUL' },
      { status: 'FAILED', reason: 'EXPIRED' },
    ]) {
      repeated(200, payment(fields));
      assert.equal(fault(() => sessions.start(order())), 'refused duplicate-reference ', JSON.stringify(fields));
    }
  });

  test('of a payment that cannot be queried leaves the outcome unknown', () => {
    for (const [status, body] of [[404, unknown], [500, ''], [200, '<html>']]) {
      repeated(status, body);
      assert.throws(() => sessions.start(order()), { category: 'unavailable' });
    }
  });
});

describe('access tokens', () => {
  test('a rejected one is replaced once', () => {
    const host = account().answer(...LOGIN, 200, token('new')).answer(...REQUEST, 401, '').answer(...REQUEST, 202).install();
    sessions.start(order());
    assert.deepEqual(host.requests.map((sent) => sent.header('authorization')), ['Bearer t0k', 'Basic dXNlcjprZXk=', 'Bearer new']);
    assert.deepEqual(host.cache.get('collection_token'), ['new', 3540]);

    const { requests } = account().answer(...LOGIN, 200, token('new')).answer(...REQUEST, 401, '').install();
    assert.equal(fault(() => sessions.start(order())), 'misconfigured http-401 ');
    assert.equal(requests.length, 3);
  });

  test('a new one that is rejected is not replaced', () => {
    const { requests } = stranger().answer(...LOGIN, 200, token('new')).answer(...STATUS, 401, '').install();
    assert.equal(fault(() => sessions.verify(session())), 'misconfigured http-401 ');
    assert.equal(requests.length, 2);
  });

  test('one that expires late is cached for a day', () => {
    const { cache } = stranger().answer(...LOGIN, 200, { access_token: 'long', expires_in: 1e12 }).answer(...REQUEST, 202).install();
    sessions.start(order());
    assert.deepEqual(cache.get('collection_token'), ['long', 86_400]);
  });

  test('one that expires soon is not cached', () => {
    for (const expires_in of [60, '30', undefined, 'soon']) {
      const { cache } = stranger().answer(...LOGIN, 200, { access_token: 'brief', expires_in }).answer(...REQUEST, 202).install();
      sessions.start(order());
      assert.equal(cache.size, 0);
    }
  });

  test('wrong keys are misconfigured, and an unreadable response is unavailable', () => {
    for (const [status, body, expected] of [
      [401, { statusCode: 401, message: 'Access denied due to invalid subscription key.' }, 'misconfigured http-401 '],
      [400, { code: 'no', message: 'no' }, 'misconfigured http-400 '],
      [500, { error: 'server_error' }, 'unavailable http-500 '],
      [200, '<html>', 'unavailable unexpected-answer '],
      [200, {}, 'unavailable unexpected-answer '],
    ]) {
      stranger().answer(...LOGIN, status, body).install();
      assert.equal(fault(() => sessions.start(order())), expected);
    }
    assert.equal(fault(() => new FakeHost().setting('base_url', 'https://m.test').install() && sessions.verify(session())), 'misconfigured  ');
  });
});

describe('verify', () => {
  const verified = (fields) => {
    account().answer(...STATUS, 200, payment(fields)).install();
    return sessions.verify(session());
  };

  test('each status is mapped', () => {
    for (const [status, expected] of [
      ['SUCCESSFUL', 'success'],
      ['FAILED', 'failed'],
      ['PENDING', 'pending'],
      ['CREATED', 'pending'],
      ['ONGOING', 'pending'],
      ['constructor', 'pending'],
    ]) {
      assert.equal(verified({ status }).status, expected, status);
    }
  });

  test('a success has the transaction and the amount that MoMo reports', () => {
    for (const [fields, minor] of [
      [{ amount: '1000' }, 1000],
      [{ amount: 1000 }, 1000],
      [{ amount: '1000.0' }, 1000],
      [{ amount: '12.5', currency: 'GHS' }, 1250],
      [{ amount: '0.05', currency: 'EUR' }, 5],
      [{ amount: '12', currency: 'GHS' }, 1200],
    ]) {
      const seen = verified({ status: 'SUCCESSFUL', financialTransactionId: '23503452', ...fields });
      assert.deepEqual([seen.transactionId, seen.amount.minor, seen.channel], ['23503452', minor, 'mobile_money']);
      assert.equal(JSON.parse(seen.raw).status, 'SUCCESSFUL');
    }
  });

  test('an amount that cannot be read is unavailable', () => {
    for (const fields of [{ amount: '10.5' }, { amount: 'x' }, { amount: null }, { amount: '-1' }, { amount: '12.345', currency: 'GHS' }, { currency: 'KES' }]) {
      assert.equal(fault(() => verified(fields)), 'unavailable unexpected-answer ', JSON.stringify(fields));
    }
  });

  test('a failure has the reason as its message', () => {
    for (const [reason, message] of [
      ['NOT_ENOUGH_FUNDS', "the payer's balance is insufficient"],
      [{ code: 'APPROVAL_REJECTED', message: 'The payer rejected.' }, 'the payer rejected the payment'],
      ['EXPIRED', 'the payer did not approve the payment in time'],
      ['A_NEW_REASON', 'A_NEW_REASON'],
      [undefined, ''],
      [null, ''],
    ]) {
      assert.equal(verified({ status: 'FAILED', reason }).message, message);
    }
  });

  test('only an error of MoMo itself means that a payment is not known', () => {
    for (const [status, body, expected] of [
      [404, unknown, 'not-found  '],
      [404, '<html>', 'unavailable http-404 '],
      [404, { statusCode: 404, message: 'Resource not found' }, 'unavailable http-404 '],
      [500, '', 'unavailable http-500 '],
      [200, {}, 'unavailable unexpected-answer '],
    ]) {
      account().answer(...STATUS, status, body).install();
      assert.equal(fault(() => sessions.verify(session())), expected);
    }
  });
});

test('a callback is accepted, and nothing in it is kept', () => {
  const { requests } = account().install();
  const received = (body) => sessions.receive(session(), [['content-type', 'application/json']], bytes(body));
  for (const body of [payment({ status: 'SUCCESSFUL' }), {}, { status: 'FAILED', reason: 'EXPIRED' }]) {
    assert.equal(received(body).length, 0);
    assert.equal(sessionRefunds.receive(knownRefund(), [], bytes({ ...body, externalId: REFUND })).length, 0);
  }
  for (const body of ['', '[]', '{"status":', payment({ externalId: 'order-7' })]) {
    assert.equal(fault(() => received(body)), 'invalid  body');
    assert.equal(fault(() => sessionRefunds.receive(knownRefund(), [], bytes(body))), 'invalid  body');
  }
  assert.deepEqual(requests, []);
});

describe('refunds', () => {
  test('the payment is named by its reference', () => {
    const { requests } = stranger().answer(...REFUND_LOGIN, 200, token('d0k')).answer(...REFUND_REQUEST, 202).install();
    const { status, providerId, state } = sessionRefunds.start(refundOrder());
    assert.deepEqual([status, providerId, state.length], ['pending', REFUND, 0]);
    const [login, request] = requests;
    assert.deepEqual(login.headers, [['authorization', 'Basic dXNlcjprZXk='], ['Ocp-Apim-Subscription-Key', 's0b']]);
    assert.deepEqual(request.headers, [
      ['authorization', 'Bearer d0k'],
      ['Ocp-Apim-Subscription-Key', 's0b'],
      ['X-Target-Environment', 'mtnuganda'],
      ['X-Reference-Id', REFUND],
      ['X-Callback-Url', NOTIFICATIONS],
      ['content-type', 'application/json'],
    ]);
    assert.equal(
      request.body,
      `{"amount":"1000","currency":"UGX","externalId":"${REFUND}","payerMessage":"refund","payeeNote":"refund",` +
        `"referenceIdToRefund":"${PAYMENT}"}`,
    );
  });

  test('Disbursement has keys of its own if they are set', () => {
    const host = stranger().secret('disbursement_subscription_key', 'd1s');
    const { requests } = host.secret('disbursement_api_user', 'du').secret('disbursement_api_key', 'dk').answer(...REFUND_LOGIN, 200, token('d0k')).answer(...REFUND_REQUEST, 202).answer(...LOGIN, 200, token('t0k')).answer(...REQUEST, 202).install();
    sessionRefunds.start(refundOrder());
    sessions.start(order());
    assert.deepEqual(requests.map((sent) => sent.header('ocp-apim-subscription-key')), ['d1s', 'd1s', 's0b', 's0b']);
    assert.deepEqual([requests[0], requests[2]].map((sent) => sent.header('authorization')), ['Basic ZHU6ZGs=', 'Basic dXNlcjprZXk=']);
  });

  test('each status is mapped', () => {
    for (const [status, reason, expected] of [
      ['SUCCESSFUL', undefined, ['done', '']],
      ['FAILED', 'NOT_ENOUGH_FUNDS', ['failed', 'NOT_ENOUGH_FUNDS']],
      ['FAILED', { code: 'PAYEE_NOT_FOUND', message: 'no' }, ['failed', 'PAYEE_NOT_FOUND']],
      ['PENDING', undefined, ['pending', '']],
      ['a new word', undefined, ['pending', '']],
    ]) {
      account().answer(...REFUND_STATUS, 200, { status, reason }).install();
      const seen = sessionRefunds.check(knownRefund());
      assert.deepEqual([seen.status, seen.message], expected);
      assert.equal(seen.providerId, REFUND);
    }
  });

  test('a repeated request returns the existing refund', () => {
    for (const [status, expected] of [['PENDING', 'pending'], ['SUCCESSFUL', 'done'], ['FAILED', 'failed']]) {
      const { requests } = account().answer(...REFUND_REQUEST, 409, duplicate).answer(...REFUND_STATUS, 200, { status }).install();
      assert.equal(sessionRefunds.start(refundOrder()).status, expected);
      assert.deepEqual(requests.map(({ method }) => method), ['POST', 'GET']);
    }
  });

  test('each rejection has its category', () => {
    for (const [status, body, expected] of [
      [404, unknown, 'refused RESOURCE_NOT_FOUND '],
      [500, { code: 'NOT_ENOUGH_FUNDS', message: 'no' }, 'refused NOT_ENOUGH_FUNDS '],
      [500, { code: 'NOT_ALLOWED', message: 'no' }, 'refused NOT_ALLOWED '],
      [500, { code: 'INTERNAL_PROCESSING_ERROR', message: 'no' }, 'unavailable INTERNAL_PROCESSING_ERROR '],
      [403, { code: 'FORBIDDEN_IP', message: 'no' }, 'misconfigured http-403 '],
      [200, {}, 'unavailable http-200 '],
    ]) {
      account().answer(...REFUND_REQUEST, status, body).install();
      assert.equal(fault(() => sessionRefunds.start(refundOrder())), expected);
    }
    const rejected = { code: 'REQUEST_REJECTED', message: 'no' };
    account().answer(...REFUND_REQUEST, 409, duplicate).answer(...REFUND_STATUS, 400, rejected).install();
    assert.equal(fault(() => sessionRefunds.start(refundOrder())), 'unavailable REQUEST_REJECTED ');
    account().answer(...REFUND_REQUEST, 409, duplicate).answer(...REFUND_STATUS, 404, unknown).install();
    assert.equal(fault(() => sessionRefunds.start(refundOrder())), 'unavailable  ');
    for (const [status, body, expected] of [[404, unknown, 'not-found  '], [404, '<html>', 'unavailable http-404 '], [200, '', 'unavailable unexpected-answer ']]) {
      account().answer(...REFUND_STATUS, status, body).install();
      assert.equal(fault(() => sessionRefunds.check(knownRefund())), expected);
    }
  });
});
