//! The leases of payments, recollections and refunds.

use super::{Leased, LeasedTable};
use crate::state::storage::*;

/// Extends a lease. Returns `false` if the record no longer has it.
pub async fn extend(tx: &mut Tx, record: &Leased, until: Timestamp) -> Result<bool> {
    let sql = match record.table {
        LeasedTable::Payments => {
            "UPDATE payments SET starting_until = $4, lease_until = $4
             WHERE company_id = $1 AND id = $2 AND lease = $3 AND starting_until = lease_until"
        }
        LeasedTable::Recollections => {
            "UPDATE recollections SET starting_until = $4, lease_until = $4
             WHERE company_id = $1 AND id = $2 AND lease = $3 AND starting_until = lease_until"
        }
        LeasedTable::Refunds => {
            "UPDATE refunds SET asking_until = $4, lease_until = $4
             WHERE company_id = $1 AND payment_id = $2 AND lease = $3
                 AND asking_until = lease_until"
        }
    };
    tx.sql(sql)
        .params(params![&record.company_id, &record.id, &record.lease.token, until])
        .affects_one()
        .await
}
