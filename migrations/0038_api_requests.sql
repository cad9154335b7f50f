-- Requests of companies to the API, for the days of the setting `api_log_days` and without paths,
-- query strings, bodies and messages. Ids sort by time, to the millisecond.
CREATE TABLE api_requests (
    company_id  TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    created_at  BIGINT NOT NULL, -- when the request began
    keep_until  BIGINT NOT NULL,
    request_id  TEXT   NOT NULL,
    key_id      TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    route       TEXT   NOT NULL, -- pattern of the path
    status      BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    address     TEXT,            -- of the client, or of the last proxy
    error       TEXT,            -- kind of the error
    field       TEXT,            -- field that the error names
    PRIMARY KEY (company_id, id)
);
CREATE INDEX api_requests_by_request ON api_requests (company_id, request_id);
CREATE INDEX api_requests_failed ON api_requests (company_id, id) WHERE status >= 400;
CREATE INDEX api_requests_by_end ON api_requests (keep_until);
