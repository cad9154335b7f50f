//! Leases on bulk imports, one per company.

use crate::state::storage::*;

/// Acquires the lease; `false` if another one is still valid.
pub async fn acquire_lease(
    tx: &mut Tx,
    company_id: &CompanyId,
    lease: &str,
    [now, until]: [Timestamp; 2],
) -> Result<bool> {
    tx.sql(
        "INSERT INTO user_imports (company_id, lease, lease_until) VALUES ($1, $2, $3)
         ON CONFLICT (company_id) DO UPDATE SET
             lease = excluded.lease, lease_until = excluded.lease_until
         WHERE user_imports.lease_until <= $4",
    )
    .params(params![company_id, lease, until, now])
    .affects_one()
    .await
}

/// Releases the lease; `false` if another import has acquired it.
pub async fn release_lease(tx: &mut Tx, company_id: &CompanyId, lease: &str) -> Result<bool> {
    tx.sql("DELETE FROM user_imports WHERE company_id = $1 AND lease = $2")
        .params(params![company_id, lease])
        .affects_one()
        .await
}
