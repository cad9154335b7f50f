-- Whether the movement may take the wallet below zero. NULL: written before this was recorded.
ALTER TABLE ledger_transactions ADD COLUMN overdraft_allowed BOOLEAN;
-- The ledger transaction that changed the balance last.
ALTER TABLE ledger_balances ADD COLUMN transaction_id TEXT;

-- SQLite cannot add a foreign key to an existing table, so a trigger takes its place. This fails when an
-- existing entry has no ledger transaction.
CREATE TEMP TABLE orphans (
    entries BIGINT NOT NULL CONSTRAINT ledger_entries_reference_their_transactions CHECK (entries = 0)
);
INSERT INTO orphans SELECT COUNT(*) FROM ledger_entries e WHERE NOT EXISTS (
    SELECT 1 FROM ledger_transactions t WHERE t.company_id = e.company_id AND t.id = e.transaction_id);
DROP TABLE orphans;

CREATE TRIGGER ledger_transactions_keep BEFORE UPDATE ON ledger_transactions
BEGIN SELECT RAISE(ABORT, 'ledger_transactions is append-only'); END;
CREATE TRIGGER ledger_transactions_hold BEFORE DELETE ON ledger_transactions
BEGIN SELECT RAISE(ABORT, 'ledger_transactions is append-only'); END;

-- INSERT OR REPLACE deletes conflicting rows, and fires delete triggers only if the connection has set
-- `recursive_triggers`. NEW.rowid is positive only if the statement gives a rowid.
CREATE TRIGGER audit_log_stays BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE company_id = NEW.company_id AND id = NEW.id)
    OR NEW.rowid > 0 AND EXISTS (SELECT 1 FROM audit_log WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only'); END;

CREATE TRIGGER ledger_transactions_stay BEFORE INSERT ON ledger_transactions
WHEN EXISTS (SELECT 1 FROM ledger_transactions WHERE company_id = NEW.company_id AND id = NEW.id)
    OR EXISTS (SELECT 1 FROM ledger_transactions WHERE company_id = NEW.company_id AND key = NEW.key)
    OR NEW.rowid > 0 AND EXISTS (SELECT 1 FROM ledger_transactions WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'ledger_transactions is append-only'); END;

CREATE TRIGGER ledger_entries_stay BEFORE INSERT ON ledger_entries BEGIN
    SELECT RAISE(ABORT, 'ledger_entries is append-only')
    WHERE EXISTS (SELECT 1 FROM ledger_entries
            WHERE company_id = NEW.company_id AND transaction_id = NEW.transaction_id AND line = NEW.line)
        OR NEW.rowid > 0 AND EXISTS (SELECT 1 FROM ledger_entries WHERE rowid = NEW.rowid);
    SELECT RAISE(ABORT, 'a row of ledger_entries references no ledger transaction')
    WHERE NOT EXISTS (
        SELECT 1 FROM ledger_transactions WHERE company_id = NEW.company_id AND id = NEW.transaction_id);
END;

-- A balance changes, its row stays.
CREATE TRIGGER ledger_balances_hold BEFORE DELETE ON ledger_balances
BEGIN SELECT RAISE(ABORT, 'ledger_balances keeps its rows'); END;
CREATE TRIGGER ledger_balances_keep BEFORE UPDATE ON ledger_balances
WHEN NEW.rowid <> OLD.rowid OR NEW.company_id <> OLD.company_id OR NEW.account <> OLD.account
    OR NEW.currency <> OLD.currency
BEGIN SELECT RAISE(ABORT, 'ledger_balances keeps its rows'); END;
CREATE TRIGGER ledger_balances_stay BEFORE INSERT ON ledger_balances
WHEN EXISTS (SELECT 1 FROM ledger_balances
        WHERE company_id = NEW.company_id AND account = NEW.account AND currency = NEW.currency)
    OR NEW.rowid > 0 AND EXISTS (SELECT 1 FROM ledger_balances WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'ledger_balances keeps its rows'); END;

-- A wallet falls below zero only by an entry of a ledger transaction that allows it, once for each
-- transaction. A credit needs no allowance.
CREATE TRIGGER ledger_balances_begin_covered AFTER INSERT ON ledger_balances
WHEN NEW.account = 'wallet' AND NEW.amount_minor < 0 AND NOT EXISTS (
    SELECT 1 FROM ledger_transactions t
    JOIN ledger_entries e ON e.company_id = t.company_id AND e.transaction_id = t.id
    WHERE t.company_id = NEW.company_id AND t.id = NEW.transaction_id AND t.overdraft_allowed
        AND e.account = NEW.account AND e.currency = NEW.currency AND e.amount_minor = NEW.amount_minor)
BEGIN SELECT RAISE(ABORT, 'a wallet would fall below zero without an allowance'); END;

CREATE TRIGGER ledger_balances_stay_covered AFTER UPDATE ON ledger_balances
WHEN NEW.account = 'wallet' AND NEW.amount_minor < 0 AND NEW.amount_minor < OLD.amount_minor
    AND (NEW.transaction_id IS OLD.transaction_id OR NOT EXISTS (
        SELECT 1 FROM ledger_transactions t
        JOIN ledger_entries e ON e.company_id = t.company_id AND e.transaction_id = t.id
        WHERE t.company_id = NEW.company_id AND t.id = NEW.transaction_id AND t.overdraft_allowed
            AND e.account = NEW.account AND e.currency = NEW.currency
            AND e.amount_minor = NEW.amount_minor - OLD.amount_minor))
BEGIN SELECT RAISE(ABORT, 'a wallet would fall below zero without an allowance'); END;
