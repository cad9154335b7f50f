-- Fails when an existing entry has no ledger transaction.
ALTER TABLE ledger_entries VALIDATE CONSTRAINT ledger_entries_reference_their_transactions;
