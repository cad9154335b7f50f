//! The rows of mandates.

use super::{MandateState, session_context, token_context};
use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey},
    state::storage::*,
    tenants::providers::AccountId,
};

text_types! {
    /// The id of a mandate.
    MandateId;
}

#[derive(Clone, Debug, Default, FromRow)]
pub struct Mandate {
    pub company_id: CompanyId,
    pub id: MandateId,
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    /// The idempotency name of the request that created it.
    pub run: Option<String>,
    pub state: MandateState,
    pub payment_service: String,
    /// The provider account; empty if another system created the mandate.
    pub account_id: AccountId,
    /// The reference at the provider.
    pub service_ref: String,
    /// Sealed data of the plugin. `None` if the response of the request that began it was lost.
    pub session: Option<String>,
    pub consent_url: Option<String>,
    pub instruction: Option<String>,
    pub success_url: Option<String>,
    pub currency: Currency,
    /// Sealed; a sealed empty text until the mandate is ready.
    pub token: String,
    /// The provider requires it with the token.
    pub email: String,
    pub bank: String,
    pub last4: String,
    /// The maximum amount of one debit.
    #[sqlx(rename = "max_amount_minor")]
    pub max_amount: Option<Minor>,
    pub ends_at: Option<Timestamp>,
    /// `false` blocks all debits, also by hosts of the previous version, which know no states.
    pub active: bool,
    pub is_default: bool,
    pub message: String,
    /// Whether it still has to be cancelled at the provider.
    pub to_cancel: bool,
    /// When it was deleted; a deleted mandate is hidden.
    pub removed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub const SEALED: [SealedColumn; 2] = [
    sealed_column!(direct_debits(company_id, id).token, |company, id| token_context(company, id)),
    sealed_column!(direct_debits(company_id, id).session, |company, id| {
        session_context(company, id)
    }),
];

fn select(company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(" FROM direct_debits t WHERE company_id = ")
        .bind(company_id)
}

/// Finds a mandate that is not removed.
pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &MandateId) -> Result<Option<Mandate>> {
    let found = find_any(tx, company_id, id).await?;
    Ok(found.filter(|mandate| mandate.removed_at.is_none()))
}

/// Finds a mandate, removed or not.
pub async fn find_any(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &MandateId,
) -> Result<Option<Mandate>> {
    tx.dynamic(&select(company_id).append(" AND id = ").bind(id)).optional().await
}

/// Finds the mandate that an earlier run of a request created.
pub async fn find_by_run(
    tx: &mut Tx,
    company_id: &CompanyId,
    run: &str,
) -> Result<Option<Mandate>> {
    tx.dynamic(&select(company_id).append(" AND run = ").bind(run)).optional().await
}

pub async fn find_default(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Option<Mandate>> {
    let sql = select(company_id).append(" AND is_default AND user_key = ").bind(user_key);
    tx.dynamic(&sql).optional().await
}

/// Returns a user's mandates that can be charged, the default first.
pub async fn list_usable(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Vec<Mandate>> {
    let sql = select(company_id)
        .append(" AND active AND state = 'ready' AND removed_at IS NULL AND user_key = ")
        .bind(user_key)
        .append(" ORDER BY is_default DESC, created_at, id");
    tx.dynamic(&sql).all().await
}

/// Returns a user's mandates without removed ones.
pub async fn list_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    state: Option<&str>,
    order: SortOrder,
) -> Result<Vec<Mandate>> {
    let sql = select(company_id)
        .append(" AND removed_at IS NULL AND user_key = ")
        .bind(user_key)
        .append_if(" AND state = ", state)
        .append(ListOrder::Created(order).order_by());
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

/// Inserts a mandate to begin. Returns `false` if an earlier run of the request has created it.
pub async fn insert(tx: &mut Tx, mandate: &Mandate) -> Result<bool> {
    tx.sql(
        "INSERT INTO direct_debits (company_id, id, user_key, user_id, run, state,
             payment_service, account_id, service_ref, success_url, currency, token, email, bank,
             max_amount_minor, ends_at, active, is_default, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '', $14, $15, FALSE,
             FALSE, $16, $16)
         ON CONFLICT (company_id, run) DO NOTHING",
    )
    .params(params![
        &mandate.company_id, &mandate.id, &mandate.user_key, &mandate.user_id, &mandate.run,
        mandate.state, &mandate.payment_service, &mandate.account_id, &mandate.service_ref,
        &mandate.success_url, &mandate.currency, &mandate.token, &mandate.email,
        mandate.max_amount, mandate.ends_at, mandate.created_at
    ])
    .affects_one()
    .await
}

/// Writes the mutable columns of a mandate that was begun here.
pub async fn update(tx: &mut Tx, mandate: &Mandate) -> Result<()> {
    tx.sql(
        "UPDATE direct_debits SET state = $3, service_ref = $4, session = $5, consent_url = $6,
             instruction = $7, token = $8, email = $9, bank = $10, last4 = $11, active = $12,
             is_default = $13, message = $14, to_cancel = $15, removed_at = $16, updated_at = $17
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &mandate.company_id, &mandate.id, mandate.state, &mandate.service_ref, &mandate.session,
        &mandate.consent_url, &mandate.instruction, &mandate.token, &mandate.email, &mandate.bank,
        &mandate.last4, mandate.active, mandate.is_default, &mandate.message, mandate.to_cancel,
        mandate.removed_at, mandate.updated_at
    ])
    .execute()
    .await
}

/// Writes a mandate of another system, which is ready.
pub async fn upsert(tx: &mut Tx, mandate: &Mandate) -> Result<Mandate> {
    tx.sql(
        "INSERT INTO direct_debits (company_id, id, user_key, user_id, payment_service,
             currency, token, email, bank, active, is_default, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
         ON CONFLICT (company_id, id) DO UPDATE SET user_key = excluded.user_key,
             user_id = excluded.user_id, payment_service = excluded.payment_service,
             currency = excluded.currency, token = excluded.token, email = excluded.email,
             bank = excluded.bank, active = excluded.active, is_default = excluded.is_default,
             updated_at = excluded.updated_at, state = 'ready', account_id = '',
             service_ref = '', session = NULL, consent_url = NULL, instruction = NULL,
             success_url = NULL, to_cancel = FALSE, removed_at = NULL",
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

pub async fn delete(tx: &mut Tx, mandate: &Mandate) -> Result<()> {
    tx.sql("DELETE FROM direct_debits WHERE company_id = $1 AND id = $2")
        .params(params![&mandate.company_id, &mandate.id])
        .execute()
        .await
}

/// Deletes up to `limit` mandates of all companies removed before `before`. Returns their number.
pub async fn sweep(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM direct_debits WHERE (company_id, id) IN (
         SELECT company_id, id FROM direct_debits WHERE removed_at < $1 AND NOT to_cancel
         ORDER BY removed_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![before, limit])
    .run()
    .await
}
