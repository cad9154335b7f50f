-- Bank accounts that a provider opened for a payer, whose transfers arrive without an order. A row
-- without a number is an account whose opening the provider has not confirmed.
CREATE TABLE virtual_accounts (
    company_id      TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    user_key        TEXT   NOT NULL,
    user_id         TEXT   NOT NULL,
    loan_id         TEXT,            -- the loan that transfers repay; NULL: they are payments
    payment_service TEXT   NOT NULL,
    account_id      TEXT   NOT NULL, -- the provider account
    account_ref     TEXT   NOT NULL, -- the reference at the provider
    provider_id     TEXT   NOT NULL,
    currency        TEXT   NOT NULL,
    account_number  TEXT   NOT NULL,
    bank            TEXT   NOT NULL,
    holder          TEXT   NOT NULL,
    closed_at       BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

-- A payer has one open account for each provider account, currency and loan.
CREATE UNIQUE INDEX virtual_accounts_open
    ON virtual_accounts (company_id, user_key, account_id, currency, COALESCE(loan_id, ''))
    WHERE closed_at IS NULL;
-- What a transfer names.
CREATE UNIQUE INDEX virtual_accounts_by_ref ON virtual_accounts (account_id, account_ref);
CREATE INDEX virtual_accounts_by_number ON virtual_accounts (account_id, account_number);
CREATE INDEX virtual_accounts_by_provider_id ON virtual_accounts (account_id, provider_id);
