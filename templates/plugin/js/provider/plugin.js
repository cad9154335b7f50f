// A payment provider: hosted checkout, verification and signed webhooks.

import { Fault, http, settings, vault } from 'tollhouse-plugin';

/**
 * Unknown statuses are pending: they prove neither success nor failure.
 *
 * @type {Map<string, import('tollhouse-plugin').PaymentStatus>}
 */
const STATUS = new Map([['paid', 'success'], ['declined', 'failed'], ['refunded', 'reversed']]);

/** @type {import('tollhouse-plugin').Checkout} */
export const checkout = {
  start({ serviceRef, amount, email, successUrl, metadata }) {
    const response = send(
      http.post(settings.url('base_url', '/payments')).json({
        reference: serviceRef,
        amount: amount.minor,
        currency: amount.currency,
        email,
        return_url: successUrl,
        metadata: JSON.parse(metadata),
      }),
    );
    const { url } = response.json({ url: 'string' });
    return { url, serviceRef, raw: response.text() };
  },
};

/** @type {import('tollhouse-plugin').Verification} */
export const verification = {
  verify(serviceRef) {
    const response = send(http.get(settings.url('base_url', `/payments/${http.encode(serviceRef)}`)));
    const payment = response.json({ id: 'string', status: 'string', amount: 'number', currency: 'string' });
    return {
      status: STATUS.get(payment.status) ?? 'pending',
      serviceRef,
      transactionId: payment.id,
      amount: { minor: payment.amount, currency: payment.currency },
      channel: 'card',
      message: '',
      metadata: payment.metadata ? JSON.stringify(payment.metadata) : null,
      raw: response.text(),
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
  const response = request.bearer(vault.secret('api_key')).send();
  const { status } = response;
  if (status >= 200 && status < 300) return response;
  if ([401, 403].includes(status)) throw Fault.misconfigured('the provider does not accept the key');
  if ([400, 404, 409, 422].includes(status)) throw refusal(response);
  throw Fault.unavailable(`the provider returned ${status}`);
}

/** Only the provider itself can refuse: an error page from an intermediary counts as an outage. */
function refusal(response) {
  const { code, message } = response.json({ code: 'string', message: 'string' });
  if (code === 'no_such_payment') return Fault.notFound('the provider has no such payment');
  return Fault.refused(code === 'reference_taken' ? 'duplicate-reference' : code, message);
}
