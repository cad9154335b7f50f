-- The company to whose team a person belongs; NULL: an operator of the service.
ALTER TABLE operators ADD COLUMN company_id TEXT;
CREATE INDEX operators_of_company ON operators (company_id) WHERE company_id IS NOT NULL;

-- The users whose identity records an operator has read in the last day.
CREATE TABLE identity_reads (
    operator_id TEXT   NOT NULL,
    company_id  TEXT   NOT NULL,
    user_key    TEXT   NOT NULL,
    read_at     BIGINT NOT NULL,
    PRIMARY KEY (operator_id, company_id, user_key)
);
