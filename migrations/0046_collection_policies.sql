-- How a company collects installments. A change is a new version; none is ever changed or deleted.
CREATE TABLE collection_policies (
    company_id TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    policy     JSONB  NOT NULL,
    changed_by TEXT   NOT NULL, -- name of the operator
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, version)
);

-- The attempts to collect an installment by a policy. `number` and `due_at` identify the installment,
-- as in `collections`, whose row the first attempt writes, so that hosts of the previous version do
-- not collect it again.
CREATE TABLE collection_attempts (
    company_id      TEXT   NOT NULL,
    loan_id         TEXT   NOT NULL,
    number          BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    attempt         BIGINT NOT NULL, -- from 1
    recollection_id TEXT   NOT NULL,
    policy_version  BIGINT NOT NULL,
    day             BIGINT NOT NULL, -- of the policy, after the due date
    reason          TEXT   NOT NULL CHECK (reason IN ('first', 'retry', 'next_instrument')),
    fee_minor       BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (company_id, loan_id, number, due_at, attempt),
    UNIQUE (company_id, recollection_id)
);

-- Simulations of policies select installments by due date.
CREATE INDEX loan_entries_by_due ON loan_entries (company_id, due_at);

-- What was reported about an installment, once each.
CREATE TABLE installment_reports (
    company_id TEXT   NOT NULL,
    loan_id    TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, loan_id, number, due_at, kind)
);

-- The least amount that a charge may take, if the provider knows partial debits.
ALTER TABLE charges ADD COLUMN at_least_minor BIGINT;

-- Why the provider declined the charge of a failed repayment.
ALTER TABLE recollections ADD COLUMN decline TEXT;
