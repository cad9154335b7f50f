-- Hosts of the previous version lock rows of payments before they write them. Taking this lock only
-- when the index is dropped could deadlock with them.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE payments IN ACCESS EXCLUSIVE MODE;
LOCK TABLE recollections, events IN SHARE ROW EXCLUSIVE MODE;

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
);

-- Changes that `list_counts` does not include yet. A row per change instead of an update of the
-- number: the writers of a company do not wait for each other.
CREATE TABLE list_deltas (
    id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 32),
    LIKE list_counts INCLUDING DEFAULTS,
    PRIMARY KEY (company_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE VIEW list_totals AS
    SELECT company_id, list, day, paid_day, status, payment_service, payment_channel, country, active,
        email_verified, phone_verified, number
    FROM list_counts
    UNION ALL SELECT company_id, list, day, paid_day, status, payment_service, payment_channel,
        country, active, email_verified, phone_verified, number
    FROM list_deltas;

-- Moves up to `most` deltas into the counts, and returns their number. Concurrent calls do not wait
-- for each other's deltas, and update the counts in the same order.
CREATE FUNCTION fold_list_deltas(most BIGINT) RETURNS BIGINT LANGUAGE sql SECURITY DEFINER AS $$
    WITH folded AS (
        DELETE FROM list_deltas WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM list_deltas ORDER BY company_id, id LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING *),
    counted AS (
        INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service,
            payment_channel, country, active, email_verified, phone_verified, number)
        SELECT company_id, list, day, paid_day, status, payment_service, payment_channel, country,
            active, email_verified, phone_verified, SUM(number)
        FROM folded
        GROUP BY company_id, list, day, paid_day, status, payment_service, payment_channel, country,
            active, email_verified, phone_verified
        HAVING SUM(number) <> 0
        ORDER BY company_id, list, day, paid_day, status, payment_service, payment_channel, country,
            active, email_verified, phone_verified
        ON CONFLICT ON CONSTRAINT list_counts_pkey
        DO UPDATE SET number = list_counts.number + excluded.number)
    SELECT COUNT(*) FROM folded;
$$;

CREATE FUNCTION utc_day(at BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
    SELECT at - ((at % 86400000) + 86400000) % 86400000;
$$;

CREATE FUNCTION count_payment() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO list_deltas (company_id, list, day, paid_day, status, payment_service,
            payment_channel, number)
        VALUES (OLD.company_id, 'payments', utc_day(OLD.created_at),
            COALESCE(utc_day(OLD.paid_at), -9000000000000000), OLD.status, OLD.payment_service,
            OLD.payment_channel, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO list_deltas (company_id, list, day, paid_day, status, payment_service,
            payment_channel, number)
        VALUES (NEW.company_id, 'payments', utc_day(NEW.created_at),
            COALESCE(utc_day(NEW.paid_at), -9000000000000000), NEW.status, NEW.payment_service,
            NEW.payment_channel, 1);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION count_user() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO list_deltas (company_id, list, day, country, active, email_verified,
            phone_verified, number)
        VALUES (OLD.company_id, 'users', utc_day(OLD.created_at), COALESCE(OLD.country, ''),
            OLD.active, OLD.email_verified, OLD.phone_verified, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO list_deltas (company_id, list, day, country, active, email_verified,
            phone_verified, number)
        VALUES (NEW.company_id, 'users', utc_day(NEW.created_at), COALESCE(NEW.country, ''),
            NEW.active, NEW.email_verified, NEW.phone_verified, 1);
    END IF;
    RETURN NULL;
END $$;

-- Counts the rows of a table whose list has only periods of creation.
CREATE FUNCTION count_row() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO list_deltas (company_id, list, day, number)
        VALUES (OLD.company_id, TG_TABLE_NAME, utc_day(OLD.created_at), -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO list_deltas (company_id, list, day, number)
        VALUES (NEW.company_id, TG_TABLE_NAME, utc_day(NEW.created_at), 1);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER payments_count AFTER INSERT OR DELETE ON payments
    FOR EACH ROW EXECUTE FUNCTION count_payment();
CREATE TRIGGER payments_recount AFTER UPDATE ON payments FOR EACH ROW
    WHEN ((OLD.company_id, OLD.created_at, OLD.paid_at, OLD.status, OLD.payment_service, OLD.payment_channel)
        IS DISTINCT FROM
        (NEW.company_id, NEW.created_at, NEW.paid_at, NEW.status, NEW.payment_service, NEW.payment_channel))
    EXECUTE FUNCTION count_payment();
CREATE TRIGGER users_count AFTER INSERT OR DELETE ON users
    FOR EACH ROW EXECUTE FUNCTION count_user();
CREATE TRIGGER users_recount AFTER UPDATE ON users FOR EACH ROW
    WHEN ((OLD.company_id, OLD.created_at, OLD.country, OLD.active, OLD.email_verified, OLD.phone_verified)
        IS DISTINCT FROM
        (NEW.company_id, NEW.created_at, NEW.country, NEW.active, NEW.email_verified, NEW.phone_verified))
    EXECUTE FUNCTION count_user();
CREATE TRIGGER recollections_count AFTER INSERT OR DELETE ON recollections
    FOR EACH ROW EXECUTE FUNCTION count_row();
CREATE TRIGGER recollections_recount AFTER UPDATE ON recollections FOR EACH ROW
    WHEN ((OLD.company_id, OLD.created_at) IS DISTINCT FROM (NEW.company_id, NEW.created_at))
    EXECUTE FUNCTION count_row();
CREATE TRIGGER events_count AFTER INSERT OR DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION count_row();
CREATE TRIGGER events_recount AFTER UPDATE ON events FOR EACH ROW
    WHEN ((OLD.company_id, OLD.created_at) IS DISTINCT FROM (NEW.company_id, NEW.created_at))
    EXECUTE FUNCTION count_row();

INSERT INTO list_counts (company_id, list, day, paid_day, status, payment_service, payment_channel,
    number)
SELECT company_id, 'payments', utc_day(created_at), COALESCE(utc_day(paid_at), -9000000000000000),
    status, payment_service, payment_channel, COUNT(*)
FROM payments GROUP BY 1, 3, 4, 5, 6, 7;
INSERT INTO list_counts (company_id, list, day, country, active, email_verified, phone_verified,
    number)
SELECT company_id, 'users', utc_day(created_at), COALESCE(country, ''), active, email_verified,
    phone_verified, COUNT(*)
FROM users GROUP BY 1, 3, 4, 5, 6, 7;
INSERT INTO list_counts (company_id, list, day, number)
SELECT company_id, 'recollections', utc_day(created_at), COUNT(*) FROM recollections GROUP BY 1, 3
UNION ALL SELECT company_id, 'events', utc_day(created_at), COUNT(*) FROM events GROUP BY 1, 3;

-- Has the columns that the list filters by, so that rows are read only for one page.
CREATE INDEX payments_listed ON payments (company_id, created_at, id, status, payment_service,
    payment_channel, paid_at);
DROP INDEX payments_by_creation;
-- Shorter than `users_listed`, for totals that are not in `list_counts`.
CREATE INDEX users_counted ON users (company_id, date_of_birth, years_of_employment, country, active,
    email_verified, phone_verified);

-- These functions run as the owner of the tables: no temporary table may take the place of one.
DO $$
DECLARE
    function TEXT;
BEGIN
    FOREACH function IN ARRAY ARRAY['fold_list_deltas', 'count_payment', 'count_user', 'count_row'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', function, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %I FROM PUBLIC', function);
    END LOOP;
END $$;
