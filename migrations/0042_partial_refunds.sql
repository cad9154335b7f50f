-- The provider's fees of the refunded amount, and who bore them: debited from the wallet or from the
-- account `fees`.
ALTER TABLE charge_refunds ADD COLUMN fee_minor BIGINT NOT NULL DEFAULT 0 CHECK (fee_minor >= 0);
ALTER TABLE charge_refunds ADD COLUMN fee_bearer TEXT NOT NULL DEFAULT 'service'
    CHECK (fee_bearer IN ('service', 'company'));

-- What providers have accepted to refund of a payment that is not refunded as a whole.
ALTER TABLE payments ADD COLUMN refunded_minor BIGINT NOT NULL DEFAULT 0 CHECK (refunded_minor >= 0);
