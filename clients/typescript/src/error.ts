/** An error of the host, or the failure of the last attempt to reach it. */
interface Failure {
  status: number;
  message: string;
  requestId?: string | undefined;
  retryAfterS?: number | undefined;
  idempotencyKey?: string | undefined;
  cause?: unknown;
}

/** Matches `the amount field must be greater than 0`, after `row 3: ` in a batch. */
const INVALID_FIELD = /^(?:row \d+: )?the (\S+) field (.+)$/;

/** A request that failed: the host rejected it, or no attempt got a response. */
export class TollhouseError extends Error {
  override readonly name = "TollhouseError";
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** Errors by field: `{ amount: "must be greater than 0" }`. The host reports only one. */
  readonly fields: Readonly<Record<string, string>>;
  /** The id of the last attempt in the logs of the host. */
  readonly requestId: string | undefined;
  /** Seconds after which the host permits another attempt. */
  readonly retryAfterS: number | undefined;
  /** The key of a change. If its outcome is unknown, repeat the same request with the same key. */
  readonly idempotencyKey: string | undefined;

  constructor(failure: Failure) {
    super(failure.message, { cause: failure.cause });
    const [, field, problem] = INVALID_FIELD.exec(failure.message) ?? [];
    this.status = failure.status;
    this.fields = field && problem ? { [field]: problem } : {};
    this.requestId = failure.requestId;
    this.retryAfterS = failure.retryAfterS;
    this.idempotencyKey = failure.idempotencyKey;
  }
}
