//! The rows of mandates.

use super::seal_context;
use crate::customers::UserKey;
use tollhouse_platform::{
    clock::Timestamp,
    crypto::seal::{SealedColumn, sealed_column},
    store::{FromRow, Result, Tx, params},
    values::{
        id::{CompanyId, text_types},
        money::Currency,
    },
};

text_types! {
    /// The id of a mandate, assigned by the system that created it.
    MandateId;
}

/// A mandate to debit a user's bank account.
#[derive(Clone, Debug, FromRow)]
pub struct Mandate {
    pub company_id: CompanyId,
    pub id: MandateId,
    /// The internal id of the account holder.
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    pub payment_service: String,
    pub currency: Currency,
    /// Sealed.
    pub token: String,
    /// The e-mail address that the provider requires with the token.
    pub email: String,
    pub bank: String,
    pub active: bool,
    pub is_default: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub const SEALED: [SealedColumn; 1] =
    [sealed_column!(direct_debits(company_id, id).token, |company, id| seal_context(company, id))];

/// A statement that returns mandates with the current `user_id` of their users.
macro_rules! direct_debits {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " *, COALESCE((SELECT users.user_id FROM users
                  WHERE users.company_id = direct_debits.company_id
                      AND users.id = direct_debits.user_key),
                  direct_debits.user_id) AS present_user_id",
            $after
        )
    };
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &MandateId) -> Result<Option<Mandate>> {
    tx.sql(direct_debits!("SELECT", " FROM direct_debits WHERE company_id = $1 AND id = $2"))
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn find_default(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Option<Mandate>> {
    tx.sql(direct_debits!(
        "SELECT",
        " FROM direct_debits WHERE company_id = $1 AND user_key = $2 AND is_default"
    ))
    .params(params![company_id, user_key])
    .optional()
    .await
}

/// Makes the user's other mandates non-default.
pub async fn clear_default(tx: &mut Tx, mandate: &Mandate) -> Result<()> {
    tx.sql(
        "UPDATE direct_debits SET is_default = FALSE, updated_at = $4
         WHERE company_id = $1 AND user_key = $2 AND is_default AND id <> $3",
    )
    .params(params![&mandate.company_id, &mandate.user_key, &mandate.id, mandate.updated_at])
    .run()
    .await?;
    Ok(())
}

/// Inserts or replaces a mandate.
pub async fn upsert(tx: &mut Tx, mandate: &Mandate) -> Result<Mandate> {
    tx.sql(direct_debits!(
        "INSERT INTO direct_debits (company_id, id, user_key, user_id, payment_service,
             currency, token, email, bank, active, is_default, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
         ON CONFLICT (company_id, id) DO UPDATE SET user_key = excluded.user_key,
             user_id = excluded.user_id, payment_service = excluded.payment_service,
             currency = excluded.currency, token = excluded.token, email = excluded.email,
             bank = excluded.bank, active = excluded.active, is_default = excluded.is_default,
             updated_at = excluded.updated_at
         RETURNING",
        ""
    ))
    .params(params![
        &mandate.company_id, &mandate.id, &mandate.user_key, &mandate.user_id,
        &mandate.payment_service, &mandate.currency, &mandate.token, &mandate.email, &mandate.bank,
        mandate.active, mandate.is_default, mandate.updated_at
    ])
    .one()
    .await
}
