// An SMS gateway. No number and no text stands in a fault or a log line.

import { Fault, http, settings, vault } from 'tollhouse-plugin';

/** Somebody waits for the message. */
const TIMEOUT_MS = 10_000;

/** @type {import('tollhouse-plugin').Sms} */
export const sms = {
  send({ to, sender, text, reference }) {
    const from = sender || settings.get('sender', '');
    const answer = http
      .post(settings.url('base_url', '/messages'))
      .bearer(vault.secret('api_key'))
      .timeoutMs(TIMEOUT_MS)
      .json({ to, from, text, reference })
      .send();
    const { id, state } = read(answer).json({ id: 'string', state: 'string' });
    // A success of HTTP is none for the one recipient.
    if (state !== 'accepted') throw Fault.other('the gateway did not accept the message');
    return id;
  },
};

/** Says what an answer other than 2xx means. */
function read(answer) {
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  if ([401, 403].includes(status)) throw Fault.misconfigured('the gateway does not accept the key');
  if (![400, 402, 422].includes(status)) throw Fault.unavailable(`the gateway answered ${status}`);
  throw refusal(answer.json({ code: 'string' }).code);
}

/** The gateway's codes, not its words: those may name the number. */
function refusal(code) {
  switch (code) {
    case 'bad_number':
      return Fault.invalid('to', 'the gateway does not take the number');
    case 'opted_out':
      return Fault.refused('opted-out', 'the owner wants no messages');
    case 'bad_sender':
      return Fault.misconfigured('the gateway does not take the sender');
    case 'no_credit':
      return Fault.unavailable('the account has no credit').withCode('no-credit');
    default:
      return Fault.other('the gateway refused the message');
  }
}
