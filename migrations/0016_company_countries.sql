ALTER TABLE companies ADD COLUMN countries JSONB; -- ISO 3166 codes; NULL: the service's

-- From now on, NULL means the numbers of the company's countries. Companies that are there keep sending to all numbers.
UPDATE companies SET sms_prefixes = '["+"]' WHERE sms_prefixes IS NULL;
