-- A URL that receives events of a company, beside its `event_url`. `types`: the kinds of events; an
-- empty list for all.
CREATE TABLE event_endpoints (
    company_id            TEXT    NOT NULL,
    id                    TEXT    NOT NULL,
    url                   TEXT    NOT NULL,
    types                 JSONB   NOT NULL,
    description           TEXT,
    active                BOOLEAN NOT NULL,
    secret                TEXT    NOT NULL, -- sealed
    previous_secret       TEXT,             -- sealed; also signs until then
    previous_secret_until BIGINT,
    created_at            BIGINT  NOT NULL,
    updated_at            BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, url)
);

-- Whether an event is delivered to a URL only because an endpoint has it.
ALTER TABLE event_deliveries ADD COLUMN for_endpoint BOOLEAN NOT NULL DEFAULT FALSE;
