// A register of citizens.

import { Fault, http, log, settings, vault } from 'tollhouse-plugin';

/** @type {import('tollhouse-plugin').IdentityLookup} */
export const identityLookup = {
  lookup({ identifier }) {
    const url = settings.url('base_url', `/citizens/${http.encode(identifier)}`);
    const response = http.get(url).bearer(vault.secret('api_key')).send();
    const citizen = read(response).json({ first_name: 'string', last_name: 'string', born: 'string' });
    const details = {
      first_name: citizen.first_name,
      last_name: citizen.last_name,
      date_of_birth: dayFirst(citizen.born),
      phone_number: citizen.phone ?? null,
    };
    return { details: JSON.stringify(details), phone: citizen.phone };
  },
};

/**
 * Maps a status other than 200 to a fault. Only the register itself can refuse: an error page from
 * an intermediary counts as an outage.
 */
function read(response) {
  const { status } = response;
  if (status === 200) return response;
  if ([401, 403].includes(status)) throw Fault.misconfigured('the register does not accept the key');
  if (![400, 402, 404, 422].includes(status)) throw Fault.unavailable(`the register returned ${status}`);
  throw refusal(response.json({ code: 'string' }).code);
}

function refusal(code) {
  switch (code) {
    case 'no_such_citizen':
      return Fault.notFound('no such citizen');
    case 'bad_number':
      return Fault.invalid('number', 'the register rejected the number');
    case 'sealed':
      return Fault.refused('sealed', 'the entry is sealed');
    case 'no_credit':
      log.error('the account at the register has no credit');
      return Fault.unavailable('no credit').withCode('no-credit');
    default:
      return Fault.other('the register refused the lookup').withCode(code);
  }
}

/** Converts 1990-12-10 to 10/12/1990, and anything else to null. */
function dayFirst(date) {
  const [, year, month, day] = date.match(/^(\d{4})-(\d{2})-(\d{2})$/) ?? [];
  return year === undefined ? null : `${day}/${month}/${year}`;
}
