-- Mandates that are begun here, beside those of another system, which are ready.
ALTER TABLE direct_debits ADD COLUMN state TEXT NOT NULL DEFAULT 'ready'
    CHECK (state IN ('created', 'approved', 'ready', 'cancelled'));
-- The request that created it.
ALTER TABLE direct_debits ADD COLUMN run TEXT;
-- The provider account and the reference at it; empty: it is of another system.
ALTER TABLE direct_debits ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
ALTER TABLE direct_debits ADD COLUMN service_ref TEXT NOT NULL DEFAULT '';
-- Sealed data of the plugin. NULL: the response of the request that began it was lost.
ALTER TABLE direct_debits ADD COLUMN session TEXT;
-- How the payer authorizes it: on a page, or by an instruction.
ALTER TABLE direct_debits ADD COLUMN consent_url TEXT;
ALTER TABLE direct_debits ADD COLUMN instruction TEXT;
ALTER TABLE direct_debits ADD COLUMN success_url TEXT;
ALTER TABLE direct_debits ADD COLUMN last4 TEXT NOT NULL DEFAULT '';
ALTER TABLE direct_debits ADD COLUMN max_amount_minor BIGINT;
ALTER TABLE direct_debits ADD COLUMN ends_at BIGINT;
ALTER TABLE direct_debits ADD COLUMN message TEXT NOT NULL DEFAULT '';
-- Whether it still has to be cancelled at the provider.
ALTER TABLE direct_debits ADD COLUMN to_cancel BOOLEAN NOT NULL DEFAULT FALSE;
-- When it was deleted; a deleted mandate is hidden.
ALTER TABLE direct_debits ADD COLUMN removed_at BIGINT;

CREATE INDEX direct_debits_of_user ON direct_debits (company_id, user_key, created_at);
CREATE INDEX direct_debits_removed ON direct_debits (removed_at) WHERE removed_at IS NOT NULL;
CREATE UNIQUE INDEX direct_debits_of_run ON direct_debits (company_id, run);
