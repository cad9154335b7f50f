import type { Fault as WireFault, FaultCategory } from './contract.d.ts';

export type * from './contract.d.ts';

/** The cause of a rejected payment. */
export type Cause =
  | 'amount-step'
  | 'below-minimum'
  | 'above-maximum'
  | 'unsupported-currency'
  | 'unsupported-channel'
  | 'unsupported-number'
  | 'insufficient-funds'
  | 'payer-limit'
  | 'payer-busy'
  | 'account-restricted';

/** The fault of a call: throw it. It is not an `Error`, which would trap the component. */
export class Fault implements WireFault {
  category: FaultCategory;
  code: string;
  /** Shortened, and without words that look like personal data. */
  message: string;
  retryable: boolean;
  details: [string, string][];
  /** `invalid`: the request cannot be served as given, because of `field`. */
  static invalid(field: string, message: string): Fault;
  /** `refused`: the upstream refused the request. */
  static refused(code: string, message: string): Fault;
  /** `not-found`: the upstream does not have the requested object. */
  static notFound(message: string): Fault;
  /** `unavailable`: the upstream is out of order; the same call may succeed later. */
  static unavailable(message: string): Fault;
  /** `misconfigured`: a setting or a secret is missing or wrong. */
  static misconfigured(message: string): Fault;
  /** `other`: any other fault. */
  static other(message: string): Fault;
  /** Sets the code: the upstream's own, or one of the contract's. */
  withCode(code: string): this;
  /** Adds a detail, which must never be a secret or personal data. */
  withDetail(name: string, value: string): this;
  /** Adds the cause of a rejected payment, for which the host composes the message to clients. */
  withCause(cause: Cause): this;
  /** Adds the limit that an amount violates, in the currency's minor unit. */
  withLimit(minor: number | bigint): this;
  /**
   * True for `invalid`, `refused` and `not-found`: the host treats the operation as not executed.
   */
  get isRefusal(): boolean;
  /** The request field at fault, if the fault names one. */
  get field(): string | undefined;
}

/** Required fields and their `typeof`. */
type Shape = Record<string, 'string' | 'number' | 'boolean' | 'object'>;

/**
 * HTTP requests through the host: over HTTPS, to granted hosts only, without following redirects.
 */
export namespace http {
  /**
   * An HTTP request. Header values and the body may contain placeholders from `vault`; the URL must
   * not.
   */
  class Request {
    /** Creates a request with any method. */
    constructor(method: string, url: string);
    /** Adds a header. */
    header(name: string, value: string): this;
    /** Adds the header `authorization: Bearer ...`, usually with a placeholder. */
    bearer(token: string): this;
    /** Adds the header `authorization: Basic ...` with the result of `vault.basic`. */
    basic(credentials: string): this;
    /** Sets the body: bytes or a string. */
    body(body: string | Uint8Array): this;
    /** Sets a JSON body and its content type. */
    json(value: unknown): this;
    /**
     * Sets the body of an HTML form and its content type. Do not put a secret's placeholder in it:
     * the secret's value would not be percent-encoded.
     */
    form(fields: Record<string, string>): this;
    /** Sets the timeout. The host caps it at the remaining time of the call. */
    timeoutMs(timeoutMs: number): this;
    /**
     * Sends the request and returns the response, whatever its status.
     *
     * @throws {Fault} `unavailable` with the code `timeout`, `connect` or `cut`, or `misconfigured`
     *   if the request is not permitted.
     */
    send(): Response;
  }
  /** An HTTP response. */
  class Response {
    constructor(status: number, headers: [string, string][], body: Uint8Array);
    status: number;
    headers: [string, string][];
    body: Uint8Array;
    /** Returns the first header of this name, ignoring case. */
    header(name: string): string | undefined;
    /** Returns the body as text, with invalid UTF-8 replaced by U+FFFD. */
    text(): string;
    /**
     * Returns the body as a JSON object. `shape` lists required fields and their `typeof`.
     *
     * @throws {Fault} `unavailable`, code `unexpected-answer`, for any other body.
     */
    json(shape?: Shape): any;
    /**
     * Returns the fault for an unexpected body. It never quotes the body, which may contain
     * personal data.
     */
    unexpected(field?: string): Fault;
  }
  /** Creates a GET request. */
  function get(url: string): Request;
  /** Creates a POST request. */
  function post(url: string): Request;
  /** Creates a PUT request. */
  function put(url: string): Request;
  /** Creates a DELETE request. */
  function del(url: string): Request;
  /** Returns the first header of this name, ignoring case. */
  function header(headers: [string, string][], name: string): string | undefined;
  /** Joins `base` and `path` with exactly one slash. */
  function join(base: string, path: string): string;
  /**
   * Percent-encodes a text as one path segment or query value: all bytes except ASCII letters,
   * digits and `-._~`.
   */
  function encode(text: string): string;
}

/** Settings of this plugin and provider account, set by the operator. They are not secret. */
export namespace settings {
  /** Returns a setting, the manifest's default, or else `fallback`. */
  function get(name: string, fallback: string): string;
  /** Returns a setting, or the manifest's default. */
  function get(name: string): string | undefined;
  /** Returns a required setting, or throws `misconfigured` if it is absent or empty. */
  function required(name: string): string;
  /** Returns the base URL in a setting, joined to `path` by one slash. */
  function url(name: string, path: string): string;
}

/**
 * The state that the host stores for a plugin about a payment or refund, as JSON. The interfaces
 * `sessions` and `session-refunds` return and receive it.
 */
export namespace state {
  /** Encodes a state, or the data of a notification. The result may have at most 4 KiB. */
  function encode(state: unknown): Uint8Array;
  /** Decodes a state. Returns `undefined` if there is none, or if it is not JSON. */
  function decode(bytes: Uint8Array | null | undefined): any;
}

/**
 * Operations on secrets, which never enter the sandbox. Names are those of the manifest's
 * `secrets`.
 */
export namespace vault {
  /**
   * Returns a placeholder for a secret, valid for this call only. Put it where the manifest binds
   * the secret: in a header value or the body.
   */
  function secret(name: string): string;
  /**
   * Returns a placeholder for the credentials of HTTP basic authentication, without the word
   * "Basic". `password` names a secret; `user` names a secret or a setting.
   */
  function basic(user: string, password: string): string;
  /** The name of a step, or a pair of it and the name of a secret or setting. */
  type Step =
    | 'base64'
    | 'base64url'
    | 'hex'
    | 'sha256'
    | 'sha512'
    | ['hmac-sha256' | 'hmac-sha512' | 'rsa-sha256' | 'rsa-encrypt', string];
  /**
   * Applies the steps to a template and returns a placeholder for the result, for upstreams that
   * require a secret in another form. Placeholders in the template stand for their values; the
   * result may be sent where all of its secrets may be. The result must be text: end with an
   * encoding. The signature of a JWT is
   * `transform(token, ['rsa-sha256', 'private_key'], 'base64url')`.
   */
  function transform(template: string | Uint8Array, ...steps: Step[]): string;
  /**
   * Computes the HMAC of bytes or a string under a secret. The algorithm is "sha256" or "sha512".
   */
  function hmac(algorithm: string, secret: string, data: string | Uint8Array): Uint8Array;
  /** Returns whether bytes or a string equal the secret, in constant time. */
  function matches(secret: string, candidate: string | Uint8Array): boolean;
  /** Returns whether `signature` is the HMAC of `data` in hexadecimal, in constant time. */
  function signedHex(algorithm: string, secret: string, data: string | Uint8Array, signature: string): boolean;
  /** Returns whether `signature` is the HMAC of `data` in base64, in constant time. */
  function signedBase64(algorithm: string, secret: string, data: string | Uint8Array, signature: string): boolean;
}

/**
 * A cache of short-lived values, for example access tokens. Each host keeps it in memory, per
 * component and account.
 */
export namespace cache {
  /** Returns a cached value unless it has expired. */
  function get(key: string): string | undefined;
  /** Caches a value for at most `ttlSeconds`. */
  function put(key: string, value: string, ttlSeconds: number): void;
}

/** Log lines for operators. They must never contain a secret or personal data. */
export namespace log {
  /** Logs details that help the plugin's author to debug. */
  function debug(message: string): void;
  /** Logs a noteworthy event. */
  function info(message: string): void;
  /** Logs a problem that may need attention. */
  function warn(message: string): void;
  /** Logs a problem that an operator must resolve. */
  function error(message: string): void;
}
