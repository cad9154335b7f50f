// Client of the Tollhouse API. Its types are generated from the OpenAPI document: see README.md.

import createClient, {
  type Client,
  type ClientPathsWithMethod,
  type MaybeOptionalInit,
  type MethodResponse,
} from "openapi-fetch";

import type { components, paths } from "./schema.js";
import { send } from "./transport.js";

export { WebhookVerificationError } from "standardwebhooks";
export { TollhouseError } from "./error.js";
export { verifyEvent, type EventHeaders, type WebhookEvent } from "./events.js";

/** The records and requests of the API by name: `Schemas["NewPayment"]`. */
export type Schemas = components["schemas"];

export interface Options {
  /** The API key of the company. It belongs on a server, never in a browser or an app. */
  apiKey: string;
  /** The address of the host, without `/api/v1`. */
  baseUrl: string;
  /** Maximum number of attempts of a request, including the first. */
  maxAttempts?: number;
  /** Timeout of one attempt. */
  timeoutMs?: number;
}

type Api = Client<paths, "application/json">;
type Verb = "get" | "post" | "put" | "delete";

/** The `data` of a success; `void` if the operation returns only a message. */
type Data<Success> = Success extends { data: infer D } ? D : void;

/** The input of an operation, `{ params, body }`; optional if nothing in it is required. */
type Init<Path extends keyof paths, V extends Verb> = MaybeOptionalInit<paths[Path], V>;

/** Calls an operation by its path. Throws `TollhouseError`. */
type Call<V extends Verb> = <Path extends ClientPathsWithMethod<Api, V>>(
  path: Path,
  ...init: undefined extends Init<Path, V> ? [Init<Path, V>?] : [Init<Path, V>]
) => Promise<Data<MethodResponse<Api, V, Path>>>;

/** A client for one company. It adds an `Idempotency-Key` to changes, and retries. */
export class Tollhouse {
  readonly get: Call<"get">;
  readonly post: Call<"post">;
  readonly put: Call<"put">;
  readonly delete: Call<"delete">;

  constructor({ apiKey, baseUrl, maxAttempts = 4, timeoutMs = 60_000 }: Options) {
    const api: Api = createClient({
      baseUrl,
      headers: { authorization: `Bearer ${apiKey}` },
      // The keys of `metadata`, in a list of users, are parameter names.
      querySerializer: { object: { style: "form", explode: true } },
      fetch: (request) => send(request, { maxAttempts, timeoutMs }),
    });
    this.get = dataOf(api.GET);
    this.post = dataOf(api.POST);
    this.put = dataOf(api.PUT);
    this.delete = dataOf(api.DELETE);
  }
}

/** Wraps a call to return the `data` of a success; `send` throws everything else. */
function dataOf<V extends Verb>(call: Api[Uppercase<V>]): Call<V> {
  const untyped = call as (...args: unknown[]) => Promise<{ data?: { data?: unknown } }>;
  return (async (...args: unknown[]) => (await untyped(...args)).data?.data) as Call<V>;
}
