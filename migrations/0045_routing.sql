-- The company's routing policy. NULL: the provider of a request, else the company's default.
ALTER TABLE companies ADD COLUMN routing JSONB;

-- Why the router chose the provider of a charge.
CREATE TABLE routing_choices (
    company_id TEXT   NOT NULL,
    charge_id  TEXT   NOT NULL,
    payment_id TEXT   NOT NULL,
    choice     JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, charge_id)
);
CREATE INDEX routing_choices_of_payment ON routing_choices (company_id, payment_id, created_at);

-- Hosts read what failed lately.
CREATE INDEX charges_failed ON charges (updated_at) WHERE state = 'failed';
