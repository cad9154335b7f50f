-- The reference under which the provider was asked for the refund. It is stored before the first
-- request, so that every retry names the same refund. NULL in `refunds`: the id. NULL in
-- `card_refunds`: the provider has not been asked yet.
ALTER TABLE refunds ADD COLUMN refund_ref TEXT;
ALTER TABLE card_refunds ADD COLUMN refund_ref TEXT;
