//! The rows of disputes.

use super::DisputeState;
use crate::money::{
    charges::{Charge, ChargeId, OwnerKind},
    prelude::AccountId,
};
use crate::state::storage::*;

/// A claim of a payer against a charge.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Dispute {
    #[serde(rename = "company")]
    pub company_id: CompanyId,
    pub id: String,
    #[serde(skip)]
    pub charge_id: ChargeId,
    #[serde(skip)]
    pub account_id: AccountId,
    /// The kind of record that owns the charge.
    pub owner_kind: OwnerKind,
    /// The id of the payment, card or recollection.
    pub owner_id: String,
    /// The reference of the payment or recollection; `null` for a card.
    pub reference: Option<String>,
    #[serde(rename = "payment_service")]
    pub provider: String,
    /// The provider's reference of the payment.
    pub service_ref: String,
    #[serde(skip)]
    pub transaction_id: String,
    /// The provider's id of the dispute.
    pub provider_id: String,
    /// The disputed amount; for a lost dispute, the amount that the payer gets.
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    pub currency: Currency,
    /// The part of the amount that the ledger holds until the dispute ends.
    #[sqlx(rename = "held_minor")]
    pub held: Minor,
    /// The part of the amount that the ledger has given to the provider.
    #[sqlx(rename = "lost_minor")]
    #[serde(skip)]
    pub lost: Minor,
    /// The part of the amount that was the provider's fees, debited from their bearer.
    #[sqlx(rename = "fee_minor")]
    #[serde(skip)]
    pub fee: Minor,
    /// Number of its ledger transactions.
    #[serde(skip)]
    pub postings: i64,
    /// The reason, as reported by the provider.
    pub reason: String,
    pub state: DisputeState,
    /// The lease of the request that answers it.
    #[serde(skip)]
    pub answer_until: Option<Timestamp>,
    /// The deadline for the answer.
    pub due_at: Option<Timestamp>,
    pub opened_at: Timestamp,
    /// The time of the first report that it is answered.
    pub answered_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, dispute: &Dispute) -> Result<()> {
    tx.sql(
        "INSERT INTO disputes (company_id, id, charge_id, account_id, provider_id, amount_minor,
             currency, held_minor, lost_minor, postings, reason, state, due_at, opened_at,
             created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
    )
    .params(params![
        &dispute.company_id, &dispute.id, &dispute.charge_id, &dispute.account_id,
        &dispute.provider_id, dispute.amount, &dispute.currency, dispute.held, dispute.lost,
        dispute.postings, &dispute.reason, dispute.state, dispute.due_at, dispute.opened_at,
        dispute.created_at, dispute.updated_at
    ])
    .execute()
    .await
}

pub async fn update(tx: &mut Tx, dispute: &Dispute) -> Result<()> {
    tx.sql(
        "UPDATE disputes SET amount_minor = $3, held_minor = $4, postings = $5, reason = $6,
             state = $7, answer_until = $8, due_at = $9, answered_at = $10, closed_at = $11,
             updated_at = $12, lost_minor = $13, fee_minor = $14
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &dispute.company_id, &dispute.id, dispute.amount, dispute.held, dispute.postings,
        &dispute.reason, dispute.state, dispute.answer_until, dispute.due_at, dispute.answered_at,
        dispute.closed_at, dispute.updated_at, dispute.lost, dispute.fee
    ])
    .execute()
    .await
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT d.*, c.owner_kind, c.owner_id, c.provider, c.service_ref, c.transaction_id,
                 COALESCE(p.reference, r.reference) AS reference
             FROM disputes d
             JOIN charges c ON c.company_id = d.company_id AND c.id = d.charge_id
             LEFT JOIN payments p ON c.owner_kind = 'payment' AND p.company_id = c.company_id
                 AND p.id = c.owner_id
             LEFT JOIN recollections r ON c.owner_kind = 'recollection'
                 AND r.company_id = c.company_id AND r.id = c.owner_id ",
            $rest
        )
    };
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Dispute>> {
    tx.sql(select!("WHERE d.company_id = $1 AND d.id = $2"))
        .params(params![company_id, id])
        .optional()
        .await
}

/// Returns the dispute with this id at the provider of a charge. Requires the charge's lock.
pub async fn find_at_provider(
    tx: &mut Tx,
    charge: &Charge,
    provider_id: &str,
) -> Result<Option<Dispute>> {
    tx.sql(select!("WHERE d.company_id = $1 AND d.account_id = $2 AND d.provider_id = $3"))
        .params(params![&charge.company_id, &charge.account_id, provider_id])
        .optional()
        .await
}

/// Returns the disputes of a charge, oldest first.
pub async fn list_of_charge(
    tx: &mut Tx,
    company_id: &CompanyId,
    charge_id: &ChargeId,
) -> Result<Vec<Dispute>> {
    tx.sql(select!("WHERE d.company_id = $1 AND d.charge_id = $2 ORDER BY d.created_at, d.id"))
        .params(params![company_id, charge_id])
        .all()
        .await
}

/// Returns disputes of a company, or of all, after an id, oldest first.
pub async fn list(
    tx: &mut Tx,
    company_id: Option<&CompanyId>,
    state: Option<&str>,
    after: &str,
    limit: i64,
) -> Result<Vec<Dispute>> {
    let sql = DynamicStatement::from(select!("WHERE d.id > "))
        .bind(after)
        .append_if(" AND d.company_id = ", company_id)
        .append_if(" AND d.state = ", state)
        .append(" ORDER BY d.id LIMIT ")
        .bind(limit);
    tx.dynamic(&sql).all().await
}

/// Returns whether a dispute of a charge may still change: it has no outcome, or it was lost after
/// `since` and the ledger has not yet given its whole amount to the provider.
pub async fn is_watched(tx: &mut Tx, charge: &Charge, since: Timestamp) -> Result<bool> {
    let found: Option<String> = tx
        .sql(
            "SELECT id FROM disputes WHERE company_id = $1 AND charge_id = $2
                 AND (state IN ('open', 'answered')
                     OR $3 AND state = 'lost' AND lost_minor + fee_minor < amount_minor
                         AND closed_at > $4)
             LIMIT 1",
        )
        .params(params![&charge.company_id, &charge.id, charge.has_more_to_lose(), since])
        .optional_value()
        .await?;
    Ok(found.is_some())
}
