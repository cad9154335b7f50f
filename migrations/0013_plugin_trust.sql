-- Whose components are taken: the keys that their signatures are checked with, each as the one line of its PEM file.
CREATE TABLE plugin_publishers (
    name     TEXT   NOT NULL,
    key      TEXT   NOT NULL UNIQUE,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (name, key)
);

-- Who signed a version; NULL: nobody.
ALTER TABLE plugin_versions ADD COLUMN publisher TEXT;

-- Since when it is called no more, because it broke again and again; NULL: it is called.
ALTER TABLE plugin_versions ADD COLUMN quarantined_at BIGINT;
