//! Storage of the log of plugin calls.

use std::collections::BTreeMap;

use super::HOUR_MS;
use crate::state::storage::*;
use tollhouse_plugins::{LoggedCall, OK, is_failure};

pub struct NewCall {
    pub id: String,
    /// Expiry, by the settings of the host that made the call.
    pub keep_until: Timestamp,
    pub call: LoggedCall,
}

impl NewCall {
    fn duration_us(&self) -> i64 {
        i64::try_from(self.call.duration.as_micros()).unwrap_or(i64::MAX)
    }
}

/// A plugin call about a charge or a refund.
#[derive(Clone, Debug, FromRow)]
pub struct LoggedCallRow {
    pub reference: String,
    pub plugin: String,
    pub version: String,
    /// Name, for example `verification.verify`.
    pub function: String,
    /// `ok`, the category of the fault, or `timed_out`.
    pub outcome: String,
    /// Summary of the result, for example `pending`; empty after a fault.
    pub summary: String,
    /// Its effect at the provider is unknown.
    pub is_unknown: bool,
    pub began_at: Timestamp,
    pub duration_us: i64,
}

/// Call counts of a plugin version in an hour.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct CallHours {
    pub plugin: String,
    pub version: String,
    /// Start of the hour.
    pub hour: Timestamp,
    pub calls: i64,
    /// Calls with a result.
    pub ok: i64,
    /// Calls with the outcome `unavailable`, `misconfigured`, `other` or `timed_out`.
    pub failed: i64,
    /// Calls whose effect at the provider is unknown.
    pub unknown: i64,
    /// Mean duration in microseconds, including waits.
    pub mean_us: i64,
}

/// Inserts the calls that have a reference, and counts all.
pub async fn insert(tx: &mut Tx, calls: &[NewCall]) -> Result<()> {
    let insert = "INSERT INTO plugin_calls (company_id, id, reference, plugin, version, function,
             outcome, summary, is_unknown, began_at, duration_us, keep_until) VALUES ";
    let of_references = calls.iter().filter(|new| new.call.reference.is_some());
    let values = |new: &&NewCall| {
        let call = &new.call;
        vec![
            (&call.company_id).into(),
            (&new.id).into(),
            call.reference.as_deref().unwrap_or_default().into(),
            (&*call.plugin).into(),
            (&call.version).into(),
            call.function.into(),
            call.outcome.into(),
            call.summary.into(),
            call.is_unknown.into(),
            call.began_at.into(),
            new.duration_us().into(),
            new.keep_until.into(),
        ]
    };
    tx.insert_rows(insert, &of_references.collect::<Vec<_>>(), values).await?;
    count(tx, calls).await
}

/// Adds calls to the counts of their hours, in the order of their keys: hosts do not deadlock.
async fn count(tx: &mut Tx, calls: &[NewCall]) -> Result<()> {
    let mut hours = BTreeMap::<_, [i64; 5]>::new();
    for new in calls {
        let call = &new.call;
        let hour = call.began_at.0.div_euclid(HOUR_MS) * HOUR_MS;
        let [number, ok, failed, unknown, duration_us] =
            hours.entry((&*call.plugin, &*call.version, hour)).or_default();
        *number += 1;
        *ok += i64::from(call.outcome == OK);
        *failed += i64::from(is_failure(call.outcome));
        *unknown += i64::from(call.is_unknown);
        *duration_us = duration_us.saturating_add(new.duration_us());
    }
    for ((plugin, version, hour), [number, ok, failed, unknown, duration_us]) in hours {
        tx.sql(
            "INSERT INTO plugin_call_hours AS h
                 (plugin, version, hour, calls, ok, failed, unknown, duration_us)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (plugin, version, hour) DO UPDATE SET calls = h.calls + excluded.calls,
                 ok = h.ok + excluded.ok, failed = h.failed + excluded.failed,
                 unknown = h.unknown + excluded.unknown,
                 duration_us = h.duration_us + excluded.duration_us",
        )
        .params(params![plugin, version, hour, number, ok, failed, unknown, duration_us])
        .execute()
        .await?;
    }
    Ok(())
}

/// Returns the calls of a company about these references, oldest first.
pub async fn list_of_references(
    tx: &mut Tx,
    company_id: &CompanyId,
    references: &[String],
) -> Result<Vec<LoggedCallRow>> {
    let select = DynamicStatement::from(
        "SELECT reference, plugin, version, function, outcome, summary, is_unknown, began_at,
             duration_us
         FROM plugin_calls WHERE company_id = ",
    );
    let select = select.bind(company_id).append(" AND reference").append_in(references);
    tx.dynamic(&select.append(" ORDER BY id")).all().await
}

pub async fn by_hour(tx: &mut Tx, from: Timestamp, plugin: Option<&str>) -> Result<Vec<CallHours>> {
    let select = DynamicStatement::from(
        "SELECT plugin, version, hour, calls, ok, failed, unknown,
             duration_us / calls AS mean_us
         FROM plugin_call_hours WHERE hour >= ",
    );
    let select = select.bind(from).append_if(" AND plugin = ", plugin);
    tx.dynamic(&select.append(" ORDER BY hour, plugin, version")).all().await
}

/// Deletes up to `limit` expired calls of all companies, and returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM plugin_calls WHERE (company_id, id) IN (
             SELECT company_id, id FROM plugin_calls WHERE keep_until < $1
             ORDER BY keep_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![now, limit])
    .run()
    .await
}

/// Deletes the counts of hours before `oldest`.
pub async fn sweep_hours(tx: &mut Tx, oldest: Timestamp) -> Result<()> {
    let delete = "DELETE FROM plugin_call_hours WHERE hour < $1";
    tx.sql(delete).params(params![oldest]).run().await.map(drop)
}
