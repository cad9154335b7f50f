//! The rows of refunds.

use super::{Cause, ChargeId, OwnerKind, RefundState};
use crate::state::{config::FeeBearer, storage::*};

/// A refund of a charge. A retry after a failure is another refund.
#[derive(Clone, Debug, FromRow)]
pub struct Refund {
    pub company_id: CompanyId,
    pub id: String,
    pub charge_id: ChargeId,
    /// Position among the refunds of the charge, from 1.
    pub number: i64,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// The amount that the ledger has debited for it.
    #[sqlx(rename = "held_minor")]
    pub held: Minor,
    /// The provider's fees on the amount, which the ledger has debited from their bearer.
    #[sqlx(rename = "fee_minor")]
    pub fee: Minor,
    pub fee_bearer: FeeBearer,
    /// It was debited from money that failed refunds still held.
    pub replaces: bool,
    pub currency: Currency,
    pub cause: Cause,
    /// The reference at the provider, the same in every request of this refund.
    pub refund_ref: String,
    /// The provider's id of the refund; empty until it accepts the refund.
    pub provider_id: String,
    pub state: RefundState,
    /// The fencing token: the number of requests and queries. Each write of one compares it.
    pub fence: i64,
    pub lease_until: Option<Timestamp>,
    /// A request ended with an unknown outcome.
    pub unsure: bool,
    /// The provider's status message.
    pub message: String,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Refund {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }
}

pub async fn insert(tx: &mut Tx, refund: &Refund) -> Result<()> {
    tx.sql(
        "INSERT INTO charge_refunds (company_id, id, charge_id, number, amount_minor, held_minor,
             currency, cause, refund_ref, provider_id, state, fence, lease_until, unsure, message,
             last_error, created_at, updated_at, fee_minor, fee_bearer, replaces)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21)",
    )
    .params(params![
        &refund.company_id, &refund.id, &refund.charge_id, refund.number, refund.amount,
        refund.held, &refund.currency, refund.cause, &refund.refund_ref, &refund.provider_id,
        refund.state, refund.fence, refund.lease_until, refund.unsure, &refund.message,
        &refund.last_error, refund.created_at, refund.updated_at, refund.fee, refund.fee_bearer,
        refund.replaces
    ])
    .execute()
    .await
}

/// Writes the progress of a refund.
pub async fn update(tx: &mut Tx, refund: &Refund) -> Result<()> {
    tx.sql(
        "UPDATE charge_refunds SET held_minor = $3, provider_id = $4, state = $5, fence = $6,
             lease_until = $7, unsure = $8, message = $9, last_error = $10, updated_at = $11,
             fee_minor = $12
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &refund.company_id, &refund.id, refund.held, &refund.provider_id, refund.state,
        refund.fence, refund.lease_until, refund.unsure, &refund.message, &refund.last_error,
        refund.updated_at, refund.fee
    ])
    .execute()
    .await
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Refund>> {
    tx.sql("SELECT * FROM charge_refunds WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Refund>> {
    tx.sql("SELECT * FROM charge_refunds WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![company_id, id])
        .optional()
        .await
}

/// Returns the last refund of a charge.
pub async fn find_last(
    tx: &mut Tx,
    company_id: &CompanyId,
    charge_id: &ChargeId,
) -> Result<Option<Refund>> {
    tx.sql(
        "SELECT * FROM charge_refunds WHERE company_id = $1 AND charge_id = $2
         ORDER BY number DESC LIMIT 1",
    )
    .params(params![company_id, charge_id])
    .optional()
    .await
}

/// Returns the refunds of a charge in the order of their numbers.
pub async fn list_of_charge(
    tx: &mut Tx,
    company_id: &CompanyId,
    charge_id: &ChargeId,
) -> Result<Vec<Refund>> {
    tx.sql("SELECT * FROM charge_refunds WHERE company_id = $1 AND charge_id = $2 ORDER BY number")
        .params(params![company_id, charge_id])
        .all()
        .await
}

/// Extends the lease of a request. Returns `false` if it ended or a newer request has begun.
pub async fn extend_lease(tx: &mut Tx, refund: &Refund, until: Timestamp) -> Result<bool> {
    tx.sql(
        "UPDATE charge_refunds SET lease_until = $4
         WHERE company_id = $1 AND id = $2 AND fence = $3 AND lease_until IS NOT NULL",
    )
    .params(params![&refund.company_id, &refund.id, refund.fence, until])
    .affects_one()
    .await
}

/// A refund with its charge, for operators.
#[derive(Clone, Debug, FromRow)]
pub struct ListedRefund {
    #[sqlx(flatten)]
    pub refund: Refund,
    pub owner_kind: OwnerKind,
    pub owner_id: String,
    pub provider: String,
    pub service_ref: String,
    pub transaction_id: String,
}

/// Filter and cursor of a list of refunds.
#[derive(Clone, Debug, Default)]
pub struct RefundsFilter<'f> {
    /// Any of these states; empty: all.
    pub states: Vec<String>,
    pub owner: Option<OwnerKind>,
    /// Only the last refund of each charge.
    pub latest: bool,
    /// Only refunds created before this time.
    pub before: Option<Timestamp>,
    pub after: &'f str,
    pub limit: i64,
}

const SELECT: &str = "SELECT r.*, c.owner_kind, c.owner_id, c.provider, c.service_ref,
         c.transaction_id
     FROM charge_refunds r
     JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id";

/// Returns refunds of all companies after an id, oldest first.
pub async fn list(tx: &mut Tx, filter: &RefundsFilter<'_>) -> Result<Vec<ListedRefund>> {
    let mut sql = DynamicStatement::from(SELECT).append(" WHERE r.id > ").bind(filter.after);
    if !filter.states.is_empty() {
        sql = sql.append(" AND r.state").append_in(&filter.states);
    }
    if filter.latest {
        sql = sql.append(
            " AND NOT EXISTS (SELECT 1 FROM charge_refunds later WHERE later.company_id = r.company_id
                 AND later.charge_id = r.charge_id AND later.number > r.number)",
        );
    }
    let sql = sql
        .append_if(" AND c.owner_kind = ", filter.owner.map(OwnerKind::name))
        .append_if(" AND r.created_at < ", filter.before)
        .append(" ORDER BY r.id LIMIT ")
        .bind(filter.limit);
    tx.dynamic(&sql).all().await
}

pub async fn find_listed(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<ListedRefund>> {
    let sql = DynamicStatement::from(SELECT)
        .append(" WHERE r.company_id = ")
        .bind(company_id)
        .append(" AND r.id = ")
        .bind(id);
    tx.dynamic(&sql).optional().await
}
