//! Folding: on PostgreSQL, most ledger transactions insert deltas instead of updating balances, so
//! that those of a company do not wait for each other. A task adds the deltas to the balances every
//! second, because reading a balance takes longer the more deltas there are.

use super::store;
use crate::state::prelude::*;

/// Deltas of one ledger account that are folded in one transaction.
const MAX_DELTAS: i64 = 10_000;

/// Folds the deltas of each company, in a transaction of its own. The error of a company is logged,
/// so that it does not delay the others.
pub async fn fold(app: &App) -> Result<()> {
    if !app.store.is_postgres() {
        return Ok(());
    }
    for company_id in app.store.select(store::unfolded_companies).await? {
        let company = company_id.to_string();
        let fold = async move |tx: &mut Tx| store::fold(tx, &company_id, MAX_DELTAS).await;
        if let Err(error) = app.store.write(fold).await {
            tracing::error!(company, %error, "a company's ledger balances could not be folded");
        }
    }
    Ok(())
}
