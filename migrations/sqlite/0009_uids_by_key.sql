-- Counts records by the name of their key, without reading the photos in them.
CREATE INDEX uids_by_key ON uids (substr(record, 4, 8));
