-- A ledger transaction has both of its sides in one row, so it sums to zero. A zero amount has no
-- accounts: it only reserves the key.
ALTER TABLE ledger_transactions ADD COLUMN debit TEXT;
ALTER TABLE ledger_transactions ADD COLUMN credit TEXT;
ALTER TABLE ledger_transactions ADD COLUMN currency TEXT;
ALTER TABLE ledger_transactions ADD COLUMN amount_minor BIGINT NOT NULL DEFAULT 0
    CONSTRAINT ledger_transactions_are_complete CHECK (
        amount_minor = 0 AND debit IS NULL AND credit IS NULL AND currency IS NULL
        OR amount_minor > 0 AND debit IS NOT NULL AND credit IS NOT NULL AND debit <> credit
            AND currency IS NOT NULL);

DROP TRIGGER ledger_transactions_keep;
UPDATE ledger_transactions AS t
SET debit = d.account, credit = c.account, currency = c.currency, amount_minor = c.amount_minor
FROM ledger_entries d JOIN ledger_entries c ON c.company_id = d.company_id
    AND c.transaction_id = d.transaction_id AND c.currency = d.currency
    AND c.amount_minor = -d.amount_minor
WHERE d.company_id = t.company_id AND d.transaction_id = t.id AND d.amount_minor < 0;
CREATE TRIGGER ledger_transactions_keep BEFORE UPDATE ON ledger_transactions
BEGIN SELECT RAISE(ABORT, 'ledger_transactions is append-only'); END;

-- Fails when an existing entry is not one of two sides.
CREATE TEMP TABLE single (
    entries BIGINT NOT NULL CONSTRAINT ledger_entries_are_pairs CHECK (entries = 0)
);
INSERT INTO single SELECT (SELECT COUNT(*) FROM ledger_entries)
    - 2 * (SELECT COUNT(*) FROM ledger_transactions WHERE amount_minor > 0);
DROP TABLE single;

DROP TABLE ledger_entries;
CREATE VIEW ledger_entries AS
    SELECT company_id, id AS transaction_id, 1 AS line, debit AS account, currency,
        -amount_minor AS amount_minor
    FROM ledger_transactions WHERE amount_minor > 0
    UNION ALL SELECT company_id, id, 2, credit, currency, amount_minor
    FROM ledger_transactions WHERE amount_minor > 0;

-- Inserting a ledger transaction posts it to the balances.
CREATE TRIGGER ledger_transactions_post AFTER INSERT ON ledger_transactions
WHEN NEW.amount_minor > 0 BEGIN
    INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
    SELECT NEW.company_id, side.account, NEW.currency, 0
    FROM (SELECT NEW.debit AS account UNION ALL SELECT NEW.credit) side
    WHERE NOT EXISTS (SELECT 1 FROM ledger_balances b
        WHERE b.company_id = NEW.company_id AND b.account = side.account AND b.currency = NEW.currency);
    SELECT RAISE(ABORT, 'the wallet does not cover the ledger transaction')
    FROM ledger_balances
    WHERE NEW.debit = 'wallet' AND NEW.overdraft_allowed IS NOT TRUE AND company_id = NEW.company_id
        AND account = NEW.debit AND currency = NEW.currency AND amount_minor < NEW.amount_minor;
    -- SQLite would convert a larger sum to a float.
    SELECT RAISE(ABORT, 'a ledger balance would be out of range')
    FROM ledger_balances
    WHERE company_id = NEW.company_id AND currency = NEW.currency
        AND (account = NEW.debit AND amount_minor < NEW.amount_minor - 9223372036854775807
            OR account = NEW.credit AND amount_minor > 9223372036854775807 - NEW.amount_minor);
    UPDATE ledger_balances SET amount_minor = amount_minor - NEW.amount_minor, transaction_id = NEW.id
    WHERE company_id = NEW.company_id AND account = NEW.debit AND currency = NEW.currency;
    UPDATE ledger_balances SET amount_minor = amount_minor + NEW.amount_minor, transaction_id = NEW.id
    WHERE company_id = NEW.company_id AND account = NEW.credit AND currency = NEW.currency;
END;

-- The balance of each ledger account. On PostgreSQL it has two parts.
CREATE VIEW ledger_account_balances AS
    SELECT company_id, account, currency, amount_minor FROM ledger_balances;
