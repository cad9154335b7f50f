-- Charges of cards and mandates whose outcome is not known.
CREATE INDEX charges_pending ON recollections (created_at)
    WHERE status = 'pending' AND payment_channel IN ('card', 'direct_debit');

-- When the provider was asked for a page; and until when somebody is there for it, so that nobody else asks for another.
ALTER TABLE recollections ADD COLUMN begun_at BIGINT;
ALTER TABLE recollections ADD COLUMN starting_until BIGINT;

-- Nobody knows whether two cards without a signature are one.
DROP INDEX cards_by_signature;
CREATE UNIQUE INDEX cards_by_signature ON cards (company_id, user_key, payment_service, signature)
    WHERE status = 'valid' AND removed_at IS NULL AND signature <> '';

-- An installment is known by its due date and its place among those of that date, whatever else stands in the schedule.
UPDATE collections SET number = -placed.place FROM (
    SELECT company_id, loan_id, number, due_at,
        ROW_NUMBER() OVER (PARTITION BY company_id, loan_id, due_at ORDER BY number) AS place
    FROM collections) placed
WHERE collections.company_id = placed.company_id AND collections.loan_id = placed.loan_id
    AND collections.number = placed.number AND collections.due_at = placed.due_at;
UPDATE collections SET number = -number;
