-- The account of an operator at an OpenID provider, stored at the first sign-in with it. One account
-- per operator and issuer.
CREATE TABLE operator_identities (
    operator_id TEXT   NOT NULL REFERENCES operators (id),
    issuer      TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (operator_id, issuer),
    UNIQUE (issuer, subject)
);
