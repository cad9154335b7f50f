-- What the host keeps for a provider's plugin about a charge or refund, and the page of a charge that
-- the payer confirms elsewhere.
CREATE TABLE charge_sessions (
    company_id  TEXT   NOT NULL,
    id          TEXT   NOT NULL, -- of the charge or refund
    state       TEXT,            -- sealed; NULL: the response with it was lost
    notified    TEXT,            -- sealed; what the last notification reported
    revision    BIGINT NOT NULL, -- number of notifications
    prompt      TEXT,            -- the instruction on the page
    success_url TEXT,
    cancel_url  TEXT,
    PRIMARY KEY (company_id, id)
);

-- The payer's phone number, for providers that ask on the phone, and the instruction.
ALTER TABLE payments ADD COLUMN phone TEXT;
ALTER TABLE payments ADD COLUMN checkout_prompt TEXT;
