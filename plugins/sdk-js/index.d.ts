import type { Fault as WireFault, FaultCategory } from './contract.d.ts';

export type * from './contract.d.ts';

/** Why a call could not be answered: throw it. It is no `Error`, which would end the component with a trap. */
export class Fault implements WireFault {
  category: FaultCategory;
  code: string;
  message: string;
  retryable: boolean;
  details: [string, string][];
  static invalid(field: string, message: string): Fault;
  static refused(code: string, message: string): Fault;
  static notFound(message: string): Fault;
  static unavailable(message: string): Fault;
  static misconfigured(message: string): Fault;
  static other(message: string): Fault;
  withCode(code: string): this;
  withDetail(name: string, value: string): this;
  get isRefusal(): boolean;
  get field(): string | undefined;
}

/** What `typeof` says of a field that must be there. */
type Shape = Record<string, 'string' | 'number' | 'boolean' | 'object'>;

export namespace http {
  class Request {
    constructor(method: string, url: string);
    header(name: string, value: string): this;
    bearer(token: string): this;
    basic(credentials: string): this;
    body(body: string | Uint8Array): this;
    json(value: unknown): this;
    form(fields: Record<string, string>): this;
    timeoutMs(timeoutMs: number): this;
    send(): Response;
  }
  class Response {
    constructor(status: number, headers: [string, string][], body: Uint8Array);
    status: number;
    headers: [string, string][];
    body: Uint8Array;
    header(name: string): string | undefined;
    text(): string;
    json(shape?: Shape): any;
    unexpected(field?: string): Fault;
  }
  function get(url: string): Request;
  function post(url: string): Request;
  function put(url: string): Request;
  function del(url: string): Request;
  function header(headers: [string, string][], name: string): string | undefined;
  function join(base: string, path: string): string;
  function encode(text: string): string;
}

export namespace settings {
  function get(name: string, fallback: string): string;
  function get(name: string): string | undefined;
  function required(name: string): string;
  function url(name: string, path: string): string;
}

export namespace vault {
  function secret(name: string): string;
  function basic(user: string, password: string): string;
  function hmac(algorithm: string, secret: string, data: string | Uint8Array): Uint8Array;
  function matches(secret: string, candidate: string | Uint8Array): boolean;
  function signedHex(algorithm: string, secret: string, data: string | Uint8Array, signature: string): boolean;
  function signedBase64(algorithm: string, secret: string, data: string | Uint8Array, signature: string): boolean;
}

export namespace cache {
  function get(key: string): string | undefined;
  function put(key: string, value: string, ttlSeconds: number): void;
}

export namespace log {
  function debug(message: string): void;
  function info(message: string): void;
  function warn(message: string): void;
  function error(message: string): void;
}
