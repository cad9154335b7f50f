-- Charges of cards and mandates whose outcome is not known.
CREATE INDEX charges_pending ON recollections (created_at)
    WHERE status = 'pending' AND payment_channel IN ('card', 'direct_debit');
