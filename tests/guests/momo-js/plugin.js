// MTN MoMo: a payment that the payer approves on the phone (product Collection), and its refund
// (product Disbursement).
//
// The reference of a payment is its `X-Reference-Id`, so the plugin needs no state. Callbacks are
// not signed and contain nothing that a query does not report.

import { Fault, cache, http, settings, vault } from 'tollhouse-plugin';

const PROMPT = 'Approve the payment with your MoMo PIN on your phone.';
/** Decimals of each currency in ISO 4217. */
const DECIMALS = new Map([['EUR', 2], ['GHS', 2], ['RWF', 0], ['UGX', 0], ['XOF', 0]]);
/**
 * The final statuses. All others (PENDING, CREATED, ONGOING, unknown words) are pending.
 *
 * @type {Map<string, import('tollhouse-plugin').PaymentStatus>}
 */
const STATUS = new Map([['SUCCESSFUL', 'success'], ['FAILED', 'failed']]);
/** @type {Map<string, import('tollhouse-plugin').SessionRefundStatus>} */
const REFUND_STATUS = new Map([['SUCCESSFUL', 'done'], ['FAILED', 'failed']]);
/** MoMo rejects longer texts. */
const NOTE_CHARS = 160;
const MAX_CALLBACK_BYTES = 64 << 10;
const EXPIRY_MARGIN_SECONDS = 60;
/** The host's maximum for a cached value. */
const MAX_CACHE_SECONDS = 86_400;
/** The plugin stores no data for payments and refunds. */
const NO_DATA = new Uint8Array();

/**
 * Reasons for which MoMo rejects a request, or a payment fails later: the message of a failed
 * payment, and the cause of a rejected request with the field at fault.
 *
 * @type {Record<string, { message: string, cause?: import('tollhouse-plugin').Cause, field?: string }>}
 */
const REASONS = {
  PAYER_NOT_FOUND: { message: 'the phone number has no MoMo account', cause: 'unsupported-number', field: 'phone' },
  SENDER_ACCOUNT_NOT_ACTIVE: { message: "the payer's MoMo account is not active", cause: 'unsupported-number', field: 'phone' },
  NOT_ENOUGH_FUNDS: { message: "the payer's balance is insufficient", cause: 'insufficient-funds' },
  PAYER_LIMIT_REACHED: { message: 'the payer has reached a limit', cause: 'payer-limit' },
  PAYER_ONGOING: { message: 'the payer has not answered another request yet', cause: 'payer-busy' },
  PAYER_DELAYED: { message: 'the payer has not answered another request yet', cause: 'payer-busy' },
  INVALID_CURRENCY: { message: 'MoMo does not support the currency', cause: 'unsupported-currency', field: 'currency' },
  NOT_ALLOWED: { message: 'MoMo does not permit the payment', cause: 'account-restricted' },
  PAYEE_NOT_FOUND: { message: 'MoMo does not permit the payment', cause: 'account-restricted' },
  PAYEE_NOT_ALLOWED_TO_RECEIVE: { message: 'MoMo does not permit the payment', cause: 'account-restricted' },
  APPROVAL_REJECTED: { message: 'the payer rejected the payment' },
  PAYMENT_NOT_APPROVED: { message: 'the payer did not approve the payment' },
  TRANSACTION_CANCELED: { message: 'the payment was canceled' },
  EXPIRED: { message: 'the payer did not approve the payment in time' },
  COULD_NOT_PERFORM_TRANSACTION: { message: 'the payer did not approve the payment in time' },
  INTERNAL_PROCESSING_ERROR: { message: 'MoMo could not process the payment' },
  SERVICE_UNAVAILABLE: { message: 'MoMo could not process the payment' },
};
/** Codes of errors that the operator must resolve, whatever their HTTP status. */
const MISCONFIGURED = new Map([
  ['NOT_ALLOWED_TARGET_ENVIRONMENT', 'the setting target_environment is not that of the account'],
  ['INVALID_CALLBACK_URL_HOST', "the host of public_url is not the API user's callback host"],
]);

/** @type {import('tollhouse-plugin').Sessions} */
export const sessions = {
  start({ serviceRef, amount, phone, narration, notificationUrl }) {
    const order = {
      amount: major(amount),
      currency: amount.currency,
      externalId: serviceRef,
      payer: { partyIdType: 'MSISDN', partyId: msisdn(phone) },
    };
    const body = { ...order, payerMessage: note(narration), payeeNote: note(narration) };
    const headers = { 'X-Reference-Id': serviceRef, 'X-Callback-Url': notificationUrl };
    const response = send('collection', 'POST', '/collection/v1_0/requesttopay', { headers, body });
    if (isDuplicate(response)) requireSame(order);
    else if (response.status !== 202) throw rejection(response, paymentFault);
    return { next: { tag: 'prompt', val: PROMPT }, serviceRef, state: NO_DATA, raw: '{}' };
  },

  verify({ serviceRef, transactionId }) {
    const found = find(serviceRef);
    if (found === undefined) throw Fault.notFound('MoMo has no such payment');
    const { payment, response } = found;
    const { financialTransactionId, currency } = payment;
    return {
      status: STATUS.get(payment.status) ?? 'pending',
      serviceRef,
      transactionId: String(financialTransactionId ?? transactionId),
      amount: { minor: minor(payment, response), currency },
      channel: 'mobile_money',
      message: describe(payment.reason),
      raw: response.text(),
    };
  },

  receive({ serviceRef }, _headers, body) {
    return receive(serviceRef, body);
  },
};

/** @type {import('tollhouse-plugin').SessionRefunds} */
export const sessionRefunds = {
  start({ session, refundRef, amount, reason, notificationUrl }) {
    const body = {
      amount: major(amount),
      currency: amount.currency,
      externalId: refundRef,
      payerMessage: note(reason),
      payeeNote: note(reason),
      referenceIdToRefund: session.serviceRef,
    };
    const headers = { 'X-Reference-Id': refundRef, 'X-Callback-Url': notificationUrl };
    const response = send('disbursement', 'POST', '/disbursement/v1_0/refund', { headers, body });
    // The host generates the reference, so a duplicate is an earlier request for the same refund.
    if (isDuplicate(response)) {
      return fetchRefund(refundRef, Fault.unavailable('MoMo has the refund, but does not find it'));
    }
    if (response.status !== 202) throw rejection(response, refundFault);
    return { status: 'pending', providerId: refundRef, message: '', raw: '{}', state: NO_DATA };
  },

  check({ refundRef }) {
    return fetchRefund(refundRef, Fault.notFound('MoMo has no such refund'));
  },

  receive({ refundRef }, _headers, body) {
    return receive(refundRef, body);
  },
};

/** Returns the payment with its response; `undefined` if MoMo does not know the reference. */
function find(serviceRef) {
  const path = `/collection/v1_0/requesttopay/${http.encode(serviceRef)}`;
  const response = send('collection', 'GET', path);
  if (isUnknown(response)) return undefined;
  if (response.status !== 200) throw rejection(response);
  return { payment: response.json({ status: 'string', currency: 'string' }), response };
}

/**
 * Accepts a duplicate only if it is the ordered payment and its payer can still approve it: then an
 * earlier request arrived and its response was lost, and a session under another reference would
 * prompt the payer a second time. Any other payment is refused as a duplicate, because it may be
 * another system's.
 */
function requireSame(order) {
  const found = find(order.externalId);
  if (found === undefined) throw Fault.unavailable('MoMo has the reference, but does not find it');
  const { payment, response } = found;
  const isSame =
    payment.externalId === order.externalId &&
    payment.currency === order.currency &&
    payment.payer?.partyId === order.payer.partyId &&
    minor(payment, response) === minor(order, response);
  if (!isSame || STATUS.has(payment.status)) {
    throw Fault.refused('duplicate-reference', 'MoMo has another payment with this reference');
  }
}

/** Returns the refund; throws `missing` if MoMo does not know it. */
function fetchRefund(refundRef, missing) {
  const response = send('disbursement', 'GET', `/disbursement/v1_0/refund/${http.encode(refundRef)}`);
  if (isUnknown(response)) throw missing;
  if (response.status !== 200) throw queryFault(response);
  const { status, reason } = response.json({ status: 'string' });
  return {
    status: REFUND_STATUS.get(status) ?? 'pending',
    providerId: refundRef,
    message: codeOf(reason),
    raw: response.text(),
    state: NO_DATA,
  };
}

/** Accepts a callback. It is not signed, so only the query that follows decides. */
function receive(reference, body) {
  const { externalId } = readNotification(body);
  if (externalId !== undefined && externalId !== reference) {
    throw Fault.invalid('body', 'the callback is that of another reference');
  }
  return NO_DATA;
}

function readNotification(body) {
  if (body.length > MAX_CALLBACK_BYTES) throw Fault.invalid('body', 'the body is longer than a callback of MoMo');
  try {
    return new http.Response(200, [], body).json();
  } catch {
    throw Fault.invalid('body', 'the body is not a callback of MoMo');
  }
}

/**
 * Sends a request with the access token of a product. If a cached token is rejected, the request
 * was not executed, and is repeated once with a new token.
 *
 * @param {string} product
 * @param {string} method
 * @param {string} path
 * @param {{ headers?: Record<string, string>, body?: unknown }} content
 */
function send(product, method, path, { headers = {}, body } = {}) {
  const attempt = (token) => {
    const request = new http.Request(method, settings.url('base_url', path))
      .bearer(token)
      .header('Ocp-Apim-Subscription-Key', vault.secret(secretName(product, 'subscription_key')))
      .header('X-Target-Environment', settings.required('target_environment'));
    for (const [name, value] of Object.entries(headers)) request.header(name, value);
    return (body === undefined ? request : request.json(body)).send();
  };
  const cached = cache.get(tokenKey(product));
  const response = attempt(cached ?? logIn(product));
  return response.status === 401 && cached !== undefined ? attempt(logIn(product)) : response;
}

const tokenKey = (product) => `${product}_token`;

/** Obtains an access token and caches it. */
function logIn(product) {
  const [user, key, subscription] = ['api_user', 'api_key', 'subscription_key'].map((name) => secretName(product, name));
  const response = http
    .post(settings.url('base_url', `/${product}/token/`))
    .basic(vault.basic(user, key))
    .header('Ocp-Apim-Subscription-Key', vault.secret(subscription))
    .body('')
    .send();
  if ([400, 401, 403].includes(response.status)) throw refusedKeys(response);
  if (response.status !== 200) throw queryFault(response);
  const { access_token, expires_in } = response.json({ access_token: 'string' });
  const seconds = Math.trunc(Number(expires_in)) - EXPIRY_MARGIN_SECONDS;
  if (seconds > 0) cache.put(tokenKey(product), access_token, Math.min(seconds, MAX_CACHE_SECONDS));
  return access_token;
}

/** Returns the name of a product's secret. Without keys of its own, Disbursement has Collection's. */
function secretName(product, name) {
  const own = `${product}_${name}`;
  return product !== 'collection' && isSet(own) ? own : name;
}

function isSet(secret) {
  try {
    vault.secret(secret);
    return true;
  } catch (fault) {
    if (!(fault instanceof Fault) || fault.category !== 'misconfigured') throw fault;
    return false;
  }
}

/** Returns the code and message of MoMo's error; both are empty for any other body. */
function readError(response) {
  try {
    const { code, message } = response.json({ code: 'string' });
    return { code, message: String(message ?? '') };
  } catch {
    return { code: '', message: '' };
  }
}

const isDuplicate = (response) => response.status === 409 && readError(response).code === 'RESOURCE_ALREADY_EXIST';
const isUnknown = (response) => response.status === 404 && readError(response).code === 'RESOURCE_NOT_FOUND';

/**
 * Returns the fault of an unsuccessful response. `known` returns the fault of a code with a meaning
 * of its own. A body without a code may come from an intermediary, so the outcome is unknown.
 *
 * @param {http.Response} response
 * @param {(code: string, message: string) => Fault | undefined} known
 */
function rejection(response, known = () => undefined) {
  const { status } = response;
  const { code, message } = readError(response);
  const misconfigured = MISCONFIGURED.get(code);
  if (misconfigured !== undefined) return Fault.misconfigured(misconfigured).withCode(code);
  const fault = known(code, message);
  if (fault !== undefined) return fault;
  if (status === 401 || status === 403) return refusedKeys(response);
  if (code !== '' && [400, 404, 409].includes(status)) return Fault.refused(code, message);
  return Fault.unavailable(`MoMo returned ${status}`).withCode(code || `http-${status}`);
}

/** Returns the fault of a failed query or login. Its refusal is not that of a payment or refund. */
function queryFault(response) {
  const fault = rejection(response);
  return fault.isRefusal ? Fault.unavailable(fault.message).withCode(fault.code) : fault;
}

function refusedKeys({ status }) {
  return Fault.misconfigured('MoMo does not accept API user, API key or subscription key').withCode(`http-${status}`);
}

/** Returns the fault of a request to pay that MoMo rejects. */
function paymentFault(code, message) {
  const { cause, field } = reasonOf(code) ?? {};
  if (cause === undefined) return undefined;
  const fault = field === undefined ? Fault.refused(code, message) : Fault.invalid(field, message).withCode(code);
  return fault.withCause(cause);
}

/** Returns the fault of a refund that MoMo rejects, without a cause: only payments have one. */
function refundFault(code, message) {
  return reasonOf(code)?.cause === undefined ? undefined : Fault.refused(code, message);
}

const reasonOf = (code) => (Object.hasOwn(REASONS, code) ? REASONS[code] : undefined);

/** Returns the code of a reason, which is a string or an object. */
const codeOf = (reason) => String((typeof reason === 'object' ? reason?.code : reason) ?? '');

function describe(reason) {
  const code = codeOf(reason);
  return reasonOf(code)?.message ?? code;
}

/** Returns the number without its plus sign. */
function msisdn(phone) {
  if (!/^\+[1-9][0-9]{7,14}$/.test(phone ?? '')) {
    throw Fault.invalid('phone', 'the phone number is not in E.164').withCause('unsupported-number');
  }
  return phone.slice(1);
}

/** Returns an amount in the major unit, with all decimals of the currency. */
function major({ minor, currency }) {
  const decimals = DECIMALS.get(currency);
  if (decimals === undefined) {
    throw Fault.invalid('currency', 'MoMo does not support the currency').withCause('unsupported-currency');
  }
  if (decimals === 0) return String(minor);
  const digits = String(minor).padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Returns the amount of a payment in the minor unit. */
function minor({ amount, currency }, response) {
  const decimals = DECIMALS.get(currency);
  if (decimals === undefined) throw response.unexpected('currency');
  const [, whole, fraction = ''] = /^([0-9]+)(?:\.([0-9]+))?$/.exec(String(amount)) ?? [];
  const minor = Number(`${whole}${fraction.slice(0, decimals).padEnd(decimals, '0')}`);
  if (!Number.isSafeInteger(minor) || /[1-9]/.test(fraction.slice(decimals))) throw response.unexpected('amount');
  return minor;
}

/** Returns a text without the characters that MoMo rejects, such as apostrophes. */
function note(text) {
  const plain = text.replace(/[^A-Za-z0-9 .,-]/g, ' ').replace(/ +/g, ' ').trim().slice(0, NOTE_CHARS);
  return plain === '' ? 'Payment' : plain;
}
