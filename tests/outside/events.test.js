// Receivers verify events with the libraries of Standard Webhooks, from npm and from PyPI.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Webhook, WebhookVerificationError } from 'standardwebhooks';

import { Company, complete, operator, receiver, until, unused } from './sandbox.js';

/** Each returns the event, or `undefined` if it rejects the delivery; other errors are thrown. */
const VERIFIERS = {
  npm(secret, { headers, body }) {
    try {
      return new Webhook(secret).verify(body, headers);
    } catch (error) {
      if (error instanceof WebhookVerificationError) return undefined;
      throw error;
    }
  },
  PyPI(secret, { headers, body }) {
    const input = JSON.stringify({ secret, headers, body: body.toString('base64') });
    const script = fileURLToPath(new URL('verify.py', import.meta.url));
    const { stdout, stderr } = spawnSync(process.env.PYTHON ?? 'python3', [script], { input, encoding: 'utf8' });
    assert.ok(stdout, stderr);
    return JSON.parse(stdout).event;
  },
};

const SIGNED = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/** The raw delivery of `payment.success` to a receiver of the test. */
async function deliver(t, reference) {
  const inbox = await receiver(t);
  const company = await Company.create({ event_url: `${inbox.url}/events` });
  const begun = await company.initialize({ reference });
  await complete(begun.checkout.url, 'success');
  await until('the event arrives', () => inbox.requests.length === 1);
  return { company, inbox, delivery: inbox.requests[0] };
}

/** The same delivery with some headers replaced. */
const reheaded = (delivery, headers) => ({ ...delivery, headers: { ...delivery.headers, ...headers } });

for (const [registry, verify] of Object.entries(VERIFIERS)) {
  describe(`standardwebhooks of ${registry}`, () => {
    test('accepts an event as it was delivered, and rejects any change', async (t) => {
      const reference = unused('event');
      const { company, delivery } = await deliver(t, reference);
      assert.deepEqual([delivery.method, delivery.path], ['POST', '/events']);
      const event = verify(company.event_secret, delivery);
      assert.deepEqual([event.event, event.company_id, event.service], ['payment.success', company.id, 'tollhouse']);
      assert.deepEqual([event.data.reference, event.data.status, event.data.amount], [reference, 'success', 2500.5]);

      const more = delivery.body.toString().replace('2500.5', '9500.5');
      assert.notEqual(more, delivery.body.toString());
      assert.equal(verify(company.event_secret, { ...delivery, body: Buffer.from(more) }), undefined);
      const later = String(Number(delivery.headers['webhook-timestamp']) + 1);
      for (const headers of [{ 'webhook-id': 'another' }, { 'webhook-timestamp': later }]) {
        assert.equal(verify(company.event_secret, reheaded(delivery, headers)), undefined);
      }
      for (const name of SIGNED) {
        assert.equal(verify(company.event_secret, reheaded(delivery, { [name]: '' })), undefined, name);
      }
      const other = await Company.create();
      assert.equal(verify(other.event_secret, delivery), undefined);
    });

    test('accepts either signature during the rotation of a secret', async (t) => {
      const { company, inbox, delivery } = await deliver(t, unused('rotated'));
      const rotate = async () => (await operator('POST', `/companies/${company.id}/event-secret/rotate`)).event_secret;
      const redeliver = async () => {
        const seen = inbox.requests.length;
        const [{ id }] = (await operator('GET', `/companies/${company.id}/events`)).docs;
        await operator('POST', `/companies/${company.id}/events/${id}/redeliver`);
        await until('it is delivered again', () => inbox.requests.length > seen);
        return inbox.requests[seen];
      };

      const second = await rotate();
      const during = await redeliver();
      assert.equal(during.headers['webhook-id'], delivery.headers['webhook-id']);
      assert.deepEqual(during.body, delivery.body);
      for (const secret of [company.event_secret, second]) {
        assert.equal(verify(secret, during)?.event, 'payment.success');
        const [one, two] = during.headers['webhook-signature'].split(' ');
        const alone = [one, two].filter((signature) => verify(secret, reheaded(during, { 'webhook-signature': signature })));
        assert.equal(alone.length, 1);
      }

      const third = await rotate();
      const after = await redeliver();
      assert.equal(verify(company.event_secret, after), undefined);
      for (const secret of [second, third]) assert.equal(verify(secret, after)?.event, 'payment.success');
    });
  });
}
