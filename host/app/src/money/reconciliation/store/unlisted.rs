//! Records that a list lacks.

use super::Listing;
use crate::{money::charges::ChargeId, state::storage::*};
use tollhouse_platform::values::listing::Period;

/// A record that a list lacks.
#[derive(Clone, Debug, FromRow)]
pub struct UnlistedRecord {
    pub company_id: CompanyId,
    /// The id of the charge, refund or dispute.
    pub id: String,
    pub charge_id: ChargeId,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub at: Timestamp,
}

/// Returns the charges that took money in a period, and whose payment the list lacks. Providers list
/// by the time of creation: earlier charges are not part of the list.
pub async fn list_unlisted_charges(
    tx: &mut Tx,
    listing: &Listing,
    Period { from, before }: Period,
    after: &str,
    limit: i64,
) -> Result<Vec<UnlistedRecord>> {
    tx.sql(
        "SELECT c.company_id, c.id, c.id AS charge_id, c.taken_minor AS amount_minor,
             c.settled_at AS at
         FROM charges c
         WHERE c.account_id = $1 AND c.taken_minor IS NOT NULL AND c.settled_at >= $2
             AND c.settled_at < $3 AND c.begun_at >= $2 AND c.state <> 'reversed' AND c.id > $4
             AND NOT EXISTS (
                 SELECT 1 FROM provider_transactions t
                 WHERE t.company_id = c.company_id AND t.charge_id = c.id
                     AND t.account_id = c.account_id AND t.kind = 'payment'
                     AND t.listed_until = $5)
         ORDER BY c.id LIMIT $6",
    )
    .params(params![&listing.account_id, from, before, after, listing.until, limit])
    .all()
    .await
}

/// The same for refunds that the ledger has.
pub async fn list_unlisted_refunds(
    tx: &mut Tx,
    listing: &Listing,
    Period { from, before }: Period,
    after: &str,
    limit: i64,
) -> Result<Vec<UnlistedRecord>> {
    tx.sql(
        "SELECT r.company_id, r.id, r.charge_id, r.amount_minor, r.updated_at AS at
         FROM charge_refunds r
         JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
         WHERE c.account_id = $1 AND r.updated_at >= $2 AND r.updated_at < $3
             AND r.created_at >= $2 AND r.id > $4
             AND (r.state = 'done' OR r.state = 'failed' AND r.held_minor + r.fee_minor > 0)
             AND NOT EXISTS (
                 SELECT 1 FROM provider_transactions t
                 WHERE t.company_id = c.company_id AND t.charge_id = c.id
                     AND t.account_id = c.account_id AND t.kind = 'refund'
                     AND t.record_id = r.id AND t.listed_until = $5)
         ORDER BY r.id LIMIT $6",
    )
    .params(params![&listing.account_id, from, before, after, listing.until, limit])
    .all()
    .await
}

/// The same for disputes that the company lost.
pub async fn list_unlisted_disputes(
    tx: &mut Tx,
    listing: &Listing,
    Period { from, before }: Period,
    after: &str,
    limit: i64,
) -> Result<Vec<UnlistedRecord>> {
    tx.sql(
        "SELECT d.company_id, d.id, d.charge_id, d.amount_minor, d.closed_at AS at
         FROM disputes d
         WHERE d.account_id = $1 AND d.state = 'lost' AND d.closed_at >= $2 AND d.closed_at < $3
             AND d.id > $4 AND NOT EXISTS (
                 SELECT 1 FROM provider_transactions t
                 WHERE t.company_id = d.company_id AND t.charge_id = d.charge_id
                     AND t.account_id = d.account_id AND t.kind = 'dispute'
                     AND t.record_id = d.id AND t.listed_until = $5)
         ORDER BY d.id LIMIT $6",
    )
    .params(params![&listing.account_id, from, before, after, listing.until, limit])
    .all()
    .await
}
