ALTER TABLE companies ADD COLUMN sms_gateway TEXT;  -- asked first
ALTER TABLE companies ADD COLUMN sms_sender TEXT;   -- NULL: the gateway account's own
ALTER TABLE companies ADD COLUMN sms_prefixes JSONB; -- NULL: all countries
ALTER TABLE companies ADD COLUMN fixed_otp TEXT;    -- of test companies: every code

-- One code per key. The row outlives its code for as long as wrong tries count.
CREATE TABLE otp_codes (
    company_id TEXT   NOT NULL REFERENCES companies (id),
    scope      TEXT   NOT NULL, -- who sends: callers ('api') or a part of the host
    identifier TEXT   NOT NULL,
    type       TEXT   NOT NULL,
    digest     TEXT,            -- keyed; NULL: the code was used
    wrong      BIGINT NOT NULL, -- wrong tries since it was sent
    wrong_at   JSONB  NOT NULL, -- when there were wrong tries, of this code and those before it
    sent_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    kept_until BIGINT NOT NULL,
    PRIMARY KEY (company_id, scope, identifier, type)
);

CREATE INDEX otp_codes_by_end ON otp_codes (kept_until);

-- Token buckets of sends: of a destination, and of the whole company (key '').
CREATE TABLE otp_buckets (
    company_id TEXT   NOT NULL,
    key        TEXT   NOT NULL,
    full_at    BIGINT NOT NULL, -- when all its tokens are there again
    PRIMARY KEY (company_id, key)
);

CREATE INDEX otp_buckets_by_end ON otp_buckets (full_at);

-- How many codes that were sent in a slot of time were verified.
CREATE TABLE otp_counts (
    company_id TEXT    NOT NULL,
    slot       BIGINT  NOT NULL, -- when it began
    sent       BIGINT  NOT NULL,
    verified   BIGINT  NOT NULL,
    alarmed    BOOLEAN NOT NULL,
    PRIMARY KEY (company_id, slot)
);

CREATE INDEX otp_counts_by_slot ON otp_counts (slot);

-- E-mails and text messages. What they say, and to whom in full, is gone with their end.
CREATE TABLE messages (
    company_id TEXT   NOT NULL REFERENCES companies (id),
    id         TEXT   NOT NULL,
    channel    TEXT   NOT NULL CHECK (channel IN ('email', 'sms')),
    purpose    TEXT   NOT NULL,
    topic      TEXT   NOT NULL, -- a later message of a topic takes the place of those that wait
    recipient  TEXT   NOT NULL, -- most of it hidden
    content    TEXT,            -- sealed; NULL when there is nothing to deliver any more
    state      TEXT   NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts   BIGINT NOT NULL,
    reason     TEXT   NOT NULL, -- of the last failure
    via        TEXT,            -- what took it: 'smtp' or a gateway
    via_id     TEXT,            -- the gateway's id of it
    charge_key TEXT   NOT NULL,
    give_up_at BIGINT NOT NULL,
    under_way_until BIGINT,     -- somebody is handing it over
    created_at BIGINT NOT NULL,
    ended_at   BIGINT,
    PRIMARY KEY (company_id, id)
);

CREATE INDEX messages_by_creation ON messages (company_id, created_at, id);
CREATE INDEX messages_waiting_of_topic ON messages (company_id, topic) WHERE state = 'pending';
CREATE INDEX messages_waiting ON messages (created_at) WHERE state = 'pending';
