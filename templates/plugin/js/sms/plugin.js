// An SMS gateway. Faults and log lines never contain the number or the text.

import { Fault, http, settings, vault } from 'tollhouse-plugin';

/** Short, because a person waits for the message. */
const TIMEOUT_MS = 10_000;

/** @type {import('tollhouse-plugin').Sms} */
export const sms = {
  send({ to, sender, text, reference }) {
    const from = sender || settings.get('sender', '');
    const response = http
      .post(settings.url('base_url', '/messages'))
      .bearer(vault.secret('api_key'))
      .timeoutMs(TIMEOUT_MS)
      .json({ to, from, text, reference })
      .send();
    const { id, state } = read(response).json({ id: 'string', state: 'string' });
    // HTTP success does not mean that the recipient was accepted.
    if (state !== 'accepted') throw Fault.other('the gateway did not accept the message');
    return id;
  },
};

/** Maps a status other than 2xx to a fault. */
function read(response) {
  const { status } = response;
  if (status >= 200 && status < 300) return response;
  if ([401, 403].includes(status)) throw Fault.misconfigured('the gateway does not accept the key');
  if (![400, 402, 422].includes(status)) throw Fault.unavailable(`the gateway returned ${status}`);
  throw refusal(response.json({ code: 'string' }).code);
}

/** Uses the gateway's codes and not its messages, which may contain the number. */
function refusal(code) {
  switch (code) {
    case 'bad_number':
      return Fault.invalid('to', 'the gateway rejected the number');
    case 'opted_out':
      return Fault.refused('opted-out', 'the recipient has opted out');
    case 'bad_sender':
      return Fault.misconfigured('the gateway rejected the sender');
    case 'no_credit':
      return Fault.unavailable('the account has no credit').withCode('no-credit');
    default:
      return Fault.other('the gateway refused the message');
  }
}
