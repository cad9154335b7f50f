-- A person or service that uses the internal interface. `companies`: NULL for no limit.
CREATE TABLE operators (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    email      TEXT    UNIQUE,
    roles      JSONB   NOT NULL,
    companies  JSONB,
    active     BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL
);

-- How a person signs in: an Argon2id hash, and a sealed TOTP secret. A code is accepted once.
CREATE TABLE operator_passwords (
    operator_id  TEXT   NOT NULL PRIMARY KEY REFERENCES operators (id),
    hash         TEXT   NOT NULL,
    totp_secret  TEXT   NOT NULL,
    last_period  BIGINT NOT NULL, -- the period of the last accepted code
    failures     BIGINT NOT NULL, -- failed attempts since the last success
    locked_until BIGINT NOT NULL
);

-- Only the digest of a token is stored. `kind` is `token`, `session` or `invitation`.
CREATE TABLE operator_tokens (
    operator_id  TEXT   NOT NULL REFERENCES operators (id),
    id           TEXT   NOT NULL,
    kind         TEXT   NOT NULL,
    digest       TEXT   NOT NULL UNIQUE,
    prefix       TEXT   NOT NULL,
    label        TEXT,
    last_used_at BIGINT,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (operator_id, id)
);

-- A role beside the built-in ones.
CREATE TABLE operator_roles (
    name        TEXT   NOT NULL PRIMARY KEY,
    permissions JSONB  NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

-- NULL: no limit.
ALTER TABLE api_keys ADD COLUMN scopes JSONB;
ALTER TABLE api_keys ADD COLUMN addresses JSONB;

-- Entries of earlier versions have no number and no hash.
ALTER TABLE audit_log ADD COLUMN number BIGINT;
ALTER TABLE audit_log ADD COLUMN actor_id TEXT;
ALTER TABLE audit_log ADD COLUMN credential TEXT;
ALTER TABLE audit_log ADD COLUMN address TEXT;
ALTER TABLE audit_log ADD COLUMN request_id TEXT;
ALTER TABLE audit_log ADD COLUMN hash TEXT;
CREATE UNIQUE INDEX audit_log_by_number ON audit_log (company_id, number);

-- The end of the hash chain of a company's audit log ('' is the service).
CREATE TABLE audit_chains (
    company_id TEXT   NOT NULL PRIMARY KEY,
    number     BIGINT NOT NULL,
    hash       TEXT   NOT NULL
);

-- An action that needs the approval of a second operator. `digest` identifies operator and action.
CREATE TABLE approvals (
    id           TEXT   NOT NULL PRIMARY KEY,
    digest       TEXT   NOT NULL,
    company_id   TEXT   NOT NULL,
    permission   TEXT   NOT NULL,
    action       TEXT   NOT NULL,
    detail       JSONB  NOT NULL,
    state        TEXT   NOT NULL,
    operator_id  TEXT   NOT NULL,
    requested_by TEXT   NOT NULL,
    requested_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    decided_by   TEXT,
    decided_at   BIGINT
);
CREATE INDEX approvals_by_digest ON approvals (digest, expires_at);
CREATE INDEX approvals_by_request ON approvals (requested_at, id);

-- Keyed digest of the recipient, whose address is mostly hidden. NULL: a message of an earlier
-- version.
ALTER TABLE messages ADD COLUMN recipient_digest TEXT;
CREATE INDEX messages_of_recipient ON messages (company_id, recipient_digest, created_at, id);

-- Index of the totals of money that was taken.
CREATE INDEX charges_by_settlement ON charges (settled_at) WHERE settled_at IS NOT NULL;

-- Index of the loans of a user.
CREATE INDEX loans_of_user ON loans (company_id, user_key, created_at);

-- Indexes of GET /internal/v1/search.
CREATE INDEX payments_of_email ON payments (company_id, email, created_at);
CREATE INDEX cards_of_last4 ON cards (company_id, last4) WHERE removed_at IS NULL;
CREATE INDEX users_of_phone ON users (company_id, phone) WHERE phone IS NOT NULL;
-- Index of the timeline of a payment.
CREATE INDEX events_of_subject ON events (company_id, subject_id);
