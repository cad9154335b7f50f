-- Whether the movement may take the wallet below zero. NULL: written before this was recorded.
ALTER TABLE ledger_transactions ADD COLUMN overdraft_allowed BOOLEAN;

-- The next migration checks existing rows, under a lock that lets hosts write.
ALTER TABLE ledger_entries ADD CONSTRAINT ledger_entries_reference_their_transactions
    FOREIGN KEY (company_id, transaction_id) REFERENCES ledger_transactions (company_id, id) NOT VALID;

-- The ledger transaction that changed the balance last.
ALTER TABLE ledger_balances ADD COLUMN transaction_id TEXT;

CREATE TRIGGER ledger_transactions_keep BEFORE UPDATE OR DELETE ON ledger_transactions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_transactions_stay BEFORE TRUNCATE ON ledger_transactions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entries_stay BEFORE TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_stays BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A balance changes, its row stays.
CREATE FUNCTION refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% keeps its rows', TG_TABLE_NAME;
END $$;

CREATE TRIGGER ledger_balances_hold BEFORE DELETE ON ledger_balances
    FOR EACH ROW EXECUTE FUNCTION refuse_removal();
CREATE TRIGGER ledger_balances_keep BEFORE UPDATE OF company_id, account, currency ON ledger_balances
    FOR EACH ROW EXECUTE FUNCTION refuse_removal();
CREATE TRIGGER ledger_balances_stay BEFORE TRUNCATE ON ledger_balances
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_removal();

-- A wallet falls below zero only by an entry of a ledger transaction that allows it, once for each
-- transaction. A credit needs no allowance. The triggers call this only for a wallet below zero.
CREATE FUNCTION refuse_overdraft() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    change BIGINT := NEW.amount_minor;
    cause TEXT := NEW.transaction_id;
    allowed BOOLEAN;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        change := NEW.amount_minor - OLD.amount_minor;
        IF cause IS NOT DISTINCT FROM OLD.transaction_id THEN
            cause := NULL;
        END IF;
    END IF;
    -- The tables are named with their schema, so that no temporary table takes their place.
    EXECUTE format(
        'SELECT EXISTS (
             SELECT FROM %1$I.ledger_transactions t
             JOIN %1$I.ledger_entries e ON e.company_id = t.company_id AND e.transaction_id = t.id
             WHERE t.company_id = $1 AND t.id = $2 AND t.overdraft_allowed
                 AND e.account = $3 AND e.currency = $4 AND e.amount_minor = $5)', TG_TABLE_SCHEMA)
    INTO allowed
    USING NEW.company_id, COALESCE(cause, current_setting('tollhouse.ledger_transaction', TRUE)),
        NEW.account, NEW.currency, change;
    IF NOT allowed THEN
        RAISE EXCEPTION 'a wallet would fall below zero without an allowance' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER ledger_balances_begin_covered AFTER INSERT ON ledger_balances FOR EACH ROW
    WHEN (NEW.account = 'wallet' AND NEW.amount_minor < 0) EXECUTE FUNCTION refuse_overdraft();
CREATE TRIGGER ledger_balances_stay_covered AFTER UPDATE ON ledger_balances FOR EACH ROW
    WHEN (NEW.account = 'wallet' AND NEW.amount_minor < 0 AND NEW.amount_minor < OLD.amount_minor)
    EXECUTE FUNCTION refuse_overdraft();

-- Hosts of the version before neither record an allowance nor name the ledger transaction in the
-- balance. Of their movements only refunds may overdraw a wallet.
CREATE FUNCTION assume_allowance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.overdraft_allowed := TRUE;
    PERFORM set_config('tollhouse.ledger_transaction', NEW.id, TRUE); -- until the end of the transaction
    RETURN NEW;
END $$;

CREATE TRIGGER ledger_transactions_assume BEFORE INSERT ON ledger_transactions FOR EACH ROW
    WHEN (NEW.overdraft_allowed IS NULL AND NEW.kind = 'payment.refund') EXECUTE FUNCTION assume_allowance();
