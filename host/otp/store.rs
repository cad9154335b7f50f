//! The rows of codes, of the limits on sending them, and of their counts.

use super::Key;
use crate::{
    clock::Timestamp,
    store::{FromRow, Json, Result, Tx},
};

/// The latest code under a key.
#[derive(Clone, Debug, FromRow)]
pub struct Code {
    /// `None`: it was used.
    pub digest: Option<String>,
    /// The name of the request that used it, if it had one, as a keyed digest that is bound to the key as the code is.
    pub used_by: Option<String>,
    /// Wrong tries since it was sent.
    pub wrong: i64,
    /// When there were wrong tries, of this code and those before it; milliseconds since 1970.
    pub wrong_at: Json<Vec<i64>>,
    pub sent_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The code under a key, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, company_id: &str, key: &Key) -> Result<Option<Code>> {
    tx.sql(
        "SELECT digest, used_by, wrong, wrong_at, sent_at, expires_at FROM otp_codes
         WHERE company_id = $1 AND scope = $2 AND identifier = $3 AND type = $4 FOR UPDATE",
    )
    .bind(company_id)
    .bind(key.scope)
    .bind(&key.identifier)
    .bind(&key.kind)
    .optional()
    .await
}

/// Puts a new code in the place of the one before it, whose wrong tries go on counting. Locks the row until the transaction ends.
/// Answers the topic of the key's messages: the one before's, or this.
pub async fn put(
    tx: &mut Tx,
    company_id: &str,
    key: &Key,
    topic: &str,
    digest: &str,
    [sent_at, expires_at]: [Timestamp; 2],
) -> Result<String> {
    let (topic,) = tx.sql(
        "INSERT INTO otp_codes (company_id, scope, identifier, type, topic, digest, wrong, wrong_at,
             sent_at, expires_at, kept_until)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, $9)
         ON CONFLICT (company_id, scope, identifier, type) DO UPDATE SET
             topic = COALESCE(otp_codes.topic, excluded.topic),
             digest = excluded.digest, wrong = 0, sent_at = excluded.sent_at,
             expires_at = excluded.expires_at,
             kept_until = CASE WHEN otp_codes.kept_until > excluded.kept_until
                               THEN otp_codes.kept_until ELSE excluded.kept_until END
         RETURNING topic",
    )
    .bind(company_id)
    .bind(key.scope)
    .bind(&key.identifier)
    .bind(&key.kind)
    .bind(topic)
    .bind(digest)
    .bind(Json(Vec::<i64>::new()))
    .bind(sent_at)
    .bind(expires_at)
    .one()
    .await?;
    Ok(topic)
}

pub async fn update(
    tx: &mut Tx,
    company_id: &str,
    key: &Key,
    code: &Code,
    kept_until: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE otp_codes SET digest = $5, used_by = $6, wrong = $7, wrong_at = $8, kept_until = $9
         WHERE company_id = $1 AND scope = $2 AND identifier = $3 AND type = $4",
    )
    .bind(company_id)
    .bind(key.scope)
    .bind(&key.identifier)
    .bind(&key.kind)
    .bind(&code.digest)
    .bind(&code.used_by)
    .bind(code.wrong)
    .bind(&code.wrong_at)
    .bind(kept_until)
    .run()
    .await?;
    Ok(())
}

/// Takes a token from a bucket of `burst`, to which one comes back every `interval_ms`; `false` when it is empty. The bucket is
/// locked until the transaction ends.
pub async fn take(
    tx: &mut Tx,
    company_id: &str,
    key: &str,
    [interval_ms, burst]: [i64; 2],
    now: Timestamp,
) -> Result<bool> {
    let taken = tx
        .sql(
            "INSERT INTO otp_buckets (company_id, key, full_at) VALUES ($1, $2, $3)
             ON CONFLICT (company_id, key) DO UPDATE SET full_at =
                 CASE WHEN otp_buckets.full_at > $4 THEN otp_buckets.full_at + $5 ELSE $3 END
             WHERE otp_buckets.full_at <= $6",
        )
        .bind(company_id)
        .bind(key)
        .bind(now.plus_ms(interval_ms))
        .bind(now)
        .bind(interval_ms)
        .bind(now.plus_ms(interval_ms * (burst - 1)))
        .run()
        .await?;
    Ok(taken == 1)
}

/// When a bucket will be full.
pub async fn full_at(tx: &mut Tx, company_id: &str, key: &str) -> Result<Option<Timestamp>> {
    let found: Option<(Timestamp,)> = tx
        .sql("SELECT full_at FROM otp_buckets WHERE company_id = $1 AND key = $2")
        .bind(company_id)
        .bind(key)
        .optional()
        .await?;
    Ok(found.map(|(at,)| at))
}

/// Counts codes of a slot; answers how many were sent in it.
pub async fn count(
    tx: &mut Tx,
    company_id: &str,
    slot: Timestamp,
    [sent, verified]: [i64; 2],
) -> Result<i64> {
    let (sent,) = tx
        .sql(
            "INSERT INTO otp_counts (company_id, slot, sent, verified, alarmed)
             VALUES ($1, $2, $3, $4, FALSE)
             ON CONFLICT (company_id, slot) DO UPDATE SET
                 sent = otp_counts.sent + excluded.sent,
                 verified = otp_counts.verified + excluded.verified
             RETURNING sent",
        )
        .bind(company_id)
        .bind(slot)
        .bind(sent)
        .bind(verified)
        .one()
        .await?;
    Ok(sent)
}

/// What was counted in the slots from one to another, both included.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Counted {
    pub sent: i64,
    pub verified: i64,
    /// How many of the slots have raised an alarm.
    pub alarms: i64,
}

pub async fn counted(
    tx: &mut Tx,
    company_id: &str,
    first: Timestamp,
    last: Timestamp,
) -> Result<Counted> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(sent), 0) AS BIGINT) AS sent,
             CAST(COALESCE(SUM(verified), 0) AS BIGINT) AS verified,
             CAST(COALESCE(SUM(CASE WHEN alarmed THEN 1 ELSE 0 END), 0) AS BIGINT) AS alarms
         FROM otp_counts WHERE company_id = $1 AND slot BETWEEN $2 AND $3",
    )
    .bind(company_id)
    .bind(first)
    .bind(last)
    .one()
    .await
}

/// `false` when this slot has raised an alarm before.
pub async fn note_alarm(tx: &mut Tx, company_id: &str, slot: Timestamp) -> Result<bool> {
    let noted = tx
        .sql(
            "UPDATE otp_counts SET alarmed = TRUE
             WHERE company_id = $1 AND slot = $2 AND NOT alarmed",
        )
        .bind(company_id)
        .bind(slot)
        .run()
        .await?;
    Ok(noted == 1)
}

/// For how long counts are kept.
const COUNTS_KEPT_SECONDS: i64 = 24 * 3600;

/// Removes up to `limit` rows of each kind that say nothing any more, whosoever they are; answers how many.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    let codes = tx
        .sql(
            "DELETE FROM otp_codes WHERE (company_id, scope, identifier, type) IN (
                 SELECT company_id, scope, identifier, type FROM otp_codes WHERE kept_until <= $1
                 ORDER BY kept_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind(now)
        .bind(limit)
        .run()
        .await?;
    let buckets = tx
        .sql(
            "DELETE FROM otp_buckets WHERE (company_id, key) IN (
                 SELECT company_id, key FROM otp_buckets WHERE full_at <= $1
                 ORDER BY full_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind(now)
        .bind(limit)
        .run()
        .await?;
    let counts = tx
        .sql(
            "DELETE FROM otp_counts WHERE (company_id, slot) IN (
                 SELECT company_id, slot FROM otp_counts WHERE slot <= $1
                 ORDER BY slot LIMIT $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind(now.plus_seconds(-COUNTS_KEPT_SECONDS))
        .bind(limit)
        .run()
        .await?;
    Ok(codes + buckets + counts)
}
