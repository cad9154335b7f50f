import type { Fault as WireFault } from './contract.d.ts';

/** A request as egress would send it: placeholders are filled in. */
export interface Sent {
  method: string;
  url: string;
  headers: [string, string][];
  /** Empty when there is none. */
  body: string;
  timeoutMs: number | null;
  /** The first header of that name, in whatever case. */
  header(name: string): string | undefined;
}

/** What the plugin under test sees of the world. Make it, tell it, install it. */
export class FakeHost {
  readonly requests: Sent[];
  /** Level and message. */
  readonly logs: [string, string][];
  /** Value and seconds by key. */
  readonly cache: Map<string, [string, number]>;
  secret(name: string, value: string): this;
  setting(name: string, value: string): this;
  examples(manifest: object): this;
  answer(method: string, url: string, status: number, body?: unknown): this;
  fault(method: string, url: string, fault: WireFault): this;
  timeout(method: string, url: string): this;
  noConnection(method: string, url: string): this;
  cut(method: string, url: string): this;
  install(): this;
}

/** Headers and body of the manifest's example of a notification. */
export function exampleNotification(manifest: object): [[string, string][], Uint8Array];
