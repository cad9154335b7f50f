//! The rows of charges.

use super::{Charge, ChargeId, OwnerKind};
use crate::state::storage::*;
use tollhouse_platform::store::Deferred;

/// Inserts a charge.
pub async fn insert(tx: &mut Tx, charge: &Charge) -> Result<()> {
    tx.defer(
        "INSERT INTO charges (company_id, id, owner_kind, owner_id, number, method, provider,
             account_id, in_books, lane, amount_minor, currency, taken_minor, taken_currency,
             credited_minor, refunded_minor, service_ref, reference_source, transaction_id, state,
             counts, superseded, holds_lane, unsure, fence, lease_until, begun_at, requested_at,
             settled_at, session_url, mismatch, created_at, updated_at, credited_to, fees_minor,
             at_least_minor)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35,
             $36)",
    )
    .params(params![
        &charge.company_id, &charge.id, charge.owner_kind, &charge.owner_id, charge.number,
        charge.method, &charge.provider, &charge.account_id, charge.in_books, &charge.lane,
        charge.amount, &charge.currency, charge.taken, &charge.taken_currency, charge.credited,
        charge.refunded, &charge.service_ref, charge.reference_source, &charge.transaction_id,
        charge.state, charge.counts, charge.superseded, charge.holds_lane, charge.unsure,
        charge.fence, charge.lease_until, charge.begun_at, charge.requested_at, charge.settled_at,
        &charge.session_url, &charge.mismatch, charge.created_at, charge.updated_at,
        charge.credited_to, charge.fees, charge.at_least
    ])
    .execute()
    .await
}

macro_rules! update_mutable_columns {
    () => {
        "UPDATE charges SET account_id = $3, amount_minor = $4, taken_minor = $5,
             taken_currency = $6, credited_minor = $7, refunded_minor = $8, service_ref = $9,
             reference_source = $10, transaction_id = $11, state = $12, counts = $13,
             superseded = $14, holds_lane = $15, unsure = $16, fence = $17, lease_until = $18,
             begun_at = $19, requested_at = $20, settled_at = $21, session_url = $22,
             mismatch = $23, updated_at = $24, in_books = $25, credited_to = $26,
             disputed_minor = $27, fees_minor = $28
         WHERE company_id = $1 AND id = $2"
    };
}

/// Writes the mutable columns of a charge.
pub async fn update(tx: &mut Tx, charge: &Charge) -> Result<()> {
    bind_mutable_columns(tx.defer(update_mutable_columns!()), charge).require_one().await
}

/// Writes the session of a charge, without a lock. The transaction fails if the charge has changed
/// since its page was requested.
pub async fn open(tx: &mut Tx, before: &Charge, charge: &Charge) -> Result<()> {
    let sql = concat!(
        update_mutable_columns!(),
        " AND state = 'requested' AND session_url IS NULL AND fence = $29 AND updated_at = $30"
    );
    let fields = params![before.fence, before.updated_at];
    bind_mutable_columns(tx.defer(sql), charge).params(fields).require_one().await
}

fn bind_mutable_columns<'t>(statement: Deferred<'t>, charge: &'t Charge) -> Deferred<'t> {
    statement.params(params![
        &charge.company_id, &charge.id, &charge.account_id, charge.amount, charge.taken,
        &charge.taken_currency, charge.credited, charge.refunded, &charge.service_ref,
        charge.reference_source, &charge.transaction_id, charge.state, charge.counts,
        charge.superseded, charge.holds_lane, charge.unsure, charge.fence, charge.lease_until,
        charge.begun_at, charge.requested_at, charge.settled_at, &charge.session_url,
        &charge.mismatch, charge.updated_at, charge.in_books, charge.credited_to, charge.disputed,
        charge.fees
    ])
}

pub async fn delete(tx: &mut Tx, charge: &Charge) -> Result<()> {
    tx.sql("DELETE FROM charge_sessions WHERE company_id = $1 AND id = $2")
        .params(params![&charge.company_id, &charge.id])
        .execute()
        .await?;
    tx.sql("DELETE FROM charges WHERE company_id = $1 AND id = $2")
        .params(params![&charge.company_id, &charge.id])
        .execute()
        .await
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &ChargeId) -> Result<Option<Charge>> {
    tx.sql("SELECT * FROM charges WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &ChargeId) -> Result<Option<Charge>> {
    tx.sql("SELECT * FROM charges WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![company_id, id])
        .optional()
        .await
}

/// Returns the charges of an owner in the order of their numbers.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
) -> Result<Vec<Charge>> {
    tx.sql(
        "SELECT * FROM charges WHERE company_id = $1 AND owner_kind = $2 AND owner_id = $3
         ORDER BY number",
    )
    .params(params![company_id, kind, owner_id])
    .all()
    .await
}

/// Locks the charges of an owner and returns them in the order of their numbers.
pub async fn lock_all(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: OwnerKind,
    owner_id: &str,
) -> Result<Vec<Charge>> {
    tx.sql(
        "SELECT * FROM charges WHERE company_id = $1 AND owner_kind = $2 AND owner_id = $3
         ORDER BY number FOR UPDATE",
    )
    .params(params![company_id, kind, owner_id])
    .all()
    .await
}

/// Returns the oldest queued charge of a lane, unless another charge holds the lane. Charges that
/// have been requested before come first.
pub async fn next_in_lane(
    tx: &mut Tx,
    company_id: &CompanyId,
    lane: &str,
) -> Result<Option<Charge>> {
    tx.sql(
        "SELECT * FROM charges c WHERE company_id = $1 AND lane = $2 AND state = 'queued'
             AND NOT EXISTS (
                 SELECT 1 FROM charges other WHERE other.company_id = c.company_id
                     AND other.lane = c.lane AND other.holds_lane AND other.id <> c.id)
         ORDER BY fence = 0, created_at, id LIMIT 1",
    )
    .params(params![company_id, lane])
    .optional()
    .await
}

/// Returns whether a lane has a queued charge.
pub async fn is_any_queued(tx: &mut Tx, company_id: &CompanyId, lane: &str) -> Result<bool> {
    tx.sql(
        "SELECT EXISTS (
             SELECT 1 FROM charges WHERE company_id = $1 AND lane = $2 AND state = 'queued')",
    )
    .params(params![company_id, lane])
    .value()
    .await
}

/// Returns the charge that holds a lane.
pub async fn lane_holder(
    tx: &mut Tx,
    company_id: &CompanyId,
    lane: &str,
) -> Result<Option<Charge>> {
    tx.sql("SELECT * FROM charges WHERE company_id = $1 AND lane = $2 AND holds_lane")
        .params(params![company_id, lane])
        .optional()
        .await
}

/// Returns the sum of a lane's charges that are queued or hold the lane.
pub async fn sum_of_lane(tx: &mut Tx, company_id: &CompanyId, lane: &str) -> Result<Minor> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM charges
         WHERE company_id = $1 AND lane = $2 AND (holds_lane OR state = 'queued')",
    )
    .params(params![company_id, lane])
    .value()
    .await
}

/// Extends the lease of a request. Returns `false` if it ended or a newer request has begun.
pub async fn extend_lease(tx: &mut Tx, charge: &Charge, until: Timestamp) -> Result<bool> {
    tx.sql(
        "UPDATE charges SET lease_until = $4
         WHERE company_id = $1 AND id = $2 AND fence = $3 AND lease_until IS NOT NULL",
    )
    .params(params![&charge.company_id, &charge.id, charge.fence, until])
    .affects_one()
    .await
}

/// Sets the disputed amount of a charge to the total of its open and lost disputes, but at most to
/// what was taken and not refunded. The caller writes the charge.
pub async fn refresh_disputed(tx: &mut Tx, charge: &mut Charge) -> Result<()> {
    let disputed: Minor = tx
        .sql(
            "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM disputes
             WHERE company_id = $1 AND charge_id = $2 AND state <> 'won'",
        )
        .params(params![&charge.company_id, &charge.id])
        .value()
        .await?;
    let most = charge.taken.unwrap_or_default().0 - charge.refunded.0;
    charge.disputed = Minor(disputed.0.clamp(0, most.max(0)));
    Ok(())
}

/// Returns what the ledger holds or has given to the provider for the refunds and disputes of a
/// charge.
pub async fn sum_of_returns(tx: &mut Tx, charge: &Charge) -> Result<Minor> {
    tx.sql(
        "SELECT CAST(COALESCE(SUM(r.minor), 0) AS BIGINT) FROM (
             SELECT held_minor + fee_minor AS minor FROM charge_refunds
             WHERE company_id = $1 AND charge_id = $2
             UNION ALL SELECT held_minor + lost_minor + fee_minor FROM disputes
             WHERE company_id = $1 AND charge_id = $2) r",
    )
    .params(params![&charge.company_id, &charge.id])
    .value()
    .await
}

/// Returns whether a charge has a dispute without outcome.
pub async fn is_disputed(
    tx: &mut Tx,
    company_id: &CompanyId,
    charge_id: &ChargeId,
) -> Result<bool> {
    let found: Option<String> = tx
        .sql(
            "SELECT id FROM disputes
             WHERE company_id = $1 AND charge_id = $2 AND state IN ('open', 'answered') LIMIT 1",
        )
        .params(params![company_id, charge_id])
        .optional_value()
        .await?;
    Ok(found.is_some())
}
