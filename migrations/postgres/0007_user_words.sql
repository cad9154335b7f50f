-- What a search looks at: the searched fields in lower case, a line each.
CREATE TABLE user_words (
    company_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    words      TEXT NOT NULL,
    PRIMARY KEY (company_id, id)
);

-- Whoever owns the database may create this extension; wherever it is, its operators are found there.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
DO $$
DECLARE
    place TEXT;
BEGIN
    SELECT nspname INTO place FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE extname = 'pg_trgm';
    EXECUTE format('CREATE INDEX user_words_by_part ON user_words USING gin (words %I.gin_trgm_ops)', place);
END
$$;

-- Where parts of three letters and more are looked up.
CREATE VIEW user_phrases AS SELECT company_id, id, words FROM user_words;

INSERT INTO user_words (company_id, id, words)
SELECT company_id, id, lower(concat_ws(chr(10), user_id, first_name, last_name, middle_name, email, phone)) FROM users;

-- Names sort by their bytes, as in SQLite.
ALTER TABLE users ALTER COLUMN first_name TYPE TEXT COLLATE "C";
ALTER TABLE users ALTER COLUMN last_name TYPE TEXT COLLATE "C";
