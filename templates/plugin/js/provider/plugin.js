// A payment provider: hosted checkout, verification and signed webhooks.

import { Fault, http, settings, vault } from 'tollhouse-plugin';

/** Unknown statuses are pending: they prove neither success nor failure. */
const STATUS = { paid: 'success', declined: 'failed', refunded: 'reversed' };

/** @type {import('tollhouse-plugin').Checkout} */
export const checkout = {
  start({ serviceRef, amount, email, successUrl, metadata }) {
    const answer = send(
      http.post(settings.url('base_url', '/payments')).json({
        reference: serviceRef,
        amount: amount.minor,
        currency: amount.currency,
        email,
        return_url: successUrl,
        metadata: JSON.parse(metadata),
      }),
    );
    const { url } = answer.json({ url: 'string' });
    return { url, serviceRef, raw: answer.text() };
  },
};

/** @type {import('tollhouse-plugin').Verification} */
export const verification = {
  verify(serviceRef) {
    const answer = send(http.get(settings.url('base_url', `/payments/${http.encode(serviceRef)}`)));
    const told = answer.json({ id: 'string', status: 'string', amount: 'number', currency: 'string' });
    return {
      status: STATUS[told.status] ?? 'pending',
      serviceRef,
      transactionId: told.id,
      amount: { minor: told.amount, currency: told.currency },
      channel: 'card',
      message: '',
      metadata: told.metadata ? JSON.stringify(told.metadata) : null,
      raw: answer.text(),
    };
  },
};

/** @type {import('tollhouse-plugin').Notifications} */
export const notifications = {
  parse(headers, body) {
    const signature = http.header(headers, 'x-signature') ?? '';
    if (!vault.signedHex('sha256', 'webhook_secret', body, signature)) throw { tag: 'unauthentic' };
    const { event, reference } = read(body);
    if (typeof event !== 'string' || typeof reference !== 'string') throw { tag: 'malformed', val: "not an event of the provider" };
    return [{ subject: 'payment', event, serviceRef: reference, transactionId: '' }];
  },
};

function read(body) {
  try {
    return new http.Response(200, [], body).json();
  } catch {
    return {};
  }
}

/** Sends a request with the account's key, and maps a status other than 2xx to a fault. */
function send(request) {
  const answer = request.bearer(vault.secret('api_key')).send();
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  if ([401, 403].includes(status)) throw Fault.misconfigured('the provider does not accept the key');
  if ([400, 404, 409, 422].includes(status)) throw refusal(answer);
  throw Fault.unavailable(`the provider returned ${status}`);
}

/** Only the provider itself can refuse: an error page from an intermediary counts as an outage. */
function refusal(answer) {
  const { code, message } = answer.json({ code: 'string', message: 'string' });
  if (code === 'no_such_payment') return Fault.notFound('the provider has no such payment');
  return Fault.refused(code === 'reference_taken' ? 'duplicate-reference' : code, message);
}
