// Third-party clients send through the simulators of the SMS gateways and of the mail server; the
// messages appear in the mailbox.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { call, sandbox, unused } from './sandbox.js';

/** Sends with a library. Returns its result. */
function send(library, order) {
  const input = JSON.stringify({ library, smtp: sandbox.smtp, ...order });
  const script = fileURLToPath(new URL('messages.py', import.meta.url));
  const { stdout, stderr } = spawnSync(process.env.PYTHON ?? 'python3', [script], { input, encoding: 'utf8' });
  assert.ok(stdout, stderr);
  return JSON.parse(stdout);
}

/** The messages to a recipient without their times, newest first. */
async function mailbox(to) {
  const { body } = await call('GET', `${sandbox.sandbox}/mailbox?to=${encodeURIComponent(to)}`);
  return body.map(({ at, ...message }) => message);
}

const sms = (to, text) => ({ channel: 'sms', to, subject: null, text, html: null });

test("PyPI's twilio", async () => {
  const url = `${sandbox.sandbox}/twilio`;
  const [to, text] = ['+2348030001117', unused('Your code, naïvely')];
  const year = new Date().getUTCFullYear();
  const taken = { sent: 'queued', shown: 'delivered', to, segments: '1', year };
  assert.deepEqual(send('twilio', { url, to, text }), taken);
  assert.deepEqual((await mailbox(to))[0], sms(to, text));
  const failures = [
    [{ to: '08030001117' }, 400, 21211],
    [{ to: '+2348030000000' }, 400, 21610],
    [{ to: '+2348030000002' }, 429, 20429],
    [{ text: '' }, 400, 21602],
    [{ token: '' }, 401, 20003],
  ];
  for (const [change, status, code] of failures) {
    assert.deepEqual(send('twilio', { url, to, text, ...change }), { status, code }, JSON.stringify(change));
  }
});

test('termii-py', async () => {
  const url = `${sandbox.sandbox}/termii`;
  const [to, text] = [['2348030001118', '2348030001119'], unused('Your code')];
  const { code, message, message_id_str: id } = send('termii', { url, to, text });
  assert.deepEqual([code, message], ['ok', 'Successfully Sent']);
  assert.match(id, /^\d{19}$/);
  for (const number of to) assert.deepEqual((await mailbox(number))[0], sms(`+${number}`, text));
  const refused = send('termii', { url, to: ['0803'], text });
  assert.deepEqual(refused, { code: 400, message: 'Invalid phone number', status: 'error' });

  const { made, verified } = send('termii tokens', { url, to: to[0] });
  assert.equal(made.status, 'success');
  assert.match(made.data.otp, /^\d{6}$/);
  assert.equal(verified, true);
});

test("Python's smtplib", async () => {
  const name = unused('outside');
  const [one, two] = [`${name}-1@example.com`, `${name}-2@example.com`];
  const content = {
    subject: 'Ваш код — 你好',
    text: `Good day,\n.a line that begins with a dot\n${'long '.repeat(300)}\n`,
    html: '<p>Ваш код: <b>123456</b></p>\n',
  };
  const refused = `refused-${name}@example.com`;
  assert.deepEqual(send('smtplib', { to: [one, refused, two], ...content }), { refused: { [refused]: 550 } });
  for (const to of [one, two]) assert.deepEqual(await mailbox(to), [{ channel: 'email', to, ...content }]);
  assert.deepEqual(send('smtplib', { to: [refused], ...content }), { refused: { [refused]: 550 } });
  assert.deepEqual(await mailbox(refused), []);
});
