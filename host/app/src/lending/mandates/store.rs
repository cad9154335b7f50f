//! The rows of mandates.

use super::seal_context;
use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey},
    state::storage::*,
};

text_types! {
    /// The id of a mandate, assigned by the system that created it.
    MandateId;
}

/// A mandate without its token.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "DirectDebit")]
pub struct Mandate {
    #[serde(skip)]
    pub company_id: CompanyId,
    pub id: MandateId,
    /// The internal id of the account holder.
    #[serde(rename = "user")]
    pub user_key: UserKey,
    // The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    pub payment_service: String,
    pub currency: Currency,
    /// Sealed.
    #[serde(skip)]
    pub token: String,
    // The provider requires it with the token.
    pub email: String,
    pub bank: String,
    pub active: bool,
    #[serde(rename = "default")]
    pub is_default: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub const SEALED: [SealedColumn; 1] =
    [sealed_column!(direct_debits(company_id, id).token, |company, id| seal_context(company, id))];

fn select(company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM direct_debits t WHERE company_id = ")
        .bind(company_id)
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &MandateId) -> Result<Option<Mandate>> {
    tx.dynamic(&select(company_id).append(" AND id = ").bind(id)).optional().await
}

pub async fn find_default(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Option<Mandate>> {
    let sql = select(company_id).append(" AND is_default AND user_key = ").bind(user_key);
    tx.dynamic(&sql).optional().await
}

/// Returns a user's active mandates, the default first.
pub async fn list_active(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Vec<Mandate>> {
    let sql = select(company_id)
        .append(" AND active AND user_key = ")
        .bind(user_key)
        .append(" ORDER BY is_default DESC, created_at, id");
    tx.dynamic(&sql).all().await
}

/// Makes the user's other mandates non-default.
pub async fn clear_default(tx: &mut Tx, mandate: &Mandate) -> Result<()> {
    tx.sql(
        "UPDATE direct_debits SET is_default = FALSE, updated_at = $4
         WHERE company_id = $1 AND user_key = $2 AND is_default AND id <> $3",
    )
    .params(params![&mandate.company_id, &mandate.user_key, &mandate.id, mandate.updated_at])
    .execute()
    .await
}

pub async fn upsert(tx: &mut Tx, mandate: &Mandate) -> Result<Mandate> {
    tx.sql(
        "INSERT INTO direct_debits (company_id, id, user_key, user_id, payment_service,
             currency, token, email, bank, active, is_default, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
         ON CONFLICT (company_id, id) DO UPDATE SET user_key = excluded.user_key,
             user_id = excluded.user_id, payment_service = excluded.payment_service,
             currency = excluded.currency, token = excluded.token, email = excluded.email,
             bank = excluded.bank, active = excluded.active, is_default = excluded.is_default,
             updated_at = excluded.updated_at",
    )
    .params(params![
        &mandate.company_id, &mandate.id, &mandate.user_key, &mandate.user_id,
        &mandate.payment_service, &mandate.currency, &mandate.token, &mandate.email, &mandate.bank,
        mandate.active, mandate.is_default, mandate.updated_at
    ])
    .execute()
    .await?;
    tx.dynamic(&select(&mandate.company_id).append(" AND id = ").bind(&mandate.id)).one().await
}
