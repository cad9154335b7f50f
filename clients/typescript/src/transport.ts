// Sends a request until it has an outcome: idempotency keys, timeouts and retries.

import { setTimeout as sleep } from "node:timers/promises";

import { TollhouseError } from "./error.js";

export interface Limits {
  maxAttempts: number;
  timeoutMs: number;
}

/** The backoff doubles from the first value up to the second; jitter subtracts up to half of it. */
const [FIRST_BACKOFF_MS, MAX_BACKOFF_MS] = [500, 8_000];

/** A longer `Retry-After` is left to the caller. */
const MAX_RETRY_AFTER_S = 60;

/** These paths send a one-time password on GET, where the host ignores idempotency keys. */
const SENDS_CODE = /\/send(-verification)?\//;

/** Returns a success. Throws `TollhouseError` otherwise, unless the caller aborts the request. */
export async function send(request: Request, limits: Limits): Promise<Response> {
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (!isRead && !request.headers.has("idempotency-key")) {
    request.headers.set("idempotency-key", crypto.randomUUID());
  }
  const isRepeatable = !isRead || !SENDS_CODE.test(new URL(request.url).pathname);

  let mayBeRunning = false;
  for (let attempt = 1; ; attempt += 1) {
    const result = await sendOnce(request, limits.timeoutMs);
    if (result instanceof Response) return result;

    const { status, retryAfterS } = result;
    const canRetry =
      status === 429 || // had no effect
      (isRepeatable && [0, 502, 503, 504].includes(status)) ||
      (status === 409 && (mayBeRunning || retryAfterS !== undefined));
    const isSoon = (retryAfterS ?? 0) <= MAX_RETRY_AFTER_S;
    if (!canRetry || !isSoon || attempt >= limits.maxAttempts) throw result;

    // From now on 409 can mean that the host still runs an earlier attempt under this key.
    mayBeRunning ||= status !== 409 && status !== 429;
    await sleep(delayMs(attempt, retryAfterS), undefined, { signal: request.signal });
  }
}

/** Makes one attempt. Reads the body, too: if the connection breaks, the response is lost. */
async function sendOnce(request: Request, timeoutMs: number): Promise<Response | TollhouseError> {
  const idempotencyKey = request.headers.get("idempotency-key") ?? undefined;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  let response: Response;
  let body: ArrayBuffer;
  try {
    response = await fetch(request.clone(), { signal });
    body = await response.arrayBuffer();
  } catch (cause) {
    request.signal.throwIfAborted();
    const message = signal.aborted ? `no response within ${timeoutMs} ms` : "no response";
    return new TollhouseError({ status: 0, message, idempotencyKey, cause });
  }
  if (response.ok) return new Response(body.byteLength > 0 ? body : null, response);

  const retryAfter = response.headers.get("retry-after");
  return new TollhouseError({
    status: response.status,
    message: messageOf(body) ?? `the response is ${response.status} ${response.statusText}`,
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterS: retryAfter && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
    idempotencyKey,
  });
}

/** Returns the message of the host's error; `undefined` if a proxy in front of it responded. */
function messageOf(body: ArrayBuffer): string | undefined {
  try {
    const { message } = JSON.parse(Buffer.from(body).toString());
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Returns `Retry-After` plus the backoff; jitter spreads clients rejected at the same time. */
function delayMs(attempt: number, retryAfterS = 0): number {
  const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  return retryAfterS * 1_000 + backoffMs * (0.5 + Math.random() / 2);
}
