// Signed events.

import { Webhook } from "standardwebhooks";

import type { webhooks } from "./schema.js";

type Kind = keyof webhooks;
type Body<K extends Kind> =
  webhooks[K]["post"]["requestBody"]["content"]["application/json"];

/** An event; `event` determines the type of `data`. Ignore kinds that you do not handle. */
export type WebhookEvent = { [K in Kind]: Omit<Body<K>, "event"> & { event: K } }[Kind];

/** The headers of a request of `fetch`, or of Node.js `http` and frameworks that build on it. */
export type EventHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Verifies signature and age of an event, and returns it. `rawBody` is the body as received: if it
 * is parsed and serialized again, the signature does not match.
 *
 * @throws WebhookVerificationError if the event is not authentic
 */
export function verifyEvent(
  secret: string,
  headers: EventHeaders,
  rawBody: string | Buffer,
): WebhookEvent {
  const entries = headers instanceof Headers ? headers.entries() : Object.entries(headers);
  const single: Record<string, string> = {};
  for (const [name, value] of entries) if (typeof value === "string") single[name] = value;
  return new Webhook(secret).verify(rawBody, single) as WebhookEvent;
}
