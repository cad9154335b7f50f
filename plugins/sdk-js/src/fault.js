// Short ways to say why a call could not be answered.

import * as text from './text.js';

/**
 * Why a call could not be answered: throw it. It is no `Error`, since the component ends with a trap when one of those leaves it.
 * Messages go through `text.short`, so that an upstream's own words may be handed on.
 */
export class Fault {
  constructor(category, message) {
    this.category = category;
    this.code = '';
    this.message = text.short(message);
    this.retryable = category === 'unavailable';
    this.details = [];
  }

  /** The request as given cannot be served; `field` is to blame. */
  static invalid(field, message) {
    return new Fault('invalid', message).withDetail('field', field);
  }

  /** The upstream understood and said no. */
  static refused(code, message) {
    return new Fault('refused', message).withCode(code);
  }

  /** The upstream knows of no such thing. */
  static notFound(message) {
    return new Fault('not-found', message);
  }

  /** The upstream is out of order; the same call may succeed later. */
  static unavailable(message) {
    return new Fault('unavailable', message);
  }

  /** A setting or a secret is missing or wrong. */
  static misconfigured(message) {
    return new Fault('misconfigured', message);
  }

  /** None of the above. */
  static other(message) {
    return new Fault('other', message);
  }

  /** The same with a code: the upstream's or one of the contract's. */
  withCode(code) {
    return Object.assign(this, { code: text.code(code) });
  }

  /** The same with one more detail. Never a secret or personal data. */
  withDetail(name, value) {
    this.details.push([name, value]);
    return this;
  }

  /** Whether it says no. The host takes what was asked for as not done then. */
  get isRefusal() {
    return ['invalid', 'refused', 'not-found'].includes(this.category);
  }

  /** The field of the request that is to blame, if one was named. */
  get field() {
    return this.details.find(([name]) => name === 'field')?.[1];
  }
}

/** Calls the host, whose faults arrive as an error's payload. */
export function ask(call) {
  try {
    return call();
  } catch (error) {
    if (error?.payload?.category === undefined) throw error;
    throw Object.assign(new Fault(error.payload.category, ''), error.payload);
  }
}
