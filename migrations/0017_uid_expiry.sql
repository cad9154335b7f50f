-- A repeated lookup used to extend a record; its 30 days run from its creation.
UPDATE uids SET expires_at = created_at + 2592000000 WHERE expires_at > created_at + 2592000000;
