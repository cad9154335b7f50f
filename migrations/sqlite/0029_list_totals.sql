-- Numbers of rows by the days (their first milliseconds, in UTC) and values that lists filter by. A
-- list leaves the columns of others at their defaults.
CREATE TABLE list_counts (
    company_id      TEXT    NOT NULL,
    list            TEXT    NOT NULL, -- the table whose rows are counted
    day             BIGINT  NOT NULL, -- of created_at
    paid_day        BIGINT  NOT NULL DEFAULT -9000000000000000, -- of paid_at; the default is no day
    status          TEXT    NOT NULL DEFAULT '',
    payment_service TEXT    NOT NULL DEFAULT '',
    payment_channel TEXT    NOT NULL DEFAULT '',
    country         TEXT    NOT NULL DEFAULT '',
    active          BOOLEAN NOT NULL DEFAULT FALSE,
    email_verified  BOOLEAN NOT NULL DEFAULT FALSE,
    phone_verified  BOOLEAN NOT NULL DEFAULT FALSE,
    number          BIGINT  NOT NULL,
    PRIMARY KEY (company_id, list, day, paid_day, status, payment_service, payment_channel, country,
        active, email_verified, phone_verified)
) WITHOUT ROWID;

-- What lists read their totals from. On PostgreSQL it has two parts.
CREATE VIEW list_totals AS SELECT * FROM list_counts;

CREATE TRIGGER payments_count_new AFTER INSERT ON payments BEGIN
    INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service,
        payment_channel, number)
    VALUES (NEW.company_id, 'payments',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000,
        COALESCE(NEW.paid_at - ((NEW.paid_at % 86400000) + 86400000) % 86400000, -9000000000000000),
        NEW.status, NEW.payment_service, NEW.payment_channel, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER payments_count_old AFTER DELETE ON payments BEGIN
    INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service,
        payment_channel, number)
    VALUES (OLD.company_id, 'payments',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000,
        COALESCE(OLD.paid_at - ((OLD.paid_at % 86400000) + 86400000) % 86400000, -9000000000000000),
        OLD.status, OLD.payment_service, OLD.payment_channel, -1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER payments_count_change AFTER UPDATE ON payments
WHEN (OLD.company_id, OLD.created_at, OLD.status, OLD.payment_service, OLD.payment_channel)
    <> (NEW.company_id, NEW.created_at, NEW.status, NEW.payment_service, NEW.payment_channel)
    OR OLD.paid_at IS NOT NEW.paid_at
BEGIN
    INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service,
        payment_channel, number)
    VALUES (OLD.company_id, 'payments',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000,
        COALESCE(OLD.paid_at - ((OLD.paid_at % 86400000) + 86400000) % 86400000, -9000000000000000),
        OLD.status, OLD.payment_service, OLD.payment_channel, -1),
        (NEW.company_id, 'payments',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000,
        COALESCE(NEW.paid_at - ((NEW.paid_at % 86400000) + 86400000) % 86400000, -9000000000000000),
        NEW.status, NEW.payment_service, NEW.payment_channel, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER users_count_new AFTER INSERT ON users BEGIN
    INSERT INTO list_counts (company_id, list, day, country, active, email_verified,
        phone_verified, number)
    VALUES (NEW.company_id, 'users',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, COALESCE(NEW.country, ''),
        NEW.active, NEW.email_verified, NEW.phone_verified, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER users_count_old AFTER DELETE ON users BEGIN
    INSERT INTO list_counts (company_id, list, day, country, active, email_verified,
        phone_verified, number)
    VALUES (OLD.company_id, 'users',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, COALESCE(OLD.country, ''),
        OLD.active, OLD.email_verified, OLD.phone_verified, -1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER users_count_change AFTER UPDATE ON users
WHEN (OLD.company_id, OLD.created_at, OLD.active, OLD.email_verified, OLD.phone_verified)
    <> (NEW.company_id, NEW.created_at, NEW.active, NEW.email_verified, NEW.phone_verified)
    OR OLD.country IS NOT NEW.country
BEGIN
    INSERT INTO list_counts (company_id, list, day, country, active, email_verified,
        phone_verified, number)
    VALUES (OLD.company_id, 'users',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, COALESCE(OLD.country, ''),
        OLD.active, OLD.email_verified, OLD.phone_verified, -1),
        (NEW.company_id, 'users',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, COALESCE(NEW.country, ''),
        NEW.active, NEW.email_verified, NEW.phone_verified, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER recollections_count_new AFTER INSERT ON recollections BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (NEW.company_id, 'recollections',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER recollections_count_old AFTER DELETE ON recollections BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (OLD.company_id, 'recollections',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, -1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER recollections_count_change AFTER UPDATE ON recollections
WHEN (OLD.company_id, OLD.created_at) <> (NEW.company_id, NEW.created_at)
BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (OLD.company_id, 'recollections',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, -1),
        (NEW.company_id, 'recollections',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER events_count_new AFTER INSERT ON events BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (NEW.company_id, 'events',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER events_count_old AFTER DELETE ON events BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (OLD.company_id, 'events',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, -1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER events_count_change AFTER UPDATE ON events
WHEN (OLD.company_id, OLD.created_at) <> (NEW.company_id, NEW.created_at)
BEGIN
    INSERT INTO list_counts (company_id, list, day, number)
    VALUES (OLD.company_id, 'events',
        OLD.created_at - ((OLD.created_at % 86400000) + 86400000) % 86400000, -1),
        (NEW.company_id, 'events',
        NEW.created_at - ((NEW.created_at % 86400000) + 86400000) % 86400000, 1)
    ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;

INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service, payment_channel,
    number)
SELECT company_id, 'payments',
    created_at - ((created_at % 86400000) + 86400000) % 86400000,
    COALESCE(paid_at - ((paid_at % 86400000) + 86400000) % 86400000, -9000000000000000),
    status, payment_service, payment_channel, COUNT(*)
FROM payments GROUP BY 1, 3, 4, 5, 6, 7;
INSERT INTO list_counts (company_id, list, day, country, active, email_verified, phone_verified,
    number)
SELECT company_id, 'users', created_at - ((created_at % 86400000) + 86400000) % 86400000,
    COALESCE(country, ''), active, email_verified, phone_verified, COUNT(*)
FROM users GROUP BY 1, 3, 4, 5, 6, 7;
INSERT INTO list_counts (company_id, list, day, number)
SELECT company_id, 'recollections', created_at - ((created_at % 86400000) + 86400000) % 86400000,
    COUNT(*)
FROM recollections GROUP BY 1, 3
UNION ALL SELECT company_id, 'events', created_at - ((created_at % 86400000) + 86400000) % 86400000,
    COUNT(*)
FROM events GROUP BY 1, 3;

-- Has the columns that the list filters by, so that rows are read only for one page.
CREATE INDEX payments_listed ON payments (company_id, created_at, id, status, payment_service,
    payment_channel, paid_at);
DROP INDEX payments_by_creation;
-- Shorter than `users_listed`, for totals that are not in `list_counts`.
CREATE INDEX users_counted ON users (company_id, date_of_birth, years_of_employment, country, active,
    email_verified, phone_verified);
