-- What of their metadata users are found by: a digest of each key with its value, where that is a text, a number or a boolean.
CREATE TABLE user_metadata (
    company_id TEXT NOT NULL,
    digest     TEXT NOT NULL,
    id         TEXT NOT NULL, -- of the user
    PRIMARY KEY (company_id, digest, id)
);

CREATE INDEX user_metadata_of_user ON user_metadata (company_id, id);

-- Lists read an index alone until they know what is on the page: it has all that they are narrowed by.
CREATE INDEX users_listed ON users (company_id, created_at, id, active, email_verified, phone_verified, country, date_of_birth,
    years_of_employment);
CREATE INDEX users_by_change ON users (company_id, updated_at, id);
CREATE INDEX users_by_first_name ON users (company_id, first_name, id);
CREATE INDEX users_by_last_name ON users (company_id, last_name, id);

-- One import of a company at a time.
CREATE TABLE user_imports (
    company_id  TEXT   NOT NULL,
    lease       TEXT   NOT NULL,
    lease_until BIGINT NOT NULL,
    PRIMARY KEY (company_id)
);
