-- When a version first served anybody; NULL: never. Later ones are compared only with those that did.
ALTER TABLE plugin_versions ADD COLUMN served_at BIGINT;
UPDATE plugin_versions SET served_at = installed_at WHERE state <> 'waiting';
