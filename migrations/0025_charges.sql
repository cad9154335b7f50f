-- A charge is one attempt to take money from one payer at one provider account. Payments, cards and
-- recollections own charges. Their columns about the provider are copies for lists and for hosts of
-- the previous version.
CREATE TABLE charges (
    company_id       TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    owner_kind       TEXT    NOT NULL CHECK (owner_kind IN ('payment', 'card', 'recollection')),
    owner_id         TEXT    NOT NULL,
    number           BIGINT  NOT NULL, -- among the charges of the owner, from 1
    method           TEXT    NOT NULL CHECK (method IN ('checkout', 'card', 'mandate')),
    provider         TEXT    NOT NULL,
    account_id       TEXT    NOT NULL,
    in_books         BOOLEAN NOT NULL, -- on the service account
    lane             TEXT,             -- the queue of card and mandate charges: their loan
    amount_minor     BIGINT  NOT NULL CHECK (amount_minor > 0),
    currency         TEXT    NOT NULL,
    taken_minor      BIGINT,
    taken_currency   TEXT,
    credited_minor   BIGINT  NOT NULL, -- what the ledger has of it
    refunded_minor   BIGINT  NOT NULL,
    service_ref      TEXT    NOT NULL,
    reference_source TEXT    NOT NULL CHECK (reference_source IN ('caller', 'host', 'provider')),
    transaction_id   TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN (
        'queued', 'requested', 'open', 'mismatched', 'succeeded', 'failed', 'canceled', 'reversed')),
    counts           BOOLEAN NOT NULL, -- settled the owner
    superseded       BOOLEAN NOT NULL,
    holds_lane       BOOLEAN NOT NULL,
    unsure           BOOLEAN NOT NULL, -- a request ended with an unknown outcome
    fence            BIGINT  NOT NULL, -- number of requests
    lease_until      BIGINT,
    begun_at         BIGINT,
    requested_at     BIGINT,
    settled_at       BIGINT,
    session_url      TEXT,
    mismatch         TEXT,
    created_at       BIGINT  NOT NULL,
    updated_at       BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, owner_kind, owner_id, number),
    CONSTRAINT charges_count_after_success CHECK (NOT counts OR state IN ('succeeded', 'reversed')),
    CONSTRAINT charges_take_in_their_states CHECK (
        (taken_minor IS NOT NULL) = (state IN ('mismatched', 'succeeded', 'reversed'))),
    CONSTRAINT charges_refund_at_most_what_was_taken CHECK (
        refunded_minor >= 0 AND refunded_minor <= COALESCE(taken_minor, 0)),
    CONSTRAINT charges_are_leased_while_requested CHECK (lease_until IS NULL OR state = 'requested'),
    CONSTRAINT charges_hold_lanes_without_outcome CHECK (
        NOT holds_lane OR lane IS NOT NULL AND state IN ('queued', 'requested', 'open')),
    CONSTRAINT charges_begin_with_a_fence CHECK ((fence = 0) = (begun_at IS NULL)),
    CONSTRAINT charges_are_requested_before_an_outcome CHECK (
        fence > 0 OR state IN ('queued', 'canceled')),
    CONSTRAINT charges_superseded_without_a_page CHECK (NOT superseded OR session_url IS NULL)
);

-- One charge settles an owner, one charge of an owner is without outcome, one charge holds a lane.
CREATE UNIQUE INDEX charges_counted ON charges (company_id, owner_kind, owner_id) WHERE counts;
CREATE UNIQUE INDEX charges_blocking ON charges (company_id, owner_kind, owner_id)
    WHERE NOT superseded AND state IN ('queued', 'requested', 'open', 'mismatched');
CREATE UNIQUE INDEX charges_lane ON charges (company_id, lane) WHERE holds_lane;
CREATE INDEX charges_queued ON charges (company_id, lane, created_at, id) WHERE state = 'queued';
CREATE INDEX charges_undecided ON charges (created_at) WHERE state IN ('queued', 'requested', 'open');

-- A refund is never overwritten: a retry after a failure is another row.
CREATE TABLE charge_refunds (
    company_id   TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    charge_id    TEXT    NOT NULL,
    number       BIGINT  NOT NULL, -- among the refunds of the charge, from 1
    amount_minor BIGINT  NOT NULL CHECK (amount_minor > 0),
    held_minor   BIGINT  NOT NULL, -- what the ledger has debited for it
    currency     TEXT    NOT NULL,
    cause        TEXT    NOT NULL CHECK (cause IN ('operator', 'verification')),
    refund_ref   TEXT    NOT NULL, -- at the provider
    provider_id  TEXT    NOT NULL, -- empty until the provider accepts it
    state        TEXT    NOT NULL CHECK (state IN (
        'requested', 'pending', 'stalled', 'done', 'refused', 'failed')),
    fence        BIGINT  NOT NULL, -- number of requests
    lease_until  BIGINT,
    unsure       BOOLEAN NOT NULL,
    message      TEXT    NOT NULL,
    last_error   TEXT,
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, refund_ref),
    UNIQUE (company_id, charge_id, number)
);

CREATE UNIQUE INDEX charge_refunds_open ON charge_refunds (company_id, charge_id)
    WHERE state IN ('requested', 'pending', 'stalled');
CREATE INDEX charge_refunds_by_state ON charge_refunds (state, id);
CREATE INDEX charge_refunds_undecided ON charge_refunds (created_at)
    WHERE state IN ('requested', 'pending', 'stalled');

ALTER TABLE service_refs ADD COLUMN charge_id TEXT;

-- The charge that settled the owner, else the latest. NULL: written by a host of the previous version
-- and not adopted yet. `revision` counts the writes of hosts that know charges.
ALTER TABLE payments ADD COLUMN charge_id TEXT;
ALTER TABLE payments ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cards ADD COLUMN charge_id TEXT;
ALTER TABLE cards ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE recollections ADD COLUMN charge_id TEXT;
ALTER TABLE recollections ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
-- The installments that a recollection repaid: due date and amount.
ALTER TABLE recollections ADD COLUMN applied JSONB;
CREATE INDEX payments_without_charge ON payments (created_at) WHERE charge_id IS NULL;
CREATE INDEX cards_without_charge ON cards (created_at) WHERE charge_id IS NULL;
CREATE INDEX recollections_without_charge ON recollections (created_at)
    WHERE charge_id IS NULL AND with_provider;
