-- Indexes of GET /internal/v1/search: by the id of a request, and by an amount, newest first.
CREATE INDEX audit_log_of_request ON audit_log (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX payments_of_amount ON payments (amount_minor, created_at);
CREATE INDEX recollections_of_amount ON recollections (amount_minor, created_at);

-- Index of today's automatic collections.
CREATE INDEX collections_by_creation ON collections (created_at);

-- Indexes of the timeline of a payment: the audit log's entries about it, also those of approvals,
-- and the webhooks that name its references. A webhook about several records is found by the first.
CREATE INDEX audit_log_of_payment
    ON audit_log (company_id, COALESCE(detail ->> 'payment', detail -> 'detail' ->> 'payment'))
    WHERE COALESCE(detail ->> 'payment', detail -> 'detail' ->> 'payment') IS NOT NULL;
CREATE INDEX notifications_of_reference
    ON notifications (account_id, (about -> 0 ->> 'service_ref'));

-- A host that serves, as it last reported; deleted when it stops, or a day after its last report.
CREATE TABLE hosts (
    id           TEXT    NOT NULL PRIMARY KEY,
    version      TEXT    NOT NULL,
    runs_jobs    BOOLEAN NOT NULL,
    running_jobs BIGINT  NOT NULL,
    plugins      JSONB   NOT NULL, -- serving versions: name, version, digest, state, quarantined
    started_at   BIGINT  NOT NULL,
    seen_at      BIGINT  NOT NULL
);

-- Filters of a list that an operator saved under a name. They hold no personal data.
CREATE TABLE operator_views (
    operator_id TEXT   NOT NULL, -- '': the configured operator token
    list        TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    filters     JSONB  NOT NULL,
    saved_at    BIGINT NOT NULL,
    PRIMARY KEY (operator_id, list, name)
);
