-- Whether the refund was debited from the money that failed refunds of the charge still held.
ALTER TABLE charge_refunds ADD COLUMN replaces BOOLEAN NOT NULL DEFAULT FALSE;

-- Of open refunds this is not known. If in doubt, their money stays debited until it is certain.
UPDATE charge_refunds SET replaces = TRUE
WHERE state IN ('requested', 'pending', 'stalled') AND EXISTS (
    SELECT 1 FROM charge_refunds AS earlier
    WHERE earlier.company_id = charge_refunds.company_id
      AND earlier.charge_id = charge_refunds.charge_id
      AND earlier.number < charge_refunds.number
      AND earlier.state = 'failed' AND earlier.held_minor = 0
);
