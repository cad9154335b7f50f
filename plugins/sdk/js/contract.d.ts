// Generated from the contract's WIT by bin/declarations.js.

export interface Request {
  method: string;
  url: string;
  headers: [string, string][];
  body?: Uint8Array | null;
  /** At most what remains of the call's own time. */
  timeoutMs?: number | null;
}

export interface Response {
  status: number;
  headers: [string, string][];
  body: Uint8Array;
}

/**
 * The only way out of the sandbox: https, towards the hosts that the operator granted, without redirects. Header values and
 * the body may hold placeholders from `vault`: the host puts the values in.
 */
export interface Http {
  /**
   * Every HTTP answer is `ok`, whatever its status. A fault is `unavailable` (code `timeout`, `connect` or `cut`) or, when the
   * request may not leave, `misconfigured`.
   * @throws {Fault}
   */
  send(request: Request): Response;
}

/** Work with secrets that never enter the sandbox. */
export interface Vault {
  /**
   * A random placeholder for a secret's value, good for this call alone. (A fixed text would let a caller's own words
   * expand it.)
   * @throws {Fault}
   */
  secret(name: string): string;
  /**
   * The same for the credentials of HTTP basic authentication, without the word "Basic". Both are names: `password` a secret's,
   * `user` a secret's or a setting's.
   * @throws {Fault}
   */
  basic(user: string, password: string): string;
  /**
   * Algorithms: "sha256", "sha512".
   * @throws {Fault}
   */
  hmac(algorithm: string, secret: string, data: Uint8Array): Uint8Array;
  /**
   * Compares in constant time.
   * @throws {Fault}
   */
  matches(secret: string, candidate: Uint8Array): boolean;
}

/** One step, applied to the bytes that the step before returned. */
export interface Step {
  /**
   * "base64", "base64url" (without padding), "hex", "sha256", "sha512"; with a secret as `key`: "hmac-sha256", "hmac-sha512",
   * "rsa-sha256" (a PKCS #1 v1.5 signature by a private key in PEM); with a secret or setting as `key`: "rsa-encrypt" (PKCS #1
   * v1.5, by a public key or certificate in PEM).
   */
  name: string;
  key?: string | null;
}

/** Secrets in another form: encoded, hashed, signed or encrypted. */
export interface VaultTransform {
  /**
   * A placeholder for the template after all steps. Placeholders in the template stand for their values; the result may be
   * sent where all of its secrets may be. A key is used and not sent. The result must be text: end with an encoding.
   * @throws {Fault}
   */
  transform(template: Uint8Array, steps: Step[]): string;
}

/** What the operator set for this plugin and these credentials, or the manifest's default; not secret. */
export interface Settings {
  get(name: string): string | null;
}

/** Short-lived values, kept by the host per plugin and set of credentials: an access token, say. */
export interface Cache {
  get(key: string): string | null;
  put(key: string, value: string, ttlSeconds: number): void;
}

export type Level =
  | 'debug'
  | 'info'
  | 'warn'
  | 'error';

export interface Log {
  /** Never holds a secret or personal data; the host removes the secrets it knows. */
  write(level: Level, message: string): void;
}

/** What the host knows of the user whose entry is asked for, for upstreams that want to see more than a number. */
export interface Person {
  firstName: string;
  lastName: string;
  /** YYYY-MM-DD. */
  dateOfBirth?: string | null;
}

/** What to look for. */
export interface Question {
  identity: string;
  /** As the manifest's pattern has it. */
  identifier: string;
  /** None when the lookup is nobody's. */
  person?: Person | null;
}

/** What stands in a register about somebody, or about a firm. */
export interface Entry {
  /**
   * A JSON object, as callers get it: names in snake_case; dates as DD/MM/YYYY, phone numbers in E.164, images in base64
   * without the head of a data URL; null where the upstream says nothing.
   */
  details: string;
  /** Where a code for this person may be sent. */
  email?: string | null;
  /** In E.164. */
  phone?: string | null;
}

/** A JPEG or a PNG, which the host has looked at: 5 MiB at most. */
export interface Image {
  /** "image/jpeg" or "image/png". */
  mediaType: string;
  bytes: Uint8Array;
}

export interface IdentityLookup {
  /**
   * `not-found` when the register has no such entry: then no other upstream is asked. `unavailable` when all upstreams are out
   * of order.
   * @throws {Fault}
   */
  lookup(question: Question): Entry;
}

export interface Comparison {
  /** Whether the upstream takes the two for one person. */
  matches: boolean;
  /** In hundredths of a percent: 0 to 10,000. */
  confidence: number;
  /** For callers; without personal data. */
  message: string;
}

export interface Compared {
  entry: Entry;
  comparison: Comparison;
}

export interface IdentityFace {
  /**
   * Looks up, and compares the photo on record with a selfie. `invalid` naming the field `image` when there is no face on the
   * selfie.
   * @throws {Fault}
   */
  compare(question: Question, selfie: Image): Compared;
}

export interface Reading {
  /** The identifier that stands on the document, as the manifest's pattern has it. */
  identifier: string;
  entry: Entry;
}

export interface IdentityDocument {
  /**
   * Reads a document, and looks up what stands on it. `invalid` naming the field `image` when it cannot be read.
   * @throws {Fault}
   */
  read(identity: string, document: Image): Reading;
}

/** What is reusable of how the customer paid. */
export interface Instrument {
  /** "card" or "mandate". */
  kind: string;
  /** Charges this instrument again. Useless without the account's secret. */
  token: string;
  reusable: boolean;
  /** Identifies the physical card, within one customer at least. */
  signature: string;
  /** The e-mail that the provider wants to see with the token. */
  email: string;
  bin: string;
  last4: string;
  expMonth: string;
  expYear: string;
  brand: string;
  bank: string;
  country: string;
  holder: string;
}

export type PaymentStatus =
  | 'pending'
  | 'success'
  | 'failed'
  | 'reversed';

/** A payment as the provider knows it. */
export interface Payment {
  status: PaymentStatus;
  serviceRef: string;
  /** The provider's own id, when a refund needs it. */
  transactionId: string;
  /** What was taken; `requested` is what was asked for where the two can differ. */
  amount: Money;
  requested?: Money | null;
  feesMinor?: number | null;
  /** Our name of the channel (card, bank, ussd, qr, mobile_money, bank_transfer) or the provider's. */
  channel: string;
  /** RFC 3339, UTC. */
  paidAt?: string | null;
  message: string;
  instrument?: Instrument | null;
  /** Where the customer must go on, when the provider wants to see them. */
  challengeUrl?: string | null;
  /** The order's metadata as JSON text, when the provider tells it: the host knows its own payments by it. */
  metadata?: string | null;
  /** The provider's answer as JSON text, without anything that charges again. */
  raw: string;
}

export interface CheckoutOrder {
  serviceRef: string;
  amount: Money;
  email: string;
  customerName?: string | null;
  narration: string;
  /** Empty: all that the provider offers. */
  channels: string[];
  successUrl: string;
  cancelUrl?: string | null;
  /** JSON object, to be echoed by the provider. */
  metadata: string;
  /** Ask for an instrument that can be charged again. */
  saveInstrument: boolean;
}

export interface CheckoutSession {
  url: string;
  serviceRef: string;
  raw: string;
}

export interface Checkout {
  /**
   * `refused` with code `duplicate-reference` when the provider has seen the reference before.
   * @throws {Fault}
   */
  start(order: CheckoutOrder): CheckoutSession;
}

export interface Verification {
  /**
   * `not-found` when the provider knows of no such payment.
   * @throws {Fault}
   */
  verify(serviceRef: string): Payment;
}

export interface CardOrder {
  token: string;
  email: string;
  amount: Money;
  serviceRef: string;
  narration: string;
  metadata: string;
}

export interface SavedCard {
  /** @throws {Fault} */
  charge(order: CardOrder): Payment;
  /**
   * `false`: the provider has no such call, and forgetting the token locally is all there is.
   * @throws {Fault}
   */
  deauthorize(token: string): boolean;
}

export interface DebitOrder {
  mandate: string;
  email: string;
  amount: Money;
  serviceRef: string;
  narration: string;
  metadata: string;
}

export interface DirectDebit {
  /** @throws {Fault} */
  debit(order: DebitOrder): Payment;
}

export type RefundStatus =
  | 'pending'
  | 'done'
  | 'failed';

export interface RefundOrder {
  serviceRef: string;
  transactionId: string;
  refundRef: string;
  amount: Money;
  reason: string;
}

export interface Refund {
  status: RefundStatus;
  providerId: string;
  message: string;
  raw: string;
}

export interface Refunds {
  /**
   * May be called again for the same payment when an answer was lost: a refund of it that the provider already has and that
   * did not fail is returned, never made twice. `refused` with code `partly-refunded` when a part was refunded without the host.
   * @throws {Fault}
   */
  start(order: RefundOrder): Refund;
  /**
   * How a refund stands, by the `provider-id` that `start` gave.
   * @throws {Fault}
   */
  check(providerId: string): Refund;
}

export type Subject =
  | 'payment'
  | 'refund'
  | 'mandate'
  | 'other';

export interface Notification {
  subject: Subject;
  event: string;
  serviceRef: string;
  transactionId: string;
}

export type Refusal = { tag: 'unauthentic' } | { tag: 'malformed'; val: string };

export interface Notifications {
  /**
   * Checks who sent it, then says what it is about. It is never believed: the host verifies. Header names are lower case.
   * @throws {Refusal}
   */
  parse(headers: [string, string][], body: Uint8Array): Notification[];
}

export interface TextMessage {
  /** E.164, with its plus sign. */
  to: string;
  /** Whom the message shall come from, in the gateway's own terms; "": the account's own. */
  sender: string;
  text: string;
  /** Unique per message, and the same when it is sent again: a gateway that knows a repetition by it is to be told. */
  reference: string;
}

/** Text messages through one gateway. */
export interface Sms {
  /**
   * Answers the gateway's id of a message that it accepted for this recipient; an HTTP success alone is none. Of a fault's
   * categories, `invalid`, `refused` and `not-found` say that this message will never be delivered to this number, so that no
   * other gateway is asked; `unavailable`, `misconfigured` and `other` say that the gateway is out of order, so that another
   * one may be. A fault never holds the number or the text.
   * @throws {Fault}
   */
  send(message: TextMessage): string;
}

/** An amount in the currency's minor unit (kobo, cent). */
export interface Money {
  minor: number;
  currency: string;
}

/** Why a plugin could not answer. The host acts on `category`, and shows callers none of the text. */
export interface Fault {
  category: FaultCategory;
  /** The upstream's own code, one of ours (`duplicate-reference`, `timeout`), or "". */
  code: string;
  /** For operators. Never holds a secret or personal data. */
  message: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /**
   * Names and values; `field` names the field of the request that is to blame, `cause` is one of the documented causes, and
   * `limit` the amount that the request violates, in the currency's minor unit.
   */
  details: [string, string][];
}

export type FaultCategory =
  /** The request as given cannot be served; `details` names the field. */
  | 'invalid'
  /** The upstream understood and said no. */
  | 'refused'
  /** The upstream knows of no such thing. */
  | 'not-found'
  /**
   * The upstream is out of order, slow, or out of its own credit. After a request has left, the host takes the outcome
   * of what was asked for as unknown.
   */
  | 'unavailable'
  /** A setting or secret is missing or wrong: the operator must act. */
  | 'misconfigured'
  | 'other';
