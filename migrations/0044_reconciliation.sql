-- The provider's fees, without what the payer paid on top. NULL: not known, because a host of the
-- previous version recorded the charge.
ALTER TABLE charges ADD COLUMN fees_minor BIGINT;
CREATE INDEX charges_by_account ON charges (account_id, settled_at) WHERE taken_minor IS NOT NULL;
CREATE INDEX charge_refunds_by_provider_id ON charge_refunds (provider_id) WHERE provider_id <> '';
CREATE INDEX charge_refunds_by_time ON charge_refunds (updated_at);

-- How far the transactions of a provider account were listed.
CREATE TABLE account_listings (
    account_id TEXT   NOT NULL PRIMARY KEY,
    begun_at   BIGINT NOT NULL, -- end of the first list: what was taken before may be missing
    since      BIGINT NOT NULL, -- the period of the current list
    until      BIGINT NOT NULL,
    step       TEXT   NOT NULL CHECK (step IN (
        'transactions', 'settlements', 'contents', 'check', 'unlisted', 'done')),
    next_page  TEXT,            -- where this step continues
    pages      BIGINT NOT NULL, -- number of pages that were listed
    check_at   BIGINT NOT NULL, -- when the step `check` may begin
    listed_at  BIGINT           -- end of the last complete list
);

-- A transaction in a provider's list, and what the host has recorded of it.
CREATE TABLE provider_transactions (
    account_id     TEXT   NOT NULL,
    kind           TEXT   NOT NULL CHECK (kind IN ('payment', 'refund', 'dispute')),
    provider_id    TEXT   NOT NULL,
    service_ref    TEXT   NOT NULL, -- of the payment, as transaction_id; '': not listed
    transaction_id TEXT   NOT NULL,
    amount_minor   BIGINT NOT NULL,
    fees_minor     BIGINT,          -- NULL: not listed
    currency       TEXT   NOT NULL,
    at             BIGINT NOT NULL,
    settlement_id  TEXT,            -- the provider's id
    company_id     TEXT   NOT NULL, -- '' without a charge
    charge_id      TEXT,
    record_id      TEXT,            -- the charge, refund or dispute that it matches
    result         TEXT   NOT NULL CHECK (result IN (
        'matched', 'not_recorded', 'amount_differs', 'fee_differs')),
    listed_until   BIGINT NOT NULL, -- end of the last list that has it
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind, provider_id)
);
CREATE INDEX provider_transactions_by_time ON provider_transactions (account_id, at);
CREATE INDEX provider_transactions_to_check ON provider_transactions (account_id, kind, provider_id)
    WHERE result <> 'matched';
CREATE INDEX provider_transactions_by_charge ON provider_transactions (company_id, charge_id);
CREATE INDEX provider_transactions_by_reference ON provider_transactions (account_id, service_ref);
CREATE INDEX provider_transactions_by_settlement ON provider_transactions (account_id, settlement_id)
    WHERE settlement_id IS NOT NULL;

-- A payout of a provider.
CREATE TABLE provider_settlements (
    account_id   TEXT    NOT NULL,
    provider_id  TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'paid', 'failed')),
    amount_minor BIGINT  NOT NULL, -- paid out
    gross_minor  BIGINT  NOT NULL, -- of its payments
    fees_minor   BIGINT  NOT NULL,
    deductions_minor BIGINT NOT NULL, -- refunds, disputes and others, as the provider states them
    currency     TEXT    NOT NULL,
    at           BIGINT  NOT NULL,
    is_listed    BOOLEAN NOT NULL, -- its payments were listed since it was paid
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    PRIMARY KEY (account_id, provider_id)
);
CREATE INDEX provider_settlements_by_time ON provider_settlements (account_id, at);

-- A closed day of a provider account, and its totals at that time.
CREATE TABLE closed_days (
    account_id TEXT   NOT NULL,
    day        BIGINT NOT NULL, -- its first moment in UTC
    totals     JSONB  NOT NULL,
    closed_at  BIGINT NOT NULL,
    closed_by  TEXT   NOT NULL,
    PRIMARY KEY (account_id, day)
);

-- Differences from a provider's list are exceptions, too. They may have no charge: `charge_id` is
-- then their own id, and `listed_charge_id` names the charge if there is one.
ALTER TABLE exceptions ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
ALTER TABLE exceptions ADD COLUMN subject TEXT NOT NULL DEFAULT ''; -- what differs, within the kind
ALTER TABLE exceptions ADD COLUMN day BIGINT;
ALTER TABLE exceptions ADD COLUMN listed_ref TEXT;
ALTER TABLE exceptions ADD COLUMN listed_charge_id TEXT;
ALTER TABLE exceptions ADD COLUMN expected_fees_minor BIGINT;
ALTER TABLE exceptions ADD COLUMN seen_fees_minor BIGINT;
-- What the provider has more than the records say, what operators have decided about it, and what
-- the ledger account `suspense` has because of the rest; the number of its ledger transactions.
ALTER TABLE exceptions ADD COLUMN excess_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN decided_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN suspense_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE exceptions ADD COLUMN postings BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX exceptions_by_subject ON exceptions (account_id, kind, subject)
    WHERE account_id <> '';
CREATE INDEX exceptions_by_day ON exceptions (account_id, day) WHERE account_id <> '';
CREATE INDEX exceptions_by_listed_charge ON exceptions (company_id, listed_charge_id)
    WHERE listed_charge_id IS NOT NULL;
