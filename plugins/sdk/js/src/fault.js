// Faults, and calls of host functions that may throw them.

import * as text from './text.js';

/**
 * The fault of a call: throw it. It is not an `Error`, which would trap the component.
 *
 * Messages pass through `text.short`, so a plugin may forward an upstream's message.
 */
export class Fault {
  constructor(category, message) {
    this.category = category;
    this.code = '';
    this.message = text.short(message);
    this.retryable = category === 'unavailable';
    this.details = [];
  }

  /** `invalid`: the request cannot be served as given, because of `field`. */
  static invalid(field, message) {
    return new Fault('invalid', message).withDetail('field', field);
  }

  /** `refused`: the upstream refused the request. */
  static refused(code, message) {
    return new Fault('refused', message).withCode(code);
  }

  /** `not-found`: the upstream does not have the requested object. */
  static notFound(message) {
    return new Fault('not-found', message);
  }

  /** `unavailable`: the upstream is out of order; the same call may succeed later. */
  static unavailable(message) {
    return new Fault('unavailable', message);
  }

  /** `misconfigured`: a setting or a secret is missing or wrong. */
  static misconfigured(message) {
    return new Fault('misconfigured', message);
  }

  /** `other`: any other fault. */
  static other(message) {
    return new Fault('other', message);
  }

  /** Sets the code: the upstream's own, or one of the contract's. */
  withCode(code) {
    return Object.assign(this, { code: text.code(code) });
  }

  /** Adds a detail, which must never be a secret or personal data. */
  withDetail(name, value) {
    this.details.push([name, value]);
    return this;
  }

  /** Adds the cause of a rejected payment, for which the host composes the message to clients. */
  withCause(cause) {
    return this.withDetail('cause', cause);
  }

  /** Adds the limit that an amount violates, in the currency's minor unit. */
  withLimit(minor) {
    return this.withDetail('limit', String(minor));
  }

  /**
   * Whether the category is `invalid`, `refused` or `not-found`: the host then treats the operation
   * as not executed.
   */
  get isRefusal() {
    return ['invalid', 'refused', 'not-found'].includes(this.category);
  }

  /** The request field at fault, if the fault names one. */
  get field() {
    return this.details.find(([name]) => name === 'field')?.[1];
  }
}

/**
 * Calls a host function. Its faults arrive as the payload of an error, and are thrown as a `Fault`.
 */
export function callHost(call) {
  try {
    return call();
  } catch (error) {
    if (error?.payload?.category === undefined) throw error;
    throw Object.assign(new Fault(error.payload.category, ''), error.payload);
  }
}
