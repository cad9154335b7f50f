-- Calls of plugins that were written down, with nobody recognisable in them, for as long as the operator has them kept.
CREATE TABLE plugin_recordings (
    company_id TEXT    NOT NULL,  -- '': the service itself
    id         TEXT    NOT NULL,
    plugin     TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    function   TEXT    NOT NULL,
    outcome    TEXT    NOT NULL,
    faithful   BOOLEAN NOT NULL,  -- whether it came to the same end when it was made once more with what is masked
    began_at   BIGINT  NOT NULL,
    keep_until BIGINT  NOT NULL,
    recording  TEXT    NOT NULL,  -- sealed
    PRIMARY KEY (company_id, id)
);
CREATE INDEX plugin_recordings_by_plugin ON plugin_recordings (plugin, id);
CREATE INDEX plugin_recordings_by_end ON plugin_recordings (keep_until);
