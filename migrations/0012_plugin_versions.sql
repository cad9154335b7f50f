-- Whoever changes the versions of a plugin holds its name.
CREATE TABLE plugin_names (
    name TEXT NOT NULL PRIMARY KEY
);
INSERT INTO plugin_names (name) SELECT DISTINCT name FROM plugins;

-- Which version of a plugin serves whom.
CREATE TABLE plugin_versions (
    name         TEXT   NOT NULL,
    digest       TEXT   NOT NULL REFERENCES plugin_components (digest),
    version      TEXT   NOT NULL,
    state        TEXT   NOT NULL CHECK (state IN ('waiting', 'ready', 'canary', 'active')),
    granted      JSONB,                      -- capabilities that an operator granted; NULL: all that it asks for
    percent      BIGINT NOT NULL DEFAULT 0,  -- of a canary: the share of what it is asked for
    companies    JSONB  NOT NULL,            -- of a canary: who is served by it alone
    installed_at BIGINT NOT NULL,
    active_at    BIGINT,                     -- since when, or when last, it served everyone; NULL: never, or it was rolled back
    PRIMARY KEY (name, digest)
);
CREATE UNIQUE INDEX plugin_versions_active ON plugin_versions (name) WHERE state = 'active';
CREATE UNIQUE INDEX plugin_versions_canary ON plugin_versions (name) WHERE state = 'canary';

INSERT INTO plugin_versions (name, digest, version, state, companies, installed_at, active_at)
    SELECT name, digest, version, CASE state WHEN 'active' THEN 'active' ELSE 'ready' END, '[]', installed_at, installed_at
    FROM plugins;
DROP TABLE plugins;

-- What uninstalled versions were, as far as later ones are compared with it.
CREATE TABLE plugin_versions_gone (
    name           TEXT   NOT NULL,
    digest         TEXT   NOT NULL,
    version        TEXT   NOT NULL,
    kind           TEXT   NOT NULL,
    secrets        JSONB  NOT NULL,
    uninstalled_at BIGINT NOT NULL,
    PRIMARY KEY (name, digest)
);
