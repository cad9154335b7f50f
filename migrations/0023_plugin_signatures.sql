-- The signature of a version, in hexadecimal, which every host verifies before it loads the component. NULL: no trusted publisher has signed
-- it. Empty: a host of an earlier release has verified it, and has not kept it.
ALTER TABLE plugin_versions ADD COLUMN signature TEXT;
UPDATE plugin_versions SET signature = '' WHERE publisher IS NOT NULL;

-- Keys of publishers that are trusted no more. They count for what was installed before.
CREATE TABLE plugin_publishers_gone (
    key        TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    added_at   BIGINT NOT NULL,
    removed_at BIGINT NOT NULL
);
