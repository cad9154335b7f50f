//! Records that a list lacks.

use super::{super::TransactionKind, Listing};
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
    /// What the ledger gave to the provider for it, or has from the provider. For a dispute, it
    /// excludes what a reversal of the charge gave.
    #[sqlx(rename = "booked_minor")]
    pub booked: Minor,
    pub at: Timestamp,
}

macro_rules! charges {
    () => {
        "SELECT c.company_id, c.id, c.id AS charge_id, c.taken_minor AS amount_minor,
             c.taken_minor - COALESCE(c.fees_minor, 0) AS booked_minor, c.settled_at AS at
         FROM charges c WHERE c.taken_minor IS NOT NULL AND c.state <> 'reversed' "
    };
}

macro_rules! refunds {
    () => {
        "SELECT r.company_id, r.id, r.charge_id, r.amount_minor,
             r.held_minor + r.fee_minor AS booked_minor, r.updated_at AS at
         FROM charge_refunds r
         JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
         WHERE r.state = 'done' "
    };
}

macro_rules! disputes {
    () => {
        "SELECT d.company_id, d.id, d.charge_id, d.amount_minor,
             d.lost_minor + d.fee_minor AS booked_minor, d.closed_at AS at
         FROM disputes d WHERE d.state = 'lost' "
    };
}

/// Returns the records of a kind that began and ended in a period, and that the list lacks.
/// Providers list by the time of creation: what began earlier is not part of the list.
pub async fn list_unlisted(
    tx: &mut Tx,
    kind: TransactionKind,
    listing: &Listing,
    Period { from, before }: Period,
    after: &str,
    limit: i64,
) -> Result<Vec<UnlistedRecord>> {
    let statement = match kind {
        TransactionKind::Payment => tx.sql(concat!(
            charges!(),
            "AND c.account_id = $1 AND c.settled_at >= $2 AND c.settled_at < $3
                 AND c.begun_at >= $2 AND c.id > $4 AND NOT EXISTS (
                     SELECT 1 FROM provider_transactions t
                     WHERE t.company_id = c.company_id AND t.charge_id = c.id
                         AND t.account_id = c.account_id AND t.kind = 'payment'
                         AND t.listed_until = $5)
             ORDER BY c.id LIMIT $6"
        )),
        TransactionKind::Refund => tx.sql(concat!(
            refunds!(),
            "AND c.account_id = $1 AND r.updated_at >= $2 AND r.updated_at < $3
                 AND r.created_at >= $2 AND r.id > $4 AND NOT EXISTS (
                     SELECT 1 FROM provider_transactions t
                     WHERE t.company_id = c.company_id AND t.charge_id = c.id
                         AND t.account_id = c.account_id AND t.kind = 'refund'
                         AND t.record_id = r.id AND t.listed_until = $5)
             ORDER BY r.id LIMIT $6"
        )),
        TransactionKind::Dispute => tx.sql(concat!(
            disputes!(),
            "AND d.account_id = $1 AND d.closed_at >= $2 AND d.closed_at < $3 AND d.id > $4
                 AND NOT EXISTS (
                     SELECT 1 FROM provider_transactions t
                     WHERE t.company_id = d.company_id AND t.charge_id = d.charge_id
                         AND t.account_id = d.account_id AND t.kind = 'dispute'
                         AND t.record_id = d.id AND t.listed_until = $5)
             ORDER BY d.id LIMIT $6"
        )),
    };
    let period = params![&listing.account_id, from, before, after, listing.until, limit];
    statement.params(period).all().await
}

/// Returns a record as it is now. `None`: the ledger no longer has it.
pub async fn find_record(
    tx: &mut Tx,
    kind: TransactionKind,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<UnlistedRecord>> {
    let statement = match kind {
        TransactionKind::Payment => {
            tx.sql(concat!(charges!(), "AND c.company_id = $1 AND c.id = $2"))
        }
        TransactionKind::Refund => {
            tx.sql(concat!(refunds!(), "AND r.company_id = $1 AND r.id = $2"))
        }
        TransactionKind::Dispute => {
            tx.sql(concat!(disputes!(), "AND d.company_id = $1 AND d.id = $2"))
        }
    };
    statement.params(params![company_id, id]).optional().await
}
