// The commands in README.md and docs/guides work as documented.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';

import { ROOT, commands as blocks } from './machine.js';
import { Company, SANDBOX_JSON, sandbox, until, unused } from './sandbox.js';

/** The first block of commands in a section, with the addresses of the running sandbox. */
function commands(document, heading) {
  const [block] = blocks(document, heading);
  return block
    .replaceAll('http://127.0.0.1:8080', sandbox.api)
    .replaceAll('http://127.0.0.1:8081', sandbox.internal)
    .replaceAll('http://127.0.0.1:8082', sandbox.sandbox)
    .replaceAll('target/sandbox/sandbox.json', SANDBOX_JSON)
    .replaceAll('cargo run --', 'target/debug/tollhouse');
}

/** Returns what a script prints in the root of the repository. */
function type(script) {
  const env = { ...process.env, TOLLHOUSE_OPERATOR_TOKEN: sandbox.operator_token, TOLLHOUSE_INTERNAL_URL: sandbox.internal };
  return execFileSync('bash', ['-euo', 'pipefail', '-c', script], { cwd: ROOT, env, encoding: 'utf8' });
}

describe('README.md and docs/guides', () => {
  test('a payment in five minutes', async () => {
    const script = commands('README.md', '## A payment in five minutes').replaceAll('first-payment', unused('first-payment'));
    const [key, begin, pay, look] = script.split(/^# \d\. .*$/m);
    const begun = JSON.parse(type(key + begin)).data;
    assert.equal(begun.status, 'pending');
    const id = begun.checkout.url.split('/').at(-1);
    assert.equal(JSON.parse(type(pay.replace('/ID/', `/${id}/`))).outcome, 'success');
    const paid = await until('the payment is a success', () => {
      const payment = JSON.parse(type(key + look)).data;
      return payment.status === 'success' && payment;
    });
    assert.deepEqual([paid.amount, paid.fees, paid.payment_channel], [2500.5, 137.51, 'card']);
  });

  test('a push payment', async () => {
    const script = commands('docs/guides/payments.md', '## Push payments').replaceAll('by-phone-1', unused('by-phone'));
    const [key, begin, pay, read] = script.split(/^# \d\. .*$/m);
    const begun = JSON.parse(type(key + begin)).data;
    assert.equal(begun.status, 'pending');
    assert.match(begun.checkout.prompt, /PIN/);
    assert.equal(JSON.parse(type(pay)).result_code, 0);
    const event = await until('the event arrives', () => {
      const found = type(read);
      return found && JSON.parse(found);
    });
    assert.deepEqual([event.event, event.signature], ['payment.success', 'valid']);
  });

  test('a one-time password in a minute', async () => {
    const [key, send, read, verify] = commands('docs/guides/otp.md', '## A one-time password in a minute').split(/^# \d\. .*$/m);
    assert.equal(JSON.parse(type(key + send)).message, 'OTP sent successfully');
    const tried = await until('the code is in the mailbox and passes', () => {
      try {
        return JSON.parse(type(key + read + verify));
      } catch {
        return undefined;
      }
    });
    assert.deepEqual(tried, { error: false, message: 'OTP verified successfully' });
  });

  test('an identity lookup in a minute', async () => {
    const script = commands('docs/guides/identity.md', '## An identity lookup in a minute')
      .replaceAll('uid.json', `target/${unused('uid')}.json`);
    const [key, lookUp, verify] = script.split(/^# \d\. .*$/m);
    const found = JSON.parse(type(key + lookUp));
    assert.equal(found.email, '12345678901@people.example');
    assert.deepEqual([found.verified, found.face_data.status], [true, true]);
    const tried = await until('the code is in the mailbox and passes', () => {
      try {
        return JSON.parse(type(key + verify));
      } catch {
        return undefined;
      }
    });
    assert.deepEqual(tried, { error: false, message: 'Uid verified successfully' });
  });

  test('a repayment in a minute', async () => {
    const script = commands('docs/guides/recollections.md', '## A repayment in a minute')
      .replaceAll('first-loan', unused('first-loan'))
      .replaceAll('"ada', `"${unused('ada')}`);
    const [names, put, save, charge, look] = script.split(/^# \d\. .*$/m);
    assert.equal(type(names + put).match(/"error":false/g).length, 2);
    assert.equal(JSON.parse(type(names + save)).outcome, 'success');
    const charged = await until('the card is saved', () => {
      const response = JSON.parse(type(names + charge));
      return !response.error && response.data;
    });
    assert.deepEqual([charged.status, charged.amount, charged.payment_channel], ['pending', 150, 'card']);
    const { amount_paid: paid, amount_remaining_to_pay: remaining, schedule } = await until('the card is charged', () => {
      const loan = JSON.parse(type(names + look));
      return loan.amount_paid > 0 && loan;
    });
    assert.deepEqual([paid, remaining], [150, 150]);
    assert.deepEqual(schedule.map((installment) => installment.amount_remaining), [0, 150]);
  });

  test('a dispute in a minute', async () => {
    const script = commands('docs/guides/disputes.md', '## A dispute in a minute').replaceAll('disputed-1', unused('disputed'));
    const [names, pay, open, find, contest, decide] = script.split(/^# \d\. .*$/m);
    assert.equal(JSON.parse(type(names + pay)).outcome, 'success');
    await until('the dispute is opened', () => type(`curl -s -o /dev/null -w '%{http_code}' ${open.trim().slice('curl -s '.length)}`) === '204');
    const id = await until('the dispute is recorded', () => {
      const found = type(`${names}${find}echo $DISPUTE`).trim();
      return found !== 'null' && found;
    });
    const answered = JSON.parse(type(`${names}DISPUTE=${id}${contest}`));
    assert.equal(answered.data.state, 'answered', JSON.stringify(answered));
    type(decide);
    await until('the dispute is won', () => {
      const state = type(`${names}curl -s $COMPANY/disputes/${id} -H "Authorization: Bearer $OPERATOR" | jq -r .data.state`).trim();
      return state === 'won';
    });
  });

  test('a failover in a minute', async () => {
    const script = commands('docs/guides/routing.md', '## A failover in a minute').replaceAll('routed-1', unused('routed'));
    const [names, list, reject, pay, why, remove] = script.split(/^# \d\. .*$/m);
    assert.equal(JSON.parse(type(names + list)).error, false);
    // The last two run even if the failover fails: other tests use the company.
    const output = type(`${names}${reject}${pay}echo; ${why}`);
    assert.equal(JSON.parse(type(names + remove)).data.routing, null);
    assert.match(output, /"outcome":"success"/);
    const chosen = [...output.matchAll(/"(?:provider|reason)": "([^"]+)"/g)].map((match) => match[1]);
    assert.deepEqual(chosen, ['provider_a', 'order', 'provider_b', 'failover']);
  });

  test('a settlement with a difference in a minute', async () => {
    const script = commands('docs/guides/reconciliation.md', '## A settlement with a difference in a minute').replaceAll('settled-1', unused('settled'));
    const [names, pay, settle, list, find, resolve] = script.split(/^# \d\. .*$/m);
    assert.equal(JSON.parse(type(names + pay)).outcome, 'success');
    const settlement = await until('the settlement', () => {
      const made = type(`${names}${settle}echo $SETTLEMENT`).trim();
      return made !== 'null' && made;
    });
    assert.equal(JSON.parse(type(names + list)).error, false);
    const exception = await until('the exception', () => {
      const found = type(`${names}SETTLEMENT=${settlement}${find}echo $EXCEPTION`).trim();
      return found !== 'null' && found;
    });
    const resolved = JSON.parse(type(`${names}EXCEPTION=${exception}${resolve}`));
    assert.deepEqual([resolved.data.kind, resolved.data.state], ['settlement_differs', 'resolved'], JSON.stringify(resolved));
  });

  test('install a plugin into a running host', () => {
    const output = type(commands('docs/guides/install-a-plugin.md', '## Install a plugin into a running host'));
    assert.match(output, /^sprout 1\.0\.0 is active/m);
    assert.match(output, /^sprout +1\.0\.0 +active/m);
  });

  test('script a provider fault', async () => {
    const company = await Company.create();
    const body = { email: 'ada@example.com', amount: 100, currency: 'NGN', reference: unused('fault') };
    const initialize = () => company.call('POST', '/payment/initialize', { ...body, checkout: { success_url: sandbox.sandbox } });
    type(commands('docs/guides/provider-faults.md', '## Script a fault'));
    assert.equal((await initialize()).status, 502);
    const resumed = await initialize();
    assert.equal(resumed.status, 200);
    assert.ok(resumed.body.data.checkout.url);
  });

  test('read delivered messages', () => {
    assert.ok(Array.isArray(JSON.parse(type(commands('docs/guides/otp.md', '## Read delivered messages')))));
  });

  test('move the clock', () => {
    // Less than in the guide, because signatures of events are valid for five minutes of real time.
    const script = commands('docs/guides/sandbox.md', '## Move the clock').replace('"seconds":3600', '"seconds":2');
    const [before, after] = [script, script].map((move) => Date.parse(JSON.parse(type(move)).data.now));
    assert.ok(after - before >= 2000 && after - before < 60_000, `${before} ${after}`);
  });
});
