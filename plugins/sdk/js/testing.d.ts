import type { Fault as WireFault } from './contract.d.ts';

/** A request as egress would send it: placeholders are replaced. */
export interface Sent {
  method: string;
  url: string;
  headers: [string, string][];
  /** Empty if there is none. */
  body: string;
  timeoutMs: number | null;
  /** Returns the first header of this name, ignoring case. */
  header(name: string): string | undefined;
}

/**
 * The fake host of a plugin under test. Configure it, then install it.
 *
 * RSA is not computed: a signature is the text `rsa-sha256(KEY, DIGEST)`, with the name of the
 * secret and the SHA-256 of the data in hexadecimal; a ciphertext is `rsa-encrypt(KEY, DATA)`.
 */
export class FakeHost {
  /** All requests so far, in order, with placeholders replaced. */
  readonly requests: Sent[];
  /** Level and message. */
  readonly logs: [string, string][];
  /** Value and TTL in seconds, by key. */
  readonly cache: Map<string, [string, number]>;
  /** Sets a secret. Reading a secret that is not set is `misconfigured`. */
  secret(name: string, value: string): this;
  /** Sets a setting. */
  setting(name: string, value: string): this;
  /**
   * Loads a complete manifest, with an account of example values and the responses in its examples.
   */
  examples(manifest: object): this;
  /**
   * Adds a response to a request. `url` is the complete URL or its end, with or without the query.
   * A string is sent as is, any other body as JSON. Several responses to the same request are
   * returned in order; the last one repeats.
   */
  answer(method: string, url: string, status: number, body?: unknown): this;
  /** Fails a request with a fault of the host. */
  fault(method: string, url: string, fault: WireFault): this;
  /** Simulates a timeout: the request is sent, and no response arrives in time. */
  timeout(method: string, url: string): this;
  /** Simulates a connection failure. */
  noConnection(method: string, url: string): this;
  /** Simulates a connection that ends during the response. */
  cut(method: string, url: string): this;
  /** Makes this the current host, until another one is installed. */
  install(): this;
}

/** Returns headers and body of the manifest's example webhook. */
export function exampleNotification(manifest: object): [[string, string][], Uint8Array];
