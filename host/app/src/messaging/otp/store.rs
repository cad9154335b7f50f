//! Storage of codes, of the limits on sending them, and of their counts.

use super::CodeKey;
use crate::state::storage::*;

/// The latest code under a key.
#[derive(Clone, Debug, FromRow)]
pub struct Code {
    /// `None` once the code was used.
    pub digest: Option<String>,
    /// Name of the request that used the code, if it had one, as a keyed digest bound to the key.
    pub used_by: Option<String>,
    /// Wrong attempts since the code was sent.
    pub wrong: i64,
    /// Times of wrong attempts, also of previous codes, in milliseconds since the Unix epoch.
    pub wrong_at: Json<Vec<i64>>,
    pub sent_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Returns the code under a key and locks its row until the transaction ends.
pub async fn lock(tx: &mut Tx, company_id: &CompanyId, key: &CodeKey) -> Result<Option<Code>> {
    tx.sql(
        "SELECT digest, used_by, wrong, wrong_at, sent_at, expires_at FROM otp_codes
         WHERE company_id = $1 AND scope = $2 AND identifier = $3 AND type = $4 FOR UPDATE",
    )
    .params(params![company_id, key.scope, &key.identifier, &key.kind])
    .optional()
    .await
}

/// Makes the code under a key expire, and locks its row until the transaction ends. Returns the
/// topic of its messages.
pub async fn expire(
    tx: &mut Tx,
    company_id: &CompanyId,
    key: &CodeKey,
    now: Timestamp,
) -> Result<Option<String>> {
    let topic: Option<Option<String>> = tx
        .sql(
            "UPDATE otp_codes SET expires_at = $5
             WHERE company_id = $1 AND scope = $2 AND identifier = $3 AND type = $4
             RETURNING topic",
        )
        .params(params![company_id, key.scope, &key.identifier, &key.kind, now])
        .optional_value()
        .await?;
    Ok(topic.flatten())
}

/// Stores a code at the commit, which fails if the key has another one that has not expired.
/// Earlier wrong attempts still count.
pub async fn insert(
    tx: &mut Tx,
    company_id: &CompanyId,
    key: &CodeKey,
    topic: &str,
    digest: &str,
    [sent_at, expires_at]: [Timestamp; 2],
) -> Result<()> {
    let none = Json(Vec::<i64>::new());
    tx.defer(
        "INSERT INTO otp_codes (company_id, scope, identifier, type, topic, digest, wrong,
             wrong_at, sent_at, expires_at, kept_until)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, $9)
         ON CONFLICT (company_id, scope, identifier, type) DO UPDATE SET
             topic = excluded.topic, digest = excluded.digest, wrong = 0,
             sent_at = excluded.sent_at, expires_at = excluded.expires_at,
             kept_until = CASE WHEN otp_codes.kept_until > excluded.kept_until
                               THEN otp_codes.kept_until ELSE excluded.kept_until END
         WHERE otp_codes.expires_at <= excluded.sent_at",
    )
    .params(params![
        company_id, key.scope, &key.identifier, &key.kind, topic, digest, none, sent_at, expires_at
    ])
    .require_one()
    .await
}

pub async fn update(
    tx: &mut Tx,
    company_id: &CompanyId,
    key: &CodeKey,
    code: &Code,
    kept_until: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE otp_codes SET digest = $5, used_by = $6, wrong = $7, wrong_at = $8,
             kept_until = $9
         WHERE company_id = $1 AND scope = $2 AND identifier = $3 AND type = $4",
    )
    .params(params![
        company_id, key.scope, &key.identifier, &key.kind, &code.digest, &code.used_by, code.wrong,
        &code.wrong_at, kept_until
    ])
    .execute()
    .await
}

/// A token bucket, which limits sends.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub key: String,
    /// Number of tokens when it is full.
    pub burst: i64,
    /// Time in which it regains one.
    pub interval_ms: i64,
}

/// Takes one token, unless the bucket is empty.
const TAKE_TOKEN: &str = "INSERT INTO otp_buckets (company_id, key, full_at) VALUES ($1, $2, $3)
     ON CONFLICT (company_id, key) DO UPDATE SET full_at =
         CASE WHEN otp_buckets.full_at > $4 THEN otp_buckets.full_at + $5 ELSE $3 END
     WHERE otp_buckets.full_at <= $6";

impl Bucket {
    /// Returns when a full bucket that loses a token at `now` is full again, and the latest time at
    /// which a bucket with a token is full.
    fn times(&self, now: Timestamp) -> [Timestamp; 2] {
        [now.plus_ms(self.interval_ms), now.plus_ms(self.interval_ms * (self.burst - 1))]
    }
}

/// Takes a token from a bucket; `false` if it is empty. Locks the bucket until the transaction
/// ends.
pub async fn take_token(
    tx: &mut Tx,
    company_id: &CompanyId,
    bucket: &Bucket,
    now: Timestamp,
) -> Result<bool> {
    let [refilled, latest] = bucket.times(now);
    tx.sql(TAKE_TOKEN)
        .params(params![company_id, &bucket.key, refilled, now, bucket.interval_ms, latest])
        .affects_one()
        .await
}

/// Takes a token from a bucket at the commit, which fails if the bucket is empty.
pub async fn take_token_at_commit(
    tx: &mut Tx,
    company_id: &CompanyId,
    bucket: &Bucket,
    now: Timestamp,
) -> Result<()> {
    let [refilled, latest] = bucket.times(now);
    tx.defer_distinct(TAKE_TOKEN)
        .params(params![company_id, &bucket.key, refilled, now, bucket.interval_ms, latest])
        .require_one()
        .await
}

/// Returns the time at which a bucket will be full.
pub async fn full_at(tx: &mut Tx, company_id: &CompanyId, key: &str) -> Result<Option<Timestamp>> {
    tx.sql("SELECT full_at FROM otp_buckets WHERE company_id = $1 AND key = $2")
        .params(params![company_id, key])
        .optional_value()
        .await
}

/// Adds to the counts of a slot.
pub async fn add_counts(
    tx: &mut Tx,
    company_id: &CompanyId,
    slot: Timestamp,
    [sent, verified]: [i64; 2],
) -> Result<()> {
    tx.defer(
        "INSERT INTO otp_counts (company_id, slot, sent, verified, alarmed)
         VALUES ($1, $2, $3, $4, FALSE)
         ON CONFLICT (company_id, slot) DO UPDATE SET
             sent = otp_counts.sent + excluded.sent,
             verified = otp_counts.verified + excluded.verified",
    )
    .params(params![company_id, slot, sent, verified])
    .execute()
    .await
}

/// Counts of a range of slots, both ends included.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct SlotCounts {
    pub sent: i64,
    pub verified: i64,
    /// Number of slots that raised an alarm.
    pub alarms: i64,
}

pub async fn sum_counts(
    tx: &mut Tx,
    company_id: &CompanyId,
    first: Timestamp,
    last: Timestamp,
) -> Result<SlotCounts> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(sent), 0) AS BIGINT) AS sent,
             CAST(COALESCE(SUM(verified), 0) AS BIGINT) AS verified,
             CAST(COALESCE(SUM(CASE WHEN alarmed THEN 1 ELSE 0 END), 0) AS BIGINT) AS alarms
         FROM otp_counts WHERE company_id = $1 AND slot BETWEEN $2 AND $3",
    )
    .params(params![company_id, first, last])
    .one()
    .await
}

/// Records the alarm of a slot; `false` if it has raised one already.
pub async fn insert_alarm(tx: &mut Tx, company_id: &CompanyId, slot: Timestamp) -> Result<bool> {
    tx.sql(
        "UPDATE otp_counts SET alarmed = TRUE
         WHERE company_id = $1 AND slot = $2 AND NOT alarmed",
    )
    .params(params![company_id, slot])
    .affects_one()
    .await
}

/// Retention of counts.
const COUNT_RETENTION_SECONDS: i64 = 24 * 3600;

/// Deletes up to `limit` obsolete rows of each kind, of all companies, and returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    let counted_until = now.plus_seconds(-COUNT_RETENTION_SECONDS);
    let mut deleted = 0;
    for (delete, until) in [
        (
            "DELETE FROM otp_codes WHERE (company_id, scope, identifier, type) IN (
                 SELECT company_id, scope, identifier, type FROM otp_codes WHERE kept_until <= $1
                 ORDER BY kept_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
            now,
        ),
        (
            "DELETE FROM otp_buckets WHERE (company_id, key) IN (
                 SELECT company_id, key FROM otp_buckets WHERE full_at <= $1
                 ORDER BY full_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            now,
        ),
        (
            "DELETE FROM otp_counts WHERE (company_id, slot) IN (
                 SELECT company_id, slot FROM otp_counts WHERE slot <= $1
                 ORDER BY slot LIMIT $2 FOR UPDATE SKIP LOCKED)",
            counted_until,
        ),
    ] {
        deleted += tx.sql(delete).params(params![until, limit]).run().await?;
    }
    Ok(deleted)
}
