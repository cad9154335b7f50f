-- Hosts of the previous version use the tables in this order. Locking the first one only when it is
-- dropped could deadlock with them.
LOCK TABLE ledger_entries, ledger_transactions IN ACCESS EXCLUSIVE MODE;

-- A ledger transaction has both of its sides in one row, so it sums to zero. A zero amount has no
-- accounts: it only reserves the key.
ALTER TABLE ledger_transactions
    ADD COLUMN debit TEXT,
    ADD COLUMN credit TEXT,
    ADD COLUMN currency TEXT,
    ADD COLUMN amount_minor BIGINT NOT NULL DEFAULT 0;

DROP TRIGGER ledger_transactions_keep ON ledger_transactions;
UPDATE ledger_transactions t
SET debit = d.account, credit = c.account, currency = c.currency, amount_minor = c.amount_minor
FROM ledger_entries d JOIN ledger_entries c ON c.company_id = d.company_id
    AND c.transaction_id = d.transaction_id AND c.currency = d.currency
    AND c.amount_minor = -d.amount_minor
WHERE d.company_id = t.company_id AND d.transaction_id = t.id AND d.amount_minor < 0;

DO $$
BEGIN
    IF (SELECT COUNT(*) FROM ledger_entries)
        <> 2 * (SELECT COUNT(*) FROM ledger_transactions WHERE amount_minor > 0)
    THEN
        RAISE EXCEPTION 'a row of ledger_entries is not one of the two sides of a ledger transaction';
    END IF;
END $$;

ALTER TABLE ledger_transactions ADD CONSTRAINT ledger_transactions_are_complete CHECK (
    amount_minor = 0 AND debit IS NULL AND credit IS NULL AND currency IS NULL
    OR amount_minor > 0 AND debit IS NOT NULL AND credit IS NOT NULL AND debit <> credit
        AND currency IS NOT NULL);

DROP TABLE ledger_entries;
CREATE VIEW ledger_entries AS
    SELECT company_id, id AS transaction_id, CAST(1 AS BIGINT) AS line, debit AS account, currency,
        -amount_minor AS amount_minor
    FROM ledger_transactions WHERE amount_minor > 0
    UNION ALL SELECT company_id, id, 2, credit, currency, amount_minor
    FROM ledger_transactions WHERE amount_minor > 0;

-- Amounts that `ledger_balances` does not include yet. A row per amount instead of an update of the
-- balance: a company's transactions do not wait for each other. Nothing is subtracted from a wallet
-- in this way.
CREATE TABLE ledger_deltas (
    company_id     TEXT   NOT NULL,
    account        TEXT   NOT NULL,
    currency       TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    amount_minor   BIGINT NOT NULL,
    PRIMARY KEY (company_id, account, currency, transaction_id),
    CHECK (account <> 'wallet' OR amount_minor > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TRIGGER ledger_deltas_keep BEFORE UPDATE ON ledger_deltas
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_deltas_stay BEFORE TRUNCATE ON ledger_deltas
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The balance of each ledger account. A sum beyond the range of BIGINT is shown as its limit, so
-- that one company's ledger does not break queries over all.
CREATE VIEW ledger_account_balances AS
    SELECT company_id, account, currency,
        CAST(GREATEST(LEAST(SUM(amount_minor), 9223372036854775807), -9223372036854775807) AS BIGINT)
            AS amount_minor
    FROM (SELECT company_id, account, currency, amount_minor FROM ledger_balances
        UNION ALL SELECT company_id, account, currency, amount_minor FROM ledger_deltas) parts
    GROUP BY company_id, account, currency;

-- Moves up to `most` deltas of an account into its balance; all if NULL. The lock on the balance
-- comes first, so that two calls do not wait for each other's deltas.
CREATE FUNCTION fold_ledger_account(company TEXT, ledger_account TEXT, code TEXT, most BIGINT)
    RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
    VALUES (company, ledger_account, code, 0) ON CONFLICT (company_id, account, currency) DO NOTHING;
    PERFORM FROM ledger_balances
    WHERE company_id = company AND account = ledger_account AND currency = code FOR UPDATE;
    WITH folded AS (
        DELETE FROM ledger_deltas WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ledger_deltas
            WHERE company_id = company AND account = ledger_account AND currency = code LIMIT most))
        RETURNING amount_minor)
    UPDATE ledger_balances SET amount_minor = amount_minor + (SELECT SUM(amount_minor) FROM folded)
    WHERE company_id = company AND account = ledger_account AND currency = code
        AND EXISTS (SELECT FROM folded);
END $$;

-- Inserting a ledger transaction posts it to the balances. Only a debit of the wallet, and a credit
-- by an operator, update a balance at once: the first needs cover, the second may exceed the range.
CREATE FUNCTION post_ledger_transaction() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    change BIGINT := CASE
        WHEN NEW.debit = 'wallet' THEN -NEW.amount_minor
        WHEN NEW.credit = 'wallet' AND NEW.debit = 'operator' THEN NEW.amount_minor
    END;
BEGIN
    INSERT INTO ledger_deltas (company_id, account, currency, transaction_id, amount_minor)
    SELECT NEW.company_id, side.account, NEW.currency, NEW.id, side.amount_minor
    FROM (VALUES (NEW.debit, -NEW.amount_minor), (NEW.credit, NEW.amount_minor)) side (account, amount_minor)
    WHERE change IS NULL OR side.account <> 'wallet';
    IF change IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE ledger_balances SET amount_minor = amount_minor + change, transaction_id = NEW.id
    WHERE company_id = NEW.company_id AND account = 'wallet' AND currency = NEW.currency
        AND amount_minor + change >= 0;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM fold_ledger_account(NEW.company_id, 'wallet', NEW.currency, NULL);
    UPDATE ledger_balances SET amount_minor = amount_minor + change, transaction_id = NEW.id
    WHERE company_id = NEW.company_id AND account = 'wallet' AND currency = NEW.currency
        AND (amount_minor + change >= 0 OR change > 0 OR NEW.overdraft_allowed);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the wallet does not cover the ledger transaction' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER ledger_transactions_post AFTER INSERT ON ledger_transactions
    FOR EACH ROW WHEN (NEW.amount_minor > 0) EXECUTE FUNCTION post_ledger_transaction();

-- Hosts of the previous version insert a ledger transaction without its sides, then an entry for
-- each side, and update the balances themselves.
CREATE FUNCTION post_former_entry() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    other TEXT[] := string_to_array(current_setting('tollhouse.ledger_entry', TRUE), E'\n');
BEGIN
    IF other[1] IS DISTINCT FROM NEW.transaction_id THEN
        PERFORM set_config('tollhouse.ledger_entry', -- until the end of the transaction
            concat_ws(E'\n', NEW.transaction_id, NEW.account, NEW.currency, NEW.amount_minor), TRUE);
        RETURN NEW;
    END IF;
    UPDATE ledger_transactions
    SET debit = CASE WHEN NEW.amount_minor < 0 THEN NEW.account ELSE other[2] END,
        credit = CASE WHEN NEW.amount_minor < 0 THEN other[2] ELSE NEW.account END,
        currency = NEW.currency, amount_minor = ABS(NEW.amount_minor)
    WHERE company_id = NEW.company_id AND id = NEW.transaction_id AND amount_minor = 0
        AND xmin = pg_current_xact_id()::xid AND NEW.currency = other[3] AND NEW.amount_minor = -other[4]::BIGINT;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a row of ledger_entries is not one of the two sides of a new ledger transaction';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER ledger_entries_post INSTEAD OF INSERT ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION post_former_entry();
CREATE TRIGGER ledger_transactions_hold BEFORE DELETE ON ledger_transactions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_transactions_keep BEFORE UPDATE ON ledger_transactions
    FOR EACH ROW WHEN (OLD.amount_minor <> 0 OR pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

-- These functions run as the owner of the tables: no temporary table may take the place of one.
DO $$
DECLARE
    function TEXT;
BEGIN
    FOREACH function IN ARRAY ARRAY['fold_ledger_account', 'post_ledger_transaction', 'post_former_entry'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', function, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %I FROM PUBLIC', function);
    END LOOP;
END $$;
