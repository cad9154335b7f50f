//! Leases on bulk imports, one per company.

use tollhouse_platform::{
    clock::Timestamp,
    store::{Result, Tx, params},
    values::id::CompanyId,
};

/// Acquires the lease; `false` if another one is still valid.
pub async fn acquire_lease(
    tx: &mut Tx,
    company_id: &CompanyId,
    lease: &str,
    [now, until]: [Timestamp; 2],
) -> Result<bool> {
    let taken = tx
        .sql(
            "INSERT INTO user_imports (company_id, lease, lease_until) VALUES ($1, $2, $3)
             ON CONFLICT (company_id) DO UPDATE SET
                 lease = excluded.lease, lease_until = excluded.lease_until
             WHERE user_imports.lease_until <= $4",
        )
        .params(params![company_id, lease, until, now])
        .run()
        .await?;
    Ok(taken == 1)
}

/// Releases the lease; `false` if another import has acquired it.
pub async fn release_lease(tx: &mut Tx, company_id: &CompanyId, lease: &str) -> Result<bool> {
    let ended = tx
        .sql("DELETE FROM user_imports WHERE company_id = $1 AND lease = $2")
        .params(params![company_id, lease])
        .run()
        .await?;
    Ok(ended == 1)
}
