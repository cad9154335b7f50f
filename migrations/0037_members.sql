-- The company to whose team a person belongs; NULL: an operator of the service.
ALTER TABLE operators ADD COLUMN company_id TEXT;
CREATE INDEX operators_of_company ON operators (company_id) WHERE company_id IS NOT NULL;
