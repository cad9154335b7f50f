-- The ledger account that has what a charge brought.
ALTER TABLE charges ADD COLUMN credited_to TEXT NOT NULL DEFAULT 'wallet'
    CHECK (credited_to IN ('wallet', 'verification', 'suspense'));

-- A difference between a charge and its provider that an operator must resolve.
CREATE TABLE exceptions (
    company_id      TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    kind            TEXT   NOT NULL,
    charge_id       TEXT   NOT NULL,
    expected_minor  BIGINT NOT NULL,
    currency        TEXT   NOT NULL,
    seen_minor      BIGINT, -- what the provider took; NULL: not known
    seen_currency   TEXT,
    state           TEXT   NOT NULL CHECK (state IN ('open', 'resolved')),
    reason          TEXT,   -- of the resolution
    created_at      BIGINT NOT NULL,
    resolved_at     BIGINT,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, charge_id, kind),
    CHECK ((state = 'resolved') = (resolved_at IS NOT NULL)),
    CHECK ((seen_minor IS NULL) = (seen_currency IS NULL))
);
CREATE INDEX exceptions_by_state ON exceptions (state, id);
