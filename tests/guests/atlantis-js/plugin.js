// An example of a plugin in JavaScript: a country whose register requires an access token.

import { Fault, cache, http, log, settings, vault } from 'tollhouse-plugin';

/** @type {import('tollhouse-plugin').IdentityLookup} */
export const identityLookup = {
  lookup({ identifier }) {
    const url = settings.url('base_url', `/citizens/${http.encode(identifier)}`);
    const response = send(http.get(url).bearer(token()));
    if (response.status === 404) throw Fault.notFound('no such citizen');
    if (response.status === 422) throw Fault.invalid('number', 'the register rejected the number');
    if (response.status === 451) throw Fault.refused('sealed', 'the entry is sealed');
    const { name, born, email, phone } = read(response, { name: 'string', born: 'string' });
    const [year, month, day] = born.split('-');
    const details = { name, date_of_birth: `${day}/${month}/${year}` };
    return { details: JSON.stringify(details), email, phone };
  },
};

/** Returns the access token, which the host caches for its lifetime. */
function token() {
  const kept = cache.get('token');
  if (kept !== undefined) return kept;
  const url = settings.url('base_url', '/tokens');
  const response = send(http.post(url).basic(vault.basic('client', 'key')).json({ scope: 'citizens' }));
  const { token, expires_in } = read(response, { token: 'string', expires_in: 'number' });
  cache.put('token', token, expires_in);
  return token;
}

/**
 * Sends a request with a header that differs in each call, and is the same in each run of a call.
 */
const send = (request) => request.header('x-mark', `${Date.now()} ${Math.random()}`).send();

function read(response, shape) {
  if (response.status === 200) return response.json(shape);
  if (response.status === 401) throw Fault.misconfigured('the register does not accept the key');
  if (response.status === 402) log.error('the account at the register has no credit');
  throw Fault.unavailable(`the register returned ${response.status}`);
}
