-- The company's routing policy. NULL: the provider of a request, else the company's default.
ALTER TABLE companies ADD COLUMN routing JSONB;

-- Why the router chose the provider of a charge.
CREATE TABLE routing_choices (
    company_id TEXT   NOT NULL,
    charge_id  TEXT   NOT NULL,
    choice     JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, charge_id)
);

-- Hosts read what failed lately.
CREATE INDEX charges_failed ON charges (updated_at) WHERE state = 'failed';
