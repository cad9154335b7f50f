// A payment provider with push payments: the payer confirms on a phone.

import { Fault, http, settings, state, vault } from 'tollhouse-plugin';

/**
 * Unknown statuses are pending: they prove neither success nor failure.
 *
 * @type {Map<string, import('tollhouse-plugin').PaymentStatus>}
 */
const STATUS = new Map([['paid', 'success'], ['declined', 'failed'], ['expired', 'failed'], ['refunded', 'reversed']]);

/** Decoding a longer body would exceed the CPU budget. */
const MAX_CALLBACK_BYTES = 64 << 10;

/**
 * The state of a session is the provider's id, without which a push cannot be queried.
 *
 * @type {import('tollhouse-plugin').Sessions}
 */
export const sessions = {
  start({ serviceRef, amount, phone, narration, notificationUrl }) {
    const response = send(
      http.post(settings.url('base_url', '/pushes')).json({
        reference: serviceRef,
        amount: amount.minor,
        currency: amount.currency,
        phone,
        description: narration,
        callback_url: notificationUrl,
      }),
    );
    const { id } = response.json({ id: 'string' });
    return {
      next: { tag: 'prompt', val: 'Enter your PIN on your phone to confirm the payment.' },
      serviceRef,
      state: state.encode({ id }),
      raw: response.text(),
    };
  },

  verify({ serviceRef, state: started, notified }) {
    // If the response of `start` was lost, only a callback has the id.
    const { id } = state.decode(started) ?? state.decode(notified) ?? {};
    if (id === undefined) throw Fault.notFound("the provider's id of the push is not known");
    const response = send(http.get(settings.url('base_url', `/pushes/${http.encode(id)}`)));
    const push = response.json({ reference: 'string', status: 'string', amount: 'number', currency: 'string' });
    if (push.reference !== serviceRef) throw response.unexpected('reference');
    return {
      status: STATUS.get(push.status) ?? 'pending',
      serviceRef,
      transactionId: id,
      amount: { minor: push.amount, currency: push.currency },
      channel: 'mobile_money',
      message: '',
      raw: response.text(),
    };
  },

  // Callbacks are not signed: only the id is read from them, and `verify` checks that the push with
  // this id belongs to this payment.
  receive({ serviceRef }, _headers, body) {
    const { id, reference } = read(body);
    if (typeof id !== 'string') throw Fault.invalid('body', 'the body is not a callback of the provider');
    if (reference !== serviceRef) throw Fault.invalid('body', 'the callback is that of another push');
    return state.encode({ id });
  },
};

function read(body) {
  if (body.length > MAX_CALLBACK_BYTES) return {};
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
  if (code === 'no_such_push') return Fault.notFound('the provider has no such push');
  if (code === 'unsupported_phone') return Fault.invalid('phone', message).withCause('unsupported-number');
  return Fault.refused(code === 'reference_taken' ? 'duplicate-reference' : code, message);
}
