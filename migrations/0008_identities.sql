-- What a register said of somebody, until it is erased.
CREATE TABLE uids (
    company_id  TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    lookup      TEXT   NOT NULL, -- keyed digest of user, type and identifier: who looks the same up again gets this row
    user_key    TEXT,            -- the linked user's id
    user_id     TEXT,            -- as it was sent
    identity    TEXT   NOT NULL,
    record      TEXT   NOT NULL, -- sealed JSON
    verified_at BIGINT,
    verified_by JSONB  NOT NULL,
    expires_at  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX uids_by_lookup ON uids (company_id, lookup);
CREATE INDEX uids_of_user ON uids (company_id, user_key);
CREATE INDEX uids_by_end ON uids (expires_at);

-- Types of identity that operators switched; what is not here is on. '' is everyone, for whom and for the company it must be on.
CREATE TABLE identity_switches (
    company_id TEXT    NOT NULL,
    identity   TEXT    NOT NULL,
    active     BOOLEAN NOT NULL,
    updated_at BIGINT  NOT NULL,
    PRIMARY KEY (company_id, identity)
);
