-- Saved cards. One that was removed stays without its token until nobody can pay on its page any more: what comes in then is refunded.
CREATE TABLE cards (
    company_id      TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    user_key        TEXT    NOT NULL, -- the user's id
    user_id         TEXT    NOT NULL,
    run             TEXT,             -- of the request that made it
    status          TEXT    NOT NULL, -- 'pending', 'valid', 'failed', 'duplicate'
    is_default      BOOLEAN NOT NULL,
    payment_service TEXT    NOT NULL,
    account_id      TEXT    NOT NULL,
    amount_minor    BIGINT  NOT NULL, -- of the verification charge
    currency        TEXT    NOT NULL,
    email           TEXT    NOT NULL, -- of the first charge: providers ask for it with the token
    token           TEXT,             -- sealed
    signature       TEXT    NOT NULL,
    last4           TEXT    NOT NULL,
    holder          TEXT    NOT NULL,
    bin             TEXT    NOT NULL,
    brand           TEXT    NOT NULL,
    bank            TEXT    NOT NULL,
    country         TEXT    NOT NULL,
    exp_month       TEXT    NOT NULL,
    exp_year        TEXT    NOT NULL,
    service_ref     TEXT    NOT NULL,
    transaction_id  TEXT    NOT NULL,
    success_url     TEXT    NOT NULL,
    cancel_url      TEXT,
    checkout_url    TEXT,
    message         TEXT,
    removed_at      BIGINT,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX cards_of_user ON cards (company_id, user_key, created_at);
CREATE INDEX cards_removed ON cards (removed_at) WHERE removed_at IS NOT NULL;
CREATE UNIQUE INDEX cards_default ON cards (company_id, user_key) WHERE is_default;
CREATE UNIQUE INDEX cards_of_run ON cards (company_id, run);
CREATE UNIQUE INDEX cards_by_signature ON cards (company_id, user_key, payment_service, signature)
    WHERE status = 'valid' AND removed_at IS NULL;

-- Verification charges on their way back. They outlive their cards.
CREATE TABLE card_refunds (
    company_id      TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    card_id         TEXT   NOT NULL,
    status          TEXT   NOT NULL, -- 'requested', 'pending', 'done', 'failed'
    payment_service TEXT   NOT NULL,
    account_id      TEXT   NOT NULL,
    service_ref     TEXT   NOT NULL,
    transaction_id  TEXT   NOT NULL,
    amount_minor    BIGINT NOT NULL,
    currency        TEXT   NOT NULL,
    provider_id     TEXT   NOT NULL,
    tries           BIGINT NOT NULL, -- that were begun: an operator may begin another one
    message         TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX card_refunds_of_charge ON card_refunds (company_id, card_id, service_ref);
CREATE INDEX card_refunds_by_status ON card_refunds (status, id);

-- Permissions to debit a bank account, made elsewhere.
CREATE TABLE direct_debits (
    company_id      TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    user_key        TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    payment_service TEXT    NOT NULL,
    currency        TEXT    NOT NULL,
    token           TEXT    NOT NULL, -- sealed
    email           TEXT    NOT NULL,
    bank            TEXT    NOT NULL,
    active          BOOLEAN NOT NULL,
    is_default      BOOLEAN NOT NULL,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX direct_debits_default ON direct_debits (company_id, user_key) WHERE is_default;

-- Loans that were made elsewhere, as far as they are repaid here.
CREATE TABLE loans (
    company_id        TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    user_key          TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    amount_minor      BIGINT  NOT NULL,
    amount_paid_minor BIGINT  NOT NULL,
    currency          TEXT    NOT NULL,
    disbursed         BOOLEAN NOT NULL,
    last_pay_date     BIGINT,
    created_at        BIGINT  NOT NULL,
    updated_at        BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    CHECK (amount_paid_minor BETWEEN 0 AND amount_minor)
);

CREATE TABLE loan_entries (
    company_id      TEXT    NOT NULL,
    loan_id         TEXT    NOT NULL,
    number          BIGINT  NOT NULL,
    due_at          BIGINT  NOT NULL,
    amount_minor    BIGINT  NOT NULL,
    remaining_minor BIGINT  NOT NULL,
    automatic       BOOLEAN NOT NULL, -- collected when it is due
    PRIMARY KEY (company_id, loan_id, number),
    CHECK (remaining_minor BETWEEN 0 AND amount_minor)
);

CREATE TABLE recollections (
    company_id        TEXT    NOT NULL,
    id                TEXT    NOT NULL,
    run               TEXT,             -- of the request that made it
    loan_id           TEXT    NOT NULL,
    user_key          TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    status            TEXT    NOT NULL, -- 'pending', 'success', 'failed'
    amount_minor      BIGINT  NOT NULL,
    fees_minor        BIGINT  NOT NULL,
    currency          TEXT    NOT NULL,
    with_provider     BOOLEAN NOT NULL,
    payment_service   TEXT    NOT NULL,
    payment_channel   TEXT    NOT NULL,
    account_id        TEXT    NOT NULL,
    credits_wallet    BOOLEAN NOT NULL,
    reference         TEXT    NOT NULL,
    service_ref       TEXT    NOT NULL,
    transaction_id    TEXT    NOT NULL,
    message           TEXT    NOT NULL,
    callback_url      TEXT,
    repaid_at         BIGINT,
    card_id           TEXT,
    direct_debit_id   TEXT,
    success_url       TEXT,
    cancel_url        TEXT,
    checkout_url      TEXT,
    fee_key           TEXT,             -- of what the service charges for collecting it by itself
    metadata          JSONB   NOT NULL,
    created_at        BIGINT  NOT NULL,
    updated_at        BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX recollections_by_reference ON recollections (company_id, reference);
CREATE INDEX recollections_by_creation ON recollections (company_id, created_at, id);
CREATE INDEX recollections_by_update ON recollections (company_id, updated_at, id);
CREATE INDEX recollections_of_loan ON recollections (company_id, loan_id, created_at);
CREATE INDEX recollections_of_user ON recollections (company_id, user_key, created_at);

-- Installments that were looked at on their due dates: once each, whatever came of it.
CREATE TABLE collections (
    company_id      TEXT   NOT NULL,
    loan_id         TEXT   NOT NULL,
    number          BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    recollection_id TEXT,            -- NULL: nothing was charged
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (company_id, loan_id, number, due_at)
);

-- What neighbouring systems read by cursor.
CREATE TABLE streams (
    company_id TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    stream     TEXT   NOT NULL,
    data       JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX streams_in_order ON streams (stream, id);
