-- What a search looks at: the searched fields in lower case, a line each.
CREATE TABLE user_words (
    number     INTEGER PRIMARY KEY, -- named, since a backup may give other numbers to rows that have no name for theirs
    company_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    words      TEXT NOT NULL,
    UNIQUE (company_id, id)
);

CREATE VIRTUAL TABLE user_trigrams
USING fts5 (words, content = 'user_words', content_rowid = 'number', tokenize = 'trigram', detail = 'none');

CREATE TRIGGER user_words_begin AFTER INSERT ON user_words BEGIN
    INSERT INTO user_trigrams (rowid, words) VALUES (new.number, new.words);
END;
CREATE TRIGGER user_words_change AFTER UPDATE ON user_words BEGIN
    INSERT INTO user_trigrams (user_trigrams, rowid, words) VALUES ('delete', old.number, old.words);
    INSERT INTO user_trigrams (rowid, words) VALUES (new.number, new.words);
END;
CREATE TRIGGER user_words_end AFTER DELETE ON user_words BEGIN
    INSERT INTO user_trigrams (user_trigrams, rowid, words) VALUES ('delete', old.number, old.words);
END;

-- Where parts of three letters and more are looked up; by the trigrams first, which a cross join says.
CREATE VIEW user_phrases AS
SELECT user_words.company_id, user_words.id, user_trigrams.words
FROM user_trigrams CROSS JOIN user_words ON user_words.number = user_trigrams.rowid;

INSERT INTO user_words (company_id, id, words)
SELECT company_id, id, lower(concat_ws(char(10), user_id, first_name, last_name, middle_name, email, phone)) FROM users;
