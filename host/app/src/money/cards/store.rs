//! The rows of cards and of refunds of verification charges.

use super::{Charge, Status, seal_context};
use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey},
    state::storage::*,
    tenants::providers::AccountId,
};

text_types! {
    /// The id of a saved card.
    CardId;
}

#[derive(Clone, Debug, Default, FromRow)]
pub struct Card {
    pub company_id: CompanyId,
    pub id: CardId,
    /// The internal id of the user.
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    /// The idempotency name of the request that created the card.
    pub run: Option<String>,
    pub status: Status,
    pub is_default: bool,
    pub payment_service: String,
    pub account_id: AccountId,
    /// The amount of the verification charge.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub currency: Currency,
    /// The e-mail address of the verification charge: providers require it with the token.
    #[sqlx(rename = "email")]
    pub charge_email: String,
    /// Sealed.
    pub token: Option<String>,
    pub signature: String,
    #[sqlx(flatten)]
    pub details: CardDetails,
    pub service_ref: String,
    #[sqlx(flatten)]
    pub checkout: Checkout,
    pub message: Option<String>,
    /// When the card was removed; a removed card is hidden.
    pub removed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Card details, empty until the card is verified.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
pub struct CardDetails {
    #[serde(rename = "last_4_digits")]
    pub last4: String,
    #[serde(rename = "card_holder_name")]
    pub holder: String,
    /// The first six digits of the card number.
    pub bin: String,
    /// Card type, for example `visa`, `mastercard` or `verve`.
    #[serde(rename = "card_type")]
    pub brand: String,
    pub bank: String,
    /// Two-letter country code.
    #[serde(rename = "country_code")]
    pub country: String,
    pub exp_month: String,
    pub exp_year: String,
    /// The user's e-mail address.
    #[sqlx(rename = "present_email")]
    pub email: String,
}

/// The checkout session in which the customer verifies the card.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "CardCheckout")]
pub struct Checkout {
    pub success_url: String,
    pub cancel_url: Option<String>,
    #[sqlx(rename = "checkout_url")]
    pub url: Option<String>,
}

pub const SEALED: [SealedColumn; 1] =
    [sealed_column!(cards(company_id, id).token, |company, id| seal_context(company, id))];

/// Begins a query of a company's cards, with the current e-mail addresses of their users.
fn select(company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(SELECT_WITH_USER_ID)
        .append(
            ", COALESCE((SELECT users.email FROM users
                 WHERE users.company_id = t.company_id AND users.id = t.user_key), '')
                 AS present_email
             FROM cards t WHERE company_id = ",
        )
        .bind(company_id)
}

/// Inserts a card with its first charge. Returns `false` if an earlier run of the request has
/// created it.
pub async fn insert(tx: &mut Tx, card: &Card, charge: &Charge) -> Result<bool> {
    tx.sql(
        "INSERT INTO cards (company_id, id, user_key, user_id, run, status, is_default,
             payment_service, account_id, amount_minor, currency, email, signature, last4, holder,
             bin, brand, bank, country, exp_month, exp_year, service_ref, transaction_id,
             success_url, cancel_url, created_at, updated_at, charge_id)
         VALUES ($1, $2, $3, $4, $5, $6, FALSE, $7, $8, $9, $10, $11, '', '', '', '', '', '',
             '', '', '', $12, '', $13, $14, $15, $15, $16)
         ON CONFLICT (company_id, run) DO NOTHING",
    )
    .params(params![
        &card.company_id, &card.id, &card.user_key, &card.user_id, &card.run, card.status,
        &card.payment_service, &card.account_id, card.amount, &card.currency, &card.charge_email,
        &card.service_ref, &card.checkout.success_url, &card.checkout.cancel_url, card.created_at,
        &charge.id
    ])
    .affects_one()
    .await
}

/// Writes the mutable columns of a card.
pub async fn update(tx: &mut Tx, card: &Card) -> Result<()> {
    let Card { details, .. } = card;
    tx.sql(
        "UPDATE cards SET status = $3, is_default = $4, email = $5, token = $6, signature = $7,
             last4 = $8, holder = $9, bin = $10, brand = $11, bank = $12, country = $13,
             exp_month = $14, exp_year = $15, service_ref = $16, checkout_url = $17,
             message = $18, removed_at = $19, updated_at = $20, account_id = $21,
             payment_service = $22, revision = revision + 1
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &card.company_id, &card.id, card.status, card.is_default, &card.charge_email, &card.token,
        &card.signature, &details.last4, &details.holder, &details.bin, &details.brand,
        &details.bank, &details.country, &details.exp_month, &details.exp_year, &card.service_ref,
        &card.checkout.url, &card.message, card.removed_at, card.updated_at, &card.account_id,
        &card.payment_service
    ])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, card: &Card) -> Result<()> {
    tx.sql("DELETE FROM cards WHERE company_id = $1 AND id = $2")
        .params(params![&card.company_id, &card.id])
        .execute()
        .await
}

/// Finds a card that is not removed.
pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &CardId) -> Result<Option<Card>> {
    let card = find_any(tx, company_id, id).await?;
    Ok(card.filter(|card| card.removed_at.is_none()))
}

/// Finds a card, removed or not.
pub async fn find_any(tx: &mut Tx, company_id: &CompanyId, id: &CardId) -> Result<Option<Card>> {
    tx.dynamic(&select(company_id).append(" AND id = ").bind(id)).optional().await
}

/// Returns the card of a refund that a host of the previous version began.
pub async fn card_of_refund(
    tx: &mut Tx,
    company_id: &CompanyId,
    refund_id: &str,
) -> Result<Option<String>> {
    tx.sql("SELECT card_id FROM card_refunds WHERE company_id = $1 AND id = $2")
        .params(params![company_id, refund_id])
        .optional_value()
        .await
}

/// Finds the card that an earlier run of a request created.
pub async fn find_by_run(tx: &mut Tx, company_id: &CompanyId, run: &str) -> Result<Option<Card>> {
    tx.dynamic(&select(company_id).append(" AND run = ").bind(run)).optional().await
}

pub async fn find_default(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Option<Card>> {
    let sql = select(company_id).append(" AND is_default AND user_key = ").bind(user_key);
    tx.dynamic(&sql).optional().await
}

/// Returns the user's other valid cards, newest first.
pub async fn list_other_valid(tx: &mut Tx, card: &Card) -> Result<Vec<Card>> {
    let Card { company_id, user_key, .. } = card;
    let mut cards =
        list_for_user(tx, company_id, user_key, Some(true), SortOrder::Descending).await?;
    cards.retain(|other| other.id != card.id);
    Ok(cards)
}

/// Returns a user's cards, except removed ones. `valid` selects only valid or only other cards.
pub async fn list_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    valid: Option<bool>,
    order: SortOrder,
) -> Result<Vec<Card>> {
    let sql = select(company_id)
        .append(" AND removed_at IS NULL AND user_key = ")
        .bind(user_key)
        .append_if(" AND (status = 'valid') = ", valid)
        .append(ListOrder::Created(order).order_by());
    tx.dynamic(&sql).all().await
}

/// Deletes up to `limit` cards, of all companies, that were removed before `before` and have no
/// token. Returns their number.
pub async fn sweep(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM cards WHERE (company_id, id) IN (
         SELECT company_id, id FROM cards WHERE removed_at < $1 AND token IS NULL
         ORDER BY removed_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![before, limit])
    .run()
    .await
}
