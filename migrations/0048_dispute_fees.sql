-- The provider's fees that a lost dispute returned to the payer together with the money.
ALTER TABLE disputes ADD COLUMN fee_minor BIGINT NOT NULL DEFAULT 0 CHECK (fee_minor >= 0);
