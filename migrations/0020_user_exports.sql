-- Export files that exist or are being written, with the bytes reserved for each.
CREATE TABLE user_exports (
    company_id TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    removed_at BIGINT NOT NULL, -- when the file is to be removed
    PRIMARY KEY (company_id, name)
);

-- Not a file: every reservation updates this row first, so that reservations of all hosts run one at a time.
INSERT INTO user_exports (company_id, name, bytes, removed_at) VALUES ('', '', 0, 0);
