-- A record for which a provider is asked is leased: `lease` is the holder's random token, which it compares before it writes, and
-- `lease_until` the end of the lease, which the holder extends. `starting_until` and `asking_until` hold the same time, because hosts
-- of the version before know only these: a record whose two times differ is held by such a host, whatever its token.
ALTER TABLE payments ADD COLUMN lease TEXT;
ALTER TABLE payments ADD COLUMN lease_until BIGINT;
ALTER TABLE refunds ADD COLUMN lease TEXT;
ALTER TABLE refunds ADD COLUMN lease_until BIGINT;
ALTER TABLE recollections ADD COLUMN lease TEXT;
ALTER TABLE recollections ADD COLUMN lease_until BIGINT;
