-- What the items cost that the service bills, in minor units of the currency in which wallets are billed. '' is the default plan.
CREATE TABLE prices (
    company_id   TEXT   NOT NULL,
    item         TEXT   NOT NULL,
    amount_minor BIGINT NOT NULL CHECK (amount_minor >= 0),
    PRIMARY KEY (company_id, item)
);

-- Operators are told when a charge takes a wallet below it. NULL: the service's.
ALTER TABLE companies ADD COLUMN low_balance_minor BIGINT;

-- What operators and neighbouring systems are told. They read it in the order of ids.
CREATE TABLE operator_events (
    company_id TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    data       JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX operator_events_in_order ON operator_events (id);
