-- Slots are shared between companies and, of jobs that send a request, between destinations.
ALTER TABLE jobs ADD COLUMN destination TEXT NOT NULL DEFAULT ''; -- '' if it has none

-- Jobs that fail each time are listed; those that stop their host, or need no retry, are parked.
ALTER TABLE jobs ADD COLUMN error TEXT; -- of the last run, if it failed
ALTER TABLE jobs ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0; -- runs in a row whose lease expired
ALTER TABLE jobs ADD COLUMN parked_at BIGINT; -- while it is, run_at is in the year 9999

CREATE INDEX jobs_of_company ON jobs (kind, company_id, destination, run_at);
CREATE INDEX jobs_failing ON jobs (failures, company_id, kind, subject) WHERE failures >= 10;
