-- Portable: only TEXT, BIGINT, BOOLEAN, JSONB and BYTEA, so one file serves both engines. (SQLite takes any type name; JSONB
-- there is a label on JSON text.) Times are BIGINT milliseconds since 1970, UTC; amounts are BIGINT minor units. Keys of tenant
-- tables begin with the company, so that they can be distributed by it; '' stands for the service itself.

CREATE TABLE companies (
    id                          TEXT    NOT NULL PRIMARY KEY,
    name                        TEXT    NOT NULL,
    server                      TEXT    NOT NULL CHECK (server IN ('live', 'test')),
    logo                        TEXT,
    event_url                   TEXT,
    payment_service             TEXT,
    active                      BOOLEAN NOT NULL,
    event_secret                TEXT    NOT NULL, -- sealed
    previous_event_secret       TEXT,             -- sealed; signs beside the new one until then
    previous_event_secret_until BIGINT,
    subscription_active         BOOLEAN NOT NULL,
    subscription_expires_at     BIGINT,
    features                    JSONB,            -- NULL: all of them
    created_at                  BIGINT  NOT NULL,
    updated_at                  BIGINT  NOT NULL
);

CREATE TABLE api_keys (
    company_id   TEXT   NOT NULL REFERENCES companies (id),
    id           TEXT   NOT NULL,
    digest       TEXT   NOT NULL UNIQUE, -- SHA-256 of the key, hexadecimal
    prefix       TEXT   NOT NULL,
    label        TEXT,
    last_used_at BIGINT,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

-- A request that was sent under an Idempotency-Key, for a day: under way while it has a lease, then with its answer.
CREATE TABLE idempotency_keys (
    company_id  TEXT   NOT NULL, -- '' for operators
    id          TEXT   NOT NULL, -- SHA-256 of method, path and key, hexadecimal
    run_id      TEXT   NOT NULL, -- of all runs of the request: names what it makes
    content     TEXT   NOT NULL, -- sealed digest of what was sent
    lease       TEXT,
    lease_until BIGINT NOT NULL,
    answer      TEXT,            -- sealed
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE audit_log (
    company_id TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    actor      TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    detail     JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX audit_log_by_creation ON audit_log (company_id, created_at, id);

-- A set of credentials at a provider. `id` is the unguessable account of the notification URL.
CREATE TABLE provider_accounts (
    company_id  TEXT    NOT NULL,
    provider    TEXT    NOT NULL,
    id          TEXT    NOT NULL UNIQUE,
    credentials TEXT,   -- sealed JSON object
    active      BOOLEAN NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (company_id, provider)
);

-- Whose reference it is that a provider account knows. Notifications are routed by it.
CREATE TABLE service_refs (
    account_id  TEXT   NOT NULL,
    service_ref TEXT   NOT NULL,
    company_id  TEXT   NOT NULL,
    subject     TEXT   NOT NULL, -- 'payment'
    subject_id  TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, service_ref)
);

CREATE INDEX service_refs_of_subject ON service_refs (company_id, subject, subject_id);

CREATE TABLE users (
    company_id          TEXT    NOT NULL REFERENCES companies (id),
    id                  TEXT    NOT NULL,
    user_id             TEXT    NOT NULL,
    first_name          TEXT    NOT NULL,
    last_name           TEXT    NOT NULL,
    middle_name         TEXT,
    email               TEXT,
    email_key           TEXT,   -- the e-mail as it is compared
    phone               TEXT,
    date_of_birth       TEXT,   -- YYYY-MM-DD
    gender              TEXT,
    address             TEXT,
    state               TEXT,
    city                TEXT,
    country             TEXT,
    country_code        TEXT,
    image               TEXT,
    employment_status   TEXT,
    years_of_employment BIGINT,
    email_verified      BOOLEAN NOT NULL,
    phone_verified      BOOLEAN NOT NULL,
    active              BOOLEAN NOT NULL,
    metadata            JSONB   NOT NULL,
    created_at          BIGINT  NOT NULL,
    updated_at          BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, user_id),
    UNIQUE (company_id, email_key)
);

-- Double entry. Each company has its own book: what enters its wallet leaves another account of the same book.
CREATE TABLE ledger_transactions (
    company_id TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    key        TEXT   NOT NULL, -- what makes the movement unique
    kind       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, key)
);

CREATE INDEX ledger_transactions_by_creation ON ledger_transactions (company_id, created_at, id);

CREATE TABLE ledger_entries (
    company_id     TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    line           BIGINT NOT NULL,
    account        TEXT   NOT NULL,
    currency       TEXT   NOT NULL,
    amount_minor   BIGINT NOT NULL,
    PRIMARY KEY (company_id, transaction_id, line)
);

CREATE TABLE ledger_balances (
    company_id   TEXT   NOT NULL,
    account      TEXT   NOT NULL,
    currency     TEXT   NOT NULL,
    amount_minor BIGINT NOT NULL,
    PRIMARY KEY (company_id, account, currency)
);

CREATE TABLE payments (
    company_id       TEXT    NOT NULL REFERENCES companies (id),
    id               TEXT    NOT NULL,
    user_key         TEXT,    -- users.id
    user_id          TEXT,
    email            TEXT    NOT NULL,
    payment_service  TEXT    NOT NULL,
    account_id       TEXT    NOT NULL,
    credits_wallet   BOOLEAN NOT NULL, -- the service's own provider account
    amount_minor     BIGINT  NOT NULL CHECK (amount_minor > 0),
    fees_minor       BIGINT  NOT NULL,
    currency         TEXT    NOT NULL,
    reference        TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN ('pending', 'success', 'failed', 'refunded')),
    narration        TEXT    NOT NULL,
    payment_response TEXT    NOT NULL,
    metadata         JSONB   NOT NULL,
    service_ref      TEXT    NOT NULL,
    transaction_id   TEXT    NOT NULL,
    message          TEXT    NOT NULL,
    callback_url     TEXT,
    success_url      TEXT    NOT NULL,
    cancel_url       TEXT,
    checkout_url     TEXT,
    starting_until   BIGINT, -- somebody is at the provider for the checkout URL
    channels         JSONB   NOT NULL,
    paid_at          BIGINT,
    payment_channel  TEXT    NOT NULL,
    created_at       BIGINT  NOT NULL,
    updated_at       BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, reference)
);

CREATE INDEX payments_by_creation ON payments (company_id, created_at, id);
CREATE INDEX payments_by_update ON payments (company_id, updated_at, id);
-- What the reconciler still asks about.
CREATE INDEX payments_pending ON payments (created_at) WHERE status = 'pending';
CREATE INDEX payments_of_user ON payments (company_id, user_key, created_at);
CREATE INDEX payments_of_user_id ON payments (company_id, user_id, created_at);

CREATE TABLE refunds (
    company_id   TEXT    NOT NULL,
    payment_id   TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('requested', 'pending', 'done', 'failed')),
    amount_minor BIGINT  NOT NULL,
    provider_id  TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    asking_until BIGINT,
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    PRIMARY KEY (company_id, payment_id)
);

-- What providers told us, without what it holds of persons: who, about what, and a digest to know a repetition by.
CREATE TABLE notifications (
    account_id  TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    company_id  TEXT   NOT NULL,
    provider    TEXT   NOT NULL,
    about       JSONB  NOT NULL,
    copies      BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, digest)
);

CREATE TABLE jobs (
    company_id TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    run_at     BIGINT NOT NULL, -- while a job runs: when its lease ends
    due_at     BIGINT NOT NULL, -- while a job runs: when it became due
    lease      TEXT,            -- who runs it
    wakes      BIGINT NOT NULL, -- how often it was asked for
    failures   BIGINT NOT NULL,
    PRIMARY KEY (company_id, kind, subject)
);

CREATE INDEX jobs_due ON jobs (run_at);

CREATE TABLE events (
    company_id TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    subject_id TEXT   NOT NULL,
    body       TEXT   NOT NULL, -- the bytes that are signed and sent
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX events_by_creation ON events (company_id, created_at, id);

CREATE TABLE event_deliveries (
    company_id   TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    event_id     TEXT   NOT NULL,
    url          TEXT   NOT NULL,
    state        TEXT   NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'disabled')),
    tries        BIGINT NOT NULL, -- since it was last queued
    queued       BIGINT NOT NULL, -- how often it was
    attempts     BIGINT NOT NULL, -- ever
    created_at   BIGINT NOT NULL,
    delivered_at BIGINT,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, event_id, url)
);

-- What has not arrived: never tried, and tried in vain.
CREATE INDEX event_deliveries_untried ON event_deliveries (created_at) WHERE state = 'pending' AND attempts = 0;
CREATE INDEX event_deliveries_retried ON event_deliveries (created_at) WHERE state = 'pending' AND attempts > 0;
CREATE INDEX event_deliveries_to ON event_deliveries (company_id, url, state);

CREATE TABLE event_attempts (
    company_id  TEXT   NOT NULL,
    delivery_id TEXT   NOT NULL,
    number      BIGINT NOT NULL,
    status      BIGINT, -- of HTTP; NULL when there was no answer
    error       TEXT   NOT NULL,
    duration_ms BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (company_id, delivery_id, number)
);

-- Only destinations that have trouble stand here.
CREATE TABLE event_destinations (
    company_id      TEXT   NOT NULL,
    url             TEXT   NOT NULL,
    failing_since   BIGINT NOT NULL, -- when the present run of failures began
    last_failure_at BIGINT NOT NULL,
    disabled_at     BIGINT,
    reason          TEXT   NOT NULL,
    PRIMARY KEY (company_id, url)
);

CREATE TABLE plugin_components (
    digest     TEXT   NOT NULL PRIMARY KEY, -- SHA-256, hexadecimal
    wasm       BYTEA  NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE plugins (
    name         TEXT   NOT NULL,
    digest       TEXT   NOT NULL REFERENCES plugin_components (digest),
    version      TEXT   NOT NULL,
    state        TEXT   NOT NULL CHECK (state IN ('active', 'retired')),
    installed_at BIGINT NOT NULL,
    PRIMARY KEY (name, digest)
);

CREATE UNIQUE INDEX plugins_active ON plugins (name) WHERE state = 'active';
