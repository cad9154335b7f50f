-- Each kind of job is claimed for itself, so that none waits behind another.
CREATE INDEX jobs_of_kind ON jobs (kind, run_at);
DROP INDEX jobs_due;

UPDATE jobs SET kind = (SELECT 'message.' || channel FROM messages
                        WHERE messages.company_id = jobs.company_id AND messages.id = jobs.subject)
WHERE kind = 'message.deliver' AND EXISTS (SELECT 1 FROM messages
    WHERE messages.company_id = jobs.company_id AND messages.id = jobs.subject);
DELETE FROM jobs WHERE kind = 'message.deliver';

-- Under what the messages of a key are queued, whatever the master key is.
ALTER TABLE otp_codes ADD COLUMN topic TEXT;
-- The name of the request that used the code, as a keyed digest; NULL when it had none.
ALTER TABLE otp_codes ADD COLUMN used_by TEXT;

CREATE INDEX messages_by_end ON messages (ended_at) WHERE ended_at IS NOT NULL;
