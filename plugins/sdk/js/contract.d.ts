// Generated from the contract's WIT by bin/declarations.js.

export type DisputeStatus =
  /** The provider waits for an answer. Also every status that is none of the others. */
  | 'open'
  /** The company contested the dispute, and the bank decides. */
  | 'answered'
  /** The company keeps the money. */
  | 'won'
  /** The payer gets the money: by a decision, or because the company accepted the dispute. */
  | 'lost';

/** Identifies a dispute. The host passes it as the plugin returned it. */
export interface DisputeKey {
  /** The provider's id of the dispute. */
  id: string;
  /** That of the payment. */
  serviceRef: string;
  /** That of the payment; "" if the provider needs none. */
  transactionId: string;
}

export interface Dispute {
  key: DisputeKey;
  status: DisputeStatus;
  /** The disputed amount. Of a lost dispute, the amount that the payer gets. */
  amount: Money;
  /** The provider's reason, without personal data. The company sees it. */
  reason: string;
  /**
   * The time until which the company can answer. RFC 3339 in UTC. Absent if the provider sets
   * none.
   */
  dueAt?: string | null;
  /** The time at which the dispute was opened. RFC 3339 in UTC. */
  openedAt?: string | null;
}

export type DisputeFilter =
  /**
   * The disputes of a payment: its `service-ref`, and its `transaction-id` as `verify` returned
   * it.
   */
  | { tag: 'payment'; val: [string, string] }
  /** All disputes that were opened since this time. RFC 3339 in UTC. */
  | { tag: 'since'; val: string };

export interface DisputePage {
  disputes: Dispute[];
  /** The argument of the next page; absent at the end. */
  next?: string | null;
}

export type DisputeAction =
  /** The payer gets the disputed amount. */
  | { tag: 'accept' }
  /** The bank decides by the evidence. */
  | { tag: 'contest'; val: Evidence };

/** Why the payment was right. */
export interface Evidence {
  customerName: string;
  customerEmail: string;
  /** E.164, if known. */
  customerPhone?: string | null;
  /** The goods or service that the payer received. */
  service: string;
  /** A link to a document, such as a receipt or an agreement. */
  documentUrl?: string | null;
}

export interface DisputeAnswer {
  key: DisputeKey;
  /** As in `dispute`. */
  amount: Money;
  action: DisputeAction;
  /** A text for the provider and the bank. */
  message: string;
}

/**
 * Disputes: claims of payers, through their banks, against payments. The payment's status remains
 * that of `verification`, which is `reversed` once the whole amount was returned.
 */
export interface Disputes {
  /**
   * Lists disputes, at most 100 per page. `cursor` is the `next` of the page before, absent for the
   * first one.
   * @throws {Fault}
   */
  list(filter: DisputeFilter, cursor: string | null): DisputePage;
  /**
   * Queries a dispute. `not-found` if the provider does not know it.
   * @throws {Fault}
   */
  fetch(key: DisputeKey): Dispute;
  /**
   * Answers a dispute, and returns it. It may be called again after a lost response: if the dispute
   * was answered before, it is returned. `refused` if it can no longer be answered.
   * @throws {Fault}
   */
  answer(answer: DisputeAnswer): Dispute;
}

export interface Request {
  method: string;
  url: string;
  /**
   * Names and values. The host sets `host`, `content-length`, `transfer-encoding`, `connection`,
   * `accept-encoding` and `range`.
   */
  headers: [string, string][];
  body?: Uint8Array | null;
  /** In milliseconds. The host caps it at the remaining time of the call. */
  timeoutMs?: number | null;
}

export interface Response {
  status: number;
  headers: [string, string][];
  body: Uint8Array;
}

/**
 * Sends HTTP requests over https to granted origins. Redirects are not followed. Header values and
 * the body may contain placeholders from `vault`, which the host replaces with the secrets.
 */
export interface Http {
  /**
   * Sends a request. Every HTTP response is `ok`, whatever its status. A fault is `unavailable`
   * with the code `timeout`, `connect`, `cut`, or `circuit-open` if the circuit of that upstream
   * is open for this account. It is `misconfigured` with the code `not-granted` or `forbidden` if
   * the request is not permitted; then it was not sent.
   * @throws {Fault}
   */
  send(request: Request): Response;
}

/**
 * Operations on secrets, which never enter the sandbox. Names are those of the manifest's
 * `secrets`.
 */
export interface Vault {
  /**
   * Returns a random placeholder for a secret, valid for this call only. Egress replaces it in a
   * header value or the body, where the manifest binds the secret. Repeated calls return the same
   * placeholder.
   * @throws {Fault}
   */
  secret(name: string): string;
  /**
   * Returns a placeholder for the credentials of HTTP basic authentication, without the word
   * "Basic". `password` names a secret; `user` names a secret or a setting.
   * @throws {Fault}
   */
  basic(user: string, password: string): string;
  /**
   * Computes the HMAC of data under a secret. The algorithm is "sha256" or "sha512".
   * @throws {Fault}
   */
  hmac(algorithm: string, secret: string, data: Uint8Array): Uint8Array;
  /**
   * Returns whether the candidate equals the secret, in constant time.
   * @throws {Fault}
   */
  matches(secret: string, candidate: Uint8Array): boolean;
}

/** A step, applied to the result of the previous one. */
export interface Step {
  /**
   * Without a key: "base64", "base64url" (without padding), "hex" (lower case), "sha256",
   * "sha512". With a key: "hmac-sha256", "hmac-sha512", "rsa-sha256" (a PKCS #1 v1.5 signature),
   * "rsa-encrypt" (PKCS #1 v1.5).
   */
  name: string;
  /**
   * The name of a secret. "rsa-sha256" requires a private key in PEM (PKCS #8 or PKCS #1),
   * "rsa-encrypt" a public key or certificate in PEM, which may also be a setting.
   */
  key?: string | null;
}

/** Secrets in another form: encoded, hashed, signed or encrypted. */
export interface VaultTransform {
  /**
   * Returns a placeholder for the template after all steps, at most eight. Placeholders in the
   * template stand for their values. The result must be text, so end with an encoding. It may be
   * sent where all secrets of the template may be sent; keys are not sent. Faults are
   * `misconfigured` with the code `bad-key`, `no-secret`, `not-text`, `too-large` or
   * `too-many-steps`, and `invalid` with the code `no-algorithm`.
   * @throws {Fault}
   */
  transform(template: Uint8Array, steps: Step[]): string;
}

/** Settings of this plugin and provider account. They are not secret. */
export interface Settings {
  /** Returns the account's setting, or the manifest's default. */
  get(name: string): string | null;
}

/**
 * A cache of short-lived values, for example access tokens. Each host keeps it in memory by
 * component and account: at most 64 entries, of at most 16 KiB with their keys. It may be empty at
 * any time.
 */
export interface Cache {
  /** Returns a cached value unless it has expired. */
  get(key: string): string | null;
  /** Caches a value for at most 24 hours. Later calls read it. */
  put(key: string, value: string, ttlSeconds: number): void;
}

export type Level =
  | 'debug'
  | 'info'
  | 'warn'
  | 'error';

/** Log lines for operators: at most 100 lines of 2 KiB per call. */
export interface Log {
  /**
   * Writes a line. It must not contain a secret or personal data; the host removes the secrets
   * that it knows.
   */
  write(level: Level, message: string): void;
}

/** The user of a lookup, for registers that require more than an identifier. */
export interface Person {
  firstName: string;
  lastName: string;
  /** YYYY-MM-DD. */
  dateOfBirth?: string | null;
}

/** The entry to look up. */
export interface Question {
  /** The `name` of one of the manifest's identity types. */
  identity: string;
  /**
   * Matches the type's `pattern`. Letters are capitals if the type has `upper`. Spaces and
   * hyphens are removed unless the pattern has them.
   */
  identifier: string;
  /** Absent if the lookup has no user. */
  person?: Person | null;
}

/** A register's entry about a person or a firm. */
export interface Entry {
  /**
   * A JSON object of at most 1 MiB, returned to clients unchanged. Names are in snake_case, and
   * every field of the type is present, with `null` for an absent value. Dates are DD/MM/YYYY,
   * phone numbers E.164, images base64 without the prefix of a data URL.
   */
  details: string;
  /** The address for one-time passwords, if the type has `otp`. The host discards an invalid one. */
  email?: string | null;
  /** In E.164. The number for one-time passwords, like `email`. */
  phone?: string | null;
}

/** A JPEG or PNG of at most 5 MiB. The host has fetched it and checked its content. */
export interface Image {
  /** "image/jpeg" or "image/png". */
  mediaType: string;
  bytes: Uint8Array;
}

/** Lookups by identifier. Required of every country. */
export interface IdentityLookup {
  /**
   * Returns the entry. `not-found` if the register has no such entry: query no other register
   * then. `unavailable` if all registers are out of order.
   * @throws {Fault}
   */
  lookup(question: Question): Entry;
}

export interface Comparison {
  /** The register's result: whether both images show the same person. */
  matches: boolean;
  /** In hundredths of a percent, 0 to 10,000. */
  confidence: number;
  /** Returned to clients, so it must not contain personal data. */
  message: string;
}

export interface Compared {
  entry: Entry;
  comparison: Comparison;
}

/** Lookups with a selfie. Required if an identity type has `face`. */
export interface IdentityFace {
  /**
   * Looks up an entry and compares its photo with the selfie. `invalid` with the field `image` if
   * the selfie shows no face.
   * @throws {Fault}
   */
  compare(question: Question, selfie: Image): Compared;
}

export interface Reading {
  /**
   * The identifier on the document, in the form that a client would send: the lookup by
   * identifier and that by document share one record.
   */
  identifier: string;
  entry: Entry;
}

/** Lookups by a photo of a document. Required if an identity type has `document`. */
export interface IdentityDocument {
  /**
   * Reads a document and looks up its entry. `invalid` with the field `image` if the document is
   * unreadable.
   * @throws {Fault}
   */
  read(identity: string, document: Image): Reading;
}

export interface DebitedAccount {
  /** As in `account-enquiry.bank`. */
  bankCode: string;
  accountNumber: string;
}

export interface MandateOrder {
  /** The reference to use at the provider, valid by the manifest's `reference` rules. */
  mandateRef: string;
  currency: string;
  email: string;
  /** The payer's name. */
  name: string;
  /** The payer's phone number in E.164, if known. */
  phone?: string | null;
  /** The payer's postal address, if known. */
  address?: string | null;
  /**
   * The account to debit, if the company has sent it. Return `invalid` with the field `account`
   * if the provider requires it, and it is absent.
   */
  account?: DebitedAccount | null;
  /**
   * The maximum of one debit, if the company has sent it; as `account`, with the field
   * `max_amount`.
   */
  maxAmount?: Money | null;
  /** The time of the order. RFC 3339 in UTC. */
  startsAt: string;
  /**
   * The end of the mandate, if the company has sent it; as `account`, with the field `ends_at`.
   * RFC 3339 in UTC.
   */
  endsAt?: string | null;
  narration: string;
  /** The page to which the provider returns the payer. */
  returnUrl: string;
  /** The account's notification URL, whose requests `notifications.parse` reads. */
  notificationUrl: string;
}

export type Consent =
  /** The URL of the page on which the payer authorizes the mandate. */
  | { tag: 'page'; val: string }
  /**
   * An instruction for a payer who authorizes it elsewhere: at most 300 bytes. The company shows
   * it.
   */
  | { tag: 'instruction'; val: string };

export interface MandateSession {
  consent: Consent;
  /** The order's reference, or the provider's own. Notifications may name either. */
  serviceRef: string;
  /** At most 4 KiB, stored encrypted, for later calls about this mandate. */
  state: Uint8Array;
}

export type MandateStatus =
  /** The payer has not authorized it. Also every status that is none of the others. */
  | 'created'
  /** The payer has authorized it, and the bank has not activated it yet. */
  | 'approved'
  /** It can be debited. */
  | 'ready'
  /** An explicit, final end: it was declined, cancelled, revoked, or it has expired. */
  | 'cancelled';

/** The host's data of a mandate. */
export interface KnownMandate {
  /** That of the session; that of the order if the response of `begin` was lost. */
  serviceRef: string;
  /**
   * The status as the host knows it. A provider may report a revoked mandate only as inactive:
   * it was revoked if it was `ready`.
   */
  status: MandateStatus;
  /** The state that `begin` returned. Absent if its response was lost. */
  state?: Uint8Array | null;
}

export interface Mandate {
  status: MandateStatus;
  /** The argument `mandate` of `direct-debit.debit`, once the mandate is `ready`; "" before. */
  token: string;
  /** The e-mail address that the provider requires with the token; "" if that of the order. */
  email: string;
  /** The bank, and the last digits of the account number; "" if the provider returns none. */
  bank: string;
  last4: string;
  /** How the payer authorizes it, if the provider returns it. */
  consent?: Consent | null;
  /** Shown to the company, without personal data. */
  message: string;
}

/**
 * Mandates: authorizations of payers to debit a bank account, given on a page of the provider or
 * at their bank. `direct-debit.debit` charges a mandate that is `ready`.
 */
export interface Mandates {
  /**
   * Begins a mandate. If the provider knows the reference already, the existing mandate is
   * returned. Where the provider keeps no reference, another page is returned: no payer has the
   * URL of the first one.
   * @throws {Fault}
   */
  begin(order: MandateOrder): MandateSession;
  /**
   * Queries a mandate. `not-found` if the provider does not know it.
   * @throws {Fault}
   */
  query(mandate: KnownMandate): Mandate;
  /**
   * Cancels a mandate, or reports that it has ended. `false` if the provider cannot cancel it
   * before the payer has authorized it: the host then cancels it once that has happened.
   * @throws {Fault}
   */
  cancel(mandate: KnownMandate): boolean;
}

/** A payment instrument that can be charged again. A text that the provider does not return is "". */
export interface Instrument {
  /** "card" or "mandate". */
  kind: string;
  /**
   * Charges this instrument again, together with the account's secret. It must not be in `raw`;
   * the host removes it otherwise.
   */
  token: string;
  /** Whether it can be charged without the payer. */
  reusable: boolean;
  /** Identifies the physical card, at least within one customer. */
  signature: string;
  /** The e-mail address that the provider requires with the token. */
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
  /** Every status that is none of the others, also "abandoned" and unknown words. */
  | 'pending'
  /** The money was taken. */
  | 'success'
  /** An explicit, final failure. */
  | 'failed'
  /**
   * The whole amount was returned, even if only the provider's lists of refunds and disputes
   * show it.
   */
  | 'reversed';

/** The provider's data of a payment. */
export interface Payment {
  status: PaymentStatus;
  /** The payment's reference at the provider. */
  serviceRef: string;
  /** The provider's own id, if a refund needs it. */
  transactionId: string;
  /**
   * The amount taken, as the provider reports it. Never fill it in from the request, except from
   * `known-session` if the provider reports no amount and the payer cannot change it.
   */
  amount: Money;
  /**
   * The amount requested, where it can differ from the amount taken: the customer bears the
   * fees. For a success the host compares `requested`, or else `amount`, with its own request,
   * and rejects an `amount` below it.
   */
  requested?: Money | null;
  /**
   * The provider's fees. The company bears the part that the customer has not paid in addition
   * (`amount` above `requested`).
   */
  feesMinor?: number | null;
  /** "card", "bank", "ussd", "qr", "mobile_money", "bank_transfer", or the provider's own word. */
  channel: string;
  /** RFC 3339 in UTC. If it is absent or unreadable, the time of the verification counts. */
  paidAt?: string | null;
  /** Shown to the company. */
  message: string;
  /** What can be charged again. */
  instrument?: Instrument | null;
  /** The page on which the customer must continue, if the provider requires it. */
  challengeUrl?: string | null;
  /**
   * The order's metadata as the provider returns it, as JSON text; absent if it does not. The
   * host recognizes its own payments by it: without it, a payment whose session was lost is
   * started again. Not needed if the manifest's `sessions.push` is true or `sessions.lookup` is
   * `state`.
   */
  metadata?: string | null;
  /** The provider's response as JSON text, without tokens. The company sees it. */
  raw: string;
}

/** The host's data of a payment, for functions that need more than its reference. */
export interface KnownSession {
  serviceRef: string;
  /** "" until a verification has returned one. */
  transactionId: string;
  /** The ordered amount. */
  amount: Money;
  /** The time of the last call of `sessions.start`. RFC 3339 in UTC. */
  startedAt: string;
  /** The state that `sessions.start` returned. Absent if its response was lost. */
  state?: Uint8Array | null;
  /** The last result of `sessions.receive`. */
  notified?: Uint8Array | null;
}

export interface CheckoutOrder {
  /** The reference to use at the provider, valid by the manifest's `reference` rules. */
  serviceRef: string;
  amount: Money;
  email: string;
  customerName?: string | null;
  narration: string;
  /** The requested channels that the manifest has. Empty: all that the provider offers. */
  channels: string[];
  successUrl: string;
  cancelUrl?: string | null;
  /** A JSON object, to be echoed by the provider. The host recognizes its own payment by it. */
  metadata: string;
  /** Request an instrument that can be charged again. */
  saveInstrument: boolean;
}

export interface CheckoutSession {
  /** The page for the customer. */
  url: string;
  /**
   * The order's reference, or the provider's own. Only the returned one is verified; webhooks
   * may name either.
   */
  serviceRef: string;
  /** The provider's response as JSON text. The company sees it. */
  raw: string;
}

/** Hosted checkout: the customer pays on a page of the provider. */
export interface Checkout {
  /**
   * Opens a checkout session. `refused` with the code `duplicate-reference` if the provider knows
   * the reference already: the host begins again under another one.
   * @throws {Fault}
   */
  start(order: CheckoutOrder): CheckoutSession;
}

/** The status of a payment. Every payment is settled by it. */
export interface Verification {
  /**
   * Queries the provider. `not-found` if the provider does not know the payment: another session
   * is then safe.
   * @throws {Fault}
   */
  verify(serviceRef: string): Payment;
}

export interface SessionOrder {
  /** The reference to use at the provider, valid by the manifest's `reference` rules. */
  serviceRef: string;
  amount: Money;
  email: string;
  /**
   * The payer's phone number in E.164, if known. If the manifest has `sessions.push`, the host
   * rejects payments without one. Absent when a card is verified.
   */
  phone?: string | null;
  customerName?: string | null;
  narration: string;
  /** The requested channels that the manifest has. Empty: all that the provider offers. */
  channels: string[];
  successUrl: string;
  cancelUrl?: string | null;
  /**
   * The URL for the provider's notifications of this payment, by POST or PUT, which `receive`
   * reads. It cannot be guessed, so it authenticates a provider that signs nothing.
   */
  notificationUrl: string;
  /** A JSON object, to be echoed by the provider. The host recognizes its own payment by it. */
  metadata: string;
  /** Request an instrument that can be charged again. */
  saveInstrument: boolean;
}

export type NextStep =
  /** The URL of the page on which the payer pays. */
  | { tag: 'page'; val: string }
  /**
   * An instruction for a payer who confirms elsewhere: one sentence of at most 300 bytes. The
   * host shows it on its own page, which waits for the outcome.
   */
  | { tag: 'prompt'; val: string };

export interface Session {
  next: NextStep;
  /** As in `checkout-session`. */
  serviceRef: string;
  /**
   * At most 4 KiB, stored encrypted, for later calls about this payment. It must not contain
   * more personal data than these calls need.
   */
  state: Uint8Array;
  /** The provider's response as JSON text. The company sees it. */
  raw: string;
}

/**
 * Payments for which the host stores a state and provides a notification URL: push payments, which
 * the payer confirms on a phone, and payments that cannot be verified by reference alone. Replaces
 * `checkout` and `verification`; `notifications` is optional.
 */
export interface Sessions {
  /**
   * Starts a payment. If the provider already has a payment under this reference, returns that
   * session if it is certainly the one of this order and can still be confirmed, otherwise
   * `refused` with the code `duplicate-reference`.
   * @throws {Fault}
   */
  start(order: SessionOrder): Session;
  /**
   * Queries the provider. `not-found` if the provider does not know the payment, or if nothing in
   * `session` identifies it there.
   * @throws {Fault}
   */
  verify(session: KnownSession): Payment;
  /**
   * Reads a notification, and returns the data that `verify` needs, at most 4 KiB. The result
   * replaces `notified`; then the host calls `verify`. `invalid` if the notification is unreadable,
   * `refused` if its sender is not the provider. Header names are in lower case.
   * @throws {Fault}
   */
  receive(session: KnownSession, headers: [string, string][], body: Uint8Array): Uint8Array;
}

export interface CardOrder {
  /** That of the instrument. */
  token: string;
  /** The e-mail address that the provider requires with the token. */
  email: string;
  amount: Money;
  /** The reference to use at the provider. */
  serviceRef: string;
  narration: string;
  /** As in `checkout-order`. */
  metadata: string;
}

/** Charges of saved cards, without the customer. */
export interface SavedCard {
  /**
   * Charges a card. If the provider knows the reference already, the existing payment is returned.
   * @throws {Fault}
   */
  charge(order: CardOrder): Payment;
  /**
   * Reports a deleted card to the provider. `false` if the provider has no such call: the host
   * only deletes the token.
   * @throws {Fault}
   */
  deauthorize(token: string): boolean;
}

export interface DebitOrder {
  /** The token of the mandate. */
  mandate: string;
  email: string;
  amount: Money;
  /** The reference to use at the provider. */
  serviceRef: string;
  narration: string;
  /** As in `checkout-order`. */
  metadata: string;
}

/** Direct debits under a mandate. */
export interface DirectDebit {
  /**
   * Debits an account. If the provider knows the reference already, the existing payment is
   * returned.
   * @throws {Fault}
   */
  debit(order: DebitOrder): Payment;
}

export interface PartialOrder {
  /** That of the card or mandate. */
  token: string;
  email: string;
  /** The most to take. */
  amount: Money;
  /** The least to take, less than `amount`. If there is less, the charge is declined. */
  atLeast: Money;
  /** The reference to use at the provider. */
  serviceRef: string;
  narration: string;
  /** As in `checkout-order`. */
  metadata: string;
}

/**
 * Charges of saved cards and mandates that take a part of the amount if the payer's account does not
 * have all of it. A plugin that exports this interface also exports `saved-card` and `direct-debit`.
 */
export interface PartialDebits {
  /**
   * Like `saved-card.charge`. The payment's `amount` is what was taken, its `requested` the amount
   * of the order. `verify` returns the same.
   * @throws {Fault}
   */
  chargeCard(order: PartialOrder): Payment;
  /**
   * Like `direct-debit.debit`.
   * @throws {Fault}
   */
  debit(order: PartialOrder): Payment;
}

export type DeclineReason =
  | 'insufficient-funds'
  /** The card or mandate has expired. */
  | 'expired'
  | 'lost-or-stolen'
  /** The bank does not permit charges of the card or account. */
  | 'blocked'
  /** A limit of the payer, for example of a day. */
  | 'limit'
  /** The bank could not process the charge, but may later. */
  | 'try-later'
  /**
   * None of these, or not known. In doubt, return this: after `expired`, `lost-or-stolen` and
   * `blocked`, the host does not charge the instrument again.
   */
  | 'other';

/** Why charges of saved cards and mandates are declined, beside the provider's own text. */
export interface Declines {
  /**
   * Returns why a charge was declined whose `payment` has the status `failed`, from its `message`
   * and its `raw`. Makes no request.
   * @throws {Fault}
   */
  reason(message: string, raw: string): DeclineReason;
}

export type RefundStatus =
  /** The provider accepted the refund. */
  | 'pending'
  | 'done'
  /** From `start`: the provider refused the refund. */
  | 'failed';

export interface RefundOrder {
  /** That of the payment. */
  serviceRef: string;
  /** That of the payment, as `verify` returned it. */
  transactionId: string;
  /** The host's reference of the refund. */
  refundRef: string;
  amount: Money;
  reason: string;
}

export interface Refund {
  status: RefundStatus;
  /** The argument of `check`. */
  providerId: string;
  message: string;
  raw: string;
}

/** Refunds. Without this interface and `session-refunds`, a refund is rejected with 400. */
export interface Refunds {
  /**
   * Requests a refund. It may be called again for the same payment after a lost response: if the
   * provider has a refund of it that did not fail, that one is returned, and no second one made.
   * `refused` with the code `partly-refunded` if a part was refunded without the host.
   * @throws {Fault}
   */
  start(order: RefundOrder): Refund;
  /**
   * Queries the status of a refund.
   * @throws {Fault}
   */
  check(providerId: string): Refund;
}

export type PartialRefundStatus =
  /** The provider accepted the refund. */
  | 'pending'
  | 'done'
  /** The provider refused the refund. */
  | 'failed';

export interface PartialRefundOrder {
  /** That of the payment. */
  serviceRef: string;
  /** That of the payment, as `verify` returned it. */
  transactionId: string;
  /** The host's reference of the refund. */
  refundRef: string;
  /** At most what earlier refunds have left of the payment. */
  amount: Money;
  reason: string;
  /** The provider's ids of the payment's earlier refunds. */
  earlier: string[];
}

export interface PartialRefund {
  status: PartialRefundStatus;
  /** The argument of `refunds.check`. */
  providerId: string;
  message: string;
  raw: string;
}

/**
 * Refunds of a part of a payment, of which a payment can have several. A plugin that exports this
 * interface also exports `refunds`, whose `check` queries these refunds.
 */
export interface PartialRefunds {
  /**
   * Requests a refund. It may be called again for the same refund after a lost response: if the
   * provider has a refund of this reference that did not fail, that one is returned, and no second
   * one made. Where the provider keeps no reference, it is one of the same amount that is not
   * among `earlier`.
   * @throws {Fault}
   */
  start(order: PartialRefundOrder): PartialRefund;
}

export type SessionRefundStatus =
  /** The provider accepted the refund. */
  | 'pending'
  | 'done'
  /** From `start`: the provider refused the refund. */
  | 'failed';

export interface SessionRefundOrder {
  session: KnownSession;
  /** The host's reference of the refund. */
  refundRef: string;
  amount: Money;
  reason: string;
  /** The URL for the provider's notifications of this refund, like that of a payment. */
  notificationUrl: string;
}

export interface SessionRefund {
  status: SessionRefundStatus;
  providerId: string;
  message: string;
  raw: string;
  /**
   * At most 4 KiB, stored encrypted, for later calls about this refund. Only that of `start` is
   * stored.
   */
  state: Uint8Array;
}

export interface KnownRefund {
  session: KnownSession;
  refundRef: string;
  amount: Money;
  /** "" if the response of `start` was lost. */
  providerId: string;
  /** The state that `start` returned. Absent if its response was lost. */
  state?: Uint8Array | null;
  /** The last result of `receive`. */
  notified?: Uint8Array | null;
}

/**
 * Refunds for which the host stores a state and provides a notification URL, for providers that
 * report the result of a refund only by a notification. Replaces `refunds`.
 */
export interface SessionRefunds {
  /**
   * Requests a refund, like `refunds.start`.
   * @throws {Fault}
   */
  start(order: SessionRefundOrder): SessionRefund;
  /**
   * Queries the status of a refund.
   * @throws {Fault}
   */
  check(refund: KnownRefund): SessionRefund;
  /**
   * Reads a notification, like `sessions.receive`. The host then calls `check`.
   * @throws {Fault}
   */
  receive(refund: KnownRefund, headers: [string, string][], body: Uint8Array): Uint8Array;
}

export interface AccountOrder {
  /** The reference to use at the provider, valid by the manifest's `reference` rules. */
  accountRef: string;
  currency: string;
  email: string;
  /** The payer's name. */
  name: string;
  /** The payer's phone number in E.164, if known. */
  phone?: string | null;
  /**
   * Type and number of an identity of the payer, such as "bvn", if the company has sent one. Many
   * banks require it.
   */
  identity?: [string, string] | null;
}

export interface VirtualAccount {
  accountNumber: string;
  /** The name of the bank. */
  bank: string;
  /** The account's name, as payers see it. */
  holder: string;
  /** The argument of `close`. */
  providerId: string;
}

/** How the provider identifies a virtual account. */
export type AccountId =
  /** By the `account-ref` of its order. */
  | { tag: 'reference'; val: string }
  | { tag: 'provider-id'; val: string }
  | { tag: 'number'; val: string };

export interface IncomingTransfer {
  account: AccountId;
  /** As `verification.verify` returns it. */
  payment: Payment;
}

/**
 * Virtual accounts: bank accounts that the provider opens for one payer each, and whose transfers
 * arrive without an order.
 */
export interface VirtualAccounts {
  /**
   * Opens an account. If the provider already has one under this reference, that one is returned.
   * @throws {Fault}
   */
  open(order: AccountOrder): VirtualAccount;
  /**
   * Closes an account, or reports that it is closed. `false` if the provider has no such call: the
   * host only hides the account.
   * @throws {Fault}
   */
  close(providerId: string): boolean;
  /**
   * Queries the payment of a notification whose `service-ref` belongs to no order. Absent if the
   * payment is certainly not a transfer to a virtual account. `not-found` if the provider does not
   * know the payment: the host queries it again.
   * @throws {Fault}
   */
  findTransfer(serviceRef: string): IncomingTransfer | null;
}

export interface Bank {
  /** The argument of `resolve`. */
  code: string;
  name: string;
}

/** Names of the holders of bank accounts. */
export interface AccountEnquiry {
  /**
   * Lists the banks with accounts in a currency, at most 1,000.
   * @throws {Fault}
   */
  banks(currency: string): Bank[];
  /**
   * Returns the name of an account's holder. `not-found` if the bank has no such account.
   * @throws {Fault}
   */
  resolve(bankCode: string, accountNumber: string): string;
}

export type Subject =
  /** The payment of `service-ref` is verified. */
  | 'payment'
  /** Handled like `payment`: the verification reports the refund. */
  | 'refund'
  /** If the plugin exports `mandates`, the mandate of `service-ref` is queried. */
  | 'mandate'
  /**
   * Only stored. If it has a `service-ref`, and the plugin exports `disputes`, the host lists the
   * disputes of that payment.
   */
  | 'other';

export interface Notification {
  subject: Subject;
  /** The provider's name of the event, for logs. */
  event: string;
  /** That of the payment or mandate. */
  serviceRef: string;
  transactionId: string;
}

export type Refusal =
  /** The sender is not the provider: 401. */
  | { tag: 'unauthentic' }
  /** The body cannot be read, for the stated reason: 400. */
  | { tag: 'malformed'; val: string };

/** Provider webhooks, sent to the account's notification URL. */
export interface Notifications {
  /**
   * Checks the sender over the raw bytes, then returns the subjects. The host verifies every
   * claim. Header names are in lower case.
   * @throws {Refusal}
   */
  parse(headers: [string, string][], body: Uint8Array): Notification[];
}

export type ListedKind =
  /** A successful payment, also one that was refunded or disputed since. */
  | 'payment'
  /** A refund that did not fail, or a reversal. */
  | 'refund'
  /** The money of a dispute that the company lost. */
  | 'dispute';

export interface ListedTransaction {
  kind: ListedKind;
  /**
   * The provider's id of the payment, refund or dispute: `transaction-id` of a payment,
   * `provider-id` of a refund.
   */
  id: string;
  /** The `service-ref` of the payment; "" if the provider's list has none. */
  serviceRef: string;
  /** The `transaction-id` of the payment; "" if the provider's list has none. */
  transactionId: string;
  /** The amount of the payment, refund or dispute, without fees that the payer paid on top. */
  amount: Money;
  /** The provider's fees that the company bears, in minor units; absent if the list has none. */
  feesMinor?: number | null;
  /** The time of the payment, refund or decision. RFC 3339 in UTC. */
  at: string;
}

export interface TransactionPage {
  transactions: ListedTransaction[];
  /** The argument of the next page; absent at the end. */
  next?: string | null;
}

export interface Period {
  /** RFC 3339 in UTC. */
  since: string;
  /** After the last moment of the period. RFC 3339 in UTC. */
  until: string;
}

export type TransactionFilter =
  /** The transactions of a period. Others may be included. */
  | { tag: 'period'; val: Period }
  /** The payments of a settlement: its id. */
  | { tag: 'settlement'; val: string };

export type SettlementStatus =
  /** Not paid out yet. Also every status that is none of the others. */
  | 'pending'
  | 'paid'
  | 'failed';

export interface Settlement {
  /** The provider's id of the settlement. */
  id: string;
  status: SettlementStatus;
  /** What was paid out. The host expects `gross-minor` less `fees-minor` and `deductions-minor`. */
  amount: Money;
  /** The amounts of its payments, in minor units. */
  grossMinor: number;
  /** The fees of its payments, in minor units. */
  feesMinor: number;
  /** Refunds, disputes and other deductions, as the provider states them, in minor units. */
  deductionsMinor: number;
  /** The date of the payout. RFC 3339 in UTC. */
  at: string;
}

export interface SettlementPage {
  settlements: Settlement[];
  /** The argument of the next page; absent at the end. */
  next?: string | null;
}

/**
 * Settlements: what a provider took, returned and paid out, for reconciliation with the host's
 * records.
 */
export interface Settlements {
  /**
   * Lists transactions, at most 100 per page. `cursor` is the `next` of the page before, absent for
   * the first one.
   * @throws {Fault}
   */
  transactions(filter: TransactionFilter, cursor: string | null): TransactionPage;
  /**
   * Lists the settlements of a period, at most 100 per page. An empty page if the provider does
   * not list settlements.
   * @throws {Fault}
   */
  list(period: Period, cursor: string | null): SettlementPage;
}

export interface TextMessage {
  /** E.164, with its plus sign. */
  to: string;
  /**
   * The sender in the gateway's terms: a name, a number, a service. "": the account's own, which
   * is a setting of the plugin.
   */
  sender: string;
  /** The text to deliver. */
  text: string;
  /**
   * Unique per message, the same in a repetition, and valid by the manifest's `reference` rules.
   * Pass it on if the gateway deduplicates by it.
   */
  reference: string;
}

/** SMS through one gateway. Required of every SMS gateway. */
export interface Sms {
  /**
   * Sends one SMS, and returns the gateway's id of a message that it accepted for this recipient.
   * An HTTP success alone is not an acceptance.
   *
   * After `invalid`, `refused` and `not-found` the message is given up. After `unavailable`,
   * `misconfigured` and `other` the next gateway is tried. A fault must not contain the number or
   * the text.
   * @throws {Fault}
   */
  send(message: TextMessage): string;
}

/** An amount in a currency. */
export interface Money {
  /**
   * In the currency's minor unit: kobo, cents, or the whole units of a currency without decimals
   * in ISO 4217, such as XOF, UGX and RWF. The host rejects a response above 10^13 in the major
   * unit.
   */
  minor: number;
  /** An ISO 4217 code. */
  currency: string;
}

/**
 * The reason why a function has no result. The host acts on `category`, and shows clients none
 * of the text.
 */
export interface Fault {
  category: FaultCategory;
  /** The upstream's own code, a code of the contract (`duplicate-reference`, `timeout`), or "". */
  code: string;
  /** For operators. It must not contain a secret or personal data. */
  message: string;
  /** Whether the same call may succeed later. For logs and for the plugin itself. */
  retryable: boolean;
  /**
   * Names and values. `field` names the field of the request that is invalid. `cause` names the
   * reason of a rejected payment, and `limit` is the amount that the request violates, in the
   * currency's minor unit.
   */
  details: [string, string][];
}

/** The host's reaction depends on it: `docs/PLUGINS.md`, "Faults". */
export type FaultCategory =
  /** The request cannot be served as given; `details` has `field`. */
  | 'invalid'
  /** The upstream understood the request and refused it. */
  | 'refused'
  /** The upstream does not have the requested object. */
  | 'not-found'
  /**
   * The upstream is out of order, slow, unreadable, or has run out of its own credit. Once a request was
   * sent, the outcome is unknown.
   */
  | 'unavailable'
  /** A setting or secret is missing or wrong. The host alerts the operator. */
  | 'misconfigured'
  /** Any other reason. Like `unavailable`, and the host alerts the operator. */
  | 'other';
