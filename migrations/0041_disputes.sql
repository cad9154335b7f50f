-- A claim of a payer, through the bank, against a charge.
CREATE TABLE disputes (
    company_id   TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    charge_id    TEXT   NOT NULL,
    account_id   TEXT   NOT NULL,
    provider_id  TEXT   NOT NULL, -- the provider's id
    amount_minor BIGINT NOT NULL CHECK (amount_minor >= 0),
    currency     TEXT   NOT NULL,
    held_minor   BIGINT NOT NULL CHECK (held_minor >= 0), -- in the ledger account `disputed`
    lost_minor   BIGINT NOT NULL CHECK (lost_minor >= 0), -- that the ledger gave to the provider
    postings     BIGINT NOT NULL, -- number of its ledger transactions
    reason       TEXT   NOT NULL,
    state        TEXT   NOT NULL CHECK (state IN ('open', 'answered', 'won', 'lost')),
    answer_until BIGINT,          -- lease of the request that answers it
    due_at       BIGINT,
    opened_at    BIGINT NOT NULL,
    answered_at  BIGINT,
    closed_at    BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, account_id, provider_id),
    CONSTRAINT disputes_close_with_an_outcome CHECK ((closed_at IS NULL) = (state IN ('open', 'answered'))),
    CONSTRAINT disputes_hold_money_until_they_close CHECK (closed_at IS NULL OR held_minor = 0)
);
CREATE INDEX disputes_by_charge ON disputes (company_id, charge_id);
CREATE INDEX disputes_by_state ON disputes (state, id);

-- The amount of disputes that are open or lost, without what was refunded. Hosts of the previous
-- version do not know it: the check refuses a refund that they begin of a disputed amount.
ALTER TABLE charges ADD COLUMN disputed_minor BIGINT NOT NULL DEFAULT 0 CHECK (
    disputed_minor >= 0
    AND (disputed_minor = 0 OR refunded_minor + disputed_minor <= COALESCE(taken_minor, 0)));
