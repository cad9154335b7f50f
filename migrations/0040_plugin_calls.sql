-- Plugin calls about charges and refunds, for the days of the setting `call_log_days` and without
-- arguments and results. Ids sort by time, to the millisecond.
CREATE TABLE plugin_calls (
    company_id  TEXT    NOT NULL, -- empty for the service itself
    id          TEXT    NOT NULL,
    reference   TEXT    NOT NULL, -- of the charge, or the provider's id of a refund
    plugin      TEXT    NOT NULL,
    version     TEXT    NOT NULL,
    function    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL, -- `ok`, the category of the fault, or `timed_out`
    summary     TEXT    NOT NULL, -- of the result, for example the state of a payment
    is_unknown  BOOLEAN NOT NULL, -- its effect at the provider is unknown
    began_at    BIGINT  NOT NULL,
    duration_us BIGINT  NOT NULL,
    keep_until  BIGINT  NOT NULL,
    PRIMARY KEY (company_id, id)
);
CREATE INDEX plugin_calls_by_reference ON plugin_calls (company_id, reference, id);
CREATE INDEX plugin_calls_by_end ON plugin_calls (keep_until);

-- Numbers of all calls of a plugin version by hour, on all hosts.
CREATE TABLE plugin_call_hours (
    plugin      TEXT   NOT NULL,
    version     TEXT   NOT NULL,
    hour        BIGINT NOT NULL, -- its begin
    calls       BIGINT NOT NULL,
    ok          BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    unknown     BIGINT NOT NULL,
    duration_us BIGINT NOT NULL, -- sum over all calls
    PRIMARY KEY (plugin, version, hour)
);
