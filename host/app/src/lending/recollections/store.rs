//! The rows of recollections and of collected installments.

use serde_json::{Map, Value};

use super::{ABANDONED_SECONDS, Lease, Status, api::RecollectionFilter};
use crate::{
    customers::UserKey,
    lending::{loans::LoanId, mandates::MandateId},
    money::cards::CardId,
    tenants::providers::AccountId,
};
use tollhouse_platform::{
    clock::Timestamp,
    store::{DynamicStatement, FromRow, Json, Result, Tx, params},
    values::{
        id::{CompanyId, text_types},
        listing::{PageRequest, order_by},
        money::{Currency, Minor, Money},
    },
};

text_types! {
    /// The id of a recollection.
    RecollectionId;
}

#[derive(Clone, Debug, FromRow)]
pub struct Recollection {
    pub company_id: CompanyId,
    pub id: RecollectionId,
    /// The idempotency name of the request that created the recollection.
    pub run: Option<String>,
    pub loan_id: LoanId,
    /// The internal id of the user.
    pub user_key: UserKey,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: String,
    pub status: Status,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    pub currency: Currency,
    pub with_provider: bool,
    /// Empty for a manual recollection, like the other fields of the provider.
    pub payment_service: String,
    pub payment_channel: String,
    pub account_id: AccountId,
    /// `true` on the service account: a success credits the company's wallet.
    pub credits_wallet: bool,
    pub reference: String,
    pub service_ref: String,
    pub transaction_id: String,
    pub message: String,
    pub callback_url: Option<String>,
    pub repaid_at: Option<Timestamp>,
    pub card_id: Option<CardId>,
    pub direct_debit_id: Option<MandateId>,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    pub checkout_url: Option<String>,
    /// When a checkout session was last requested.
    pub begun_at: Option<Timestamp>,
    /// The lease of the request that opens the checkout session.
    #[sqlx(flatten)]
    pub lease: Lease,
    /// The ledger key of the fee for automatic collection.
    pub fee_key: Option<String>,
    pub metadata: Json<Map<String, Value>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Recollection {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }
}

/// A query of recollections with the current `user_id` of their users.
macro_rules! recollections {
    ($rest:literal) => {
        concat!(
            "SELECT *, COALESCE((SELECT users.user_id FROM users
                 WHERE users.company_id = recollections.company_id
                     AND users.id = recollections.user_key),
                 recollections.user_id) AS present_user_id",
            $rest
        )
    };
}

/// Inserts a recollection. Returns `false` if the company has already used the reference.
pub async fn insert(tx: &mut Tx, new: &Recollection) -> Result<bool> {
    let inserted = tx
        .sql(
            "INSERT INTO recollections (company_id, id, run, loan_id, user_key, user_id, status,
                 amount_minor, fees_minor, currency, with_provider, payment_service,
                 payment_channel, account_id, credits_wallet, reference, service_ref, transaction_id,
                 message, callback_url, repaid_at, card_id, direct_debit_id, success_url, cancel_url,
                 checkout_url, fee_key, metadata, created_at, updated_at, begun_at,
                 starting_until, lease, lease_until)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                 $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33,
                 $34)
             ON CONFLICT (company_id, reference) DO NOTHING",
        )
        .params(params![&new.company_id, &new.id, &new.run, &new.loan_id, &new.user_key, &new.user_id, new.status, new.amount, new.fees, &new.currency, new.with_provider, &new.payment_service, &new.payment_channel, &new.account_id, new.credits_wallet, &new.reference, &new.service_ref, &new.transaction_id, &new.message, &new.callback_url, new.repaid_at, &new.card_id, &new.direct_debit_id, &new.success_url, &new.cancel_url, &new.checkout_url, &new.fee_key, &new.metadata, new.created_at, new.updated_at, new.begun_at, new.lease.until, &new.lease.token, new.lease.token_until])
        .run()
        .await?;
    Ok(inserted == 1)
}

/// Writes the mutable columns of a recollection.
pub async fn update(tx: &mut Tx, recollection: &Recollection) -> Result<()> {
    tx.sql(
        "UPDATE recollections SET status = $3, fees_minor = $4, service_ref = $5,
             transaction_id = $6, message = $7, repaid_at = $8, checkout_url = $9,
             updated_at = $10, amount_minor = $11, begun_at = $12, starting_until = $13,
             lease = $14, lease_until = $15
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &recollection.company_id, &recollection.id, recollection.status, recollection.fees,
        &recollection.service_ref, &recollection.transaction_id, &recollection.message,
        recollection.repaid_at, &recollection.checkout_url, recollection.updated_at,
        recollection.amount, recollection.begun_at, recollection.lease.until,
        &recollection.lease.token, recollection.lease.token_until
    ])
    .run()
    .await?;
    Ok(())
}

pub async fn delete(tx: &mut Tx, recollection: &Recollection) -> Result<()> {
    tx.sql("DELETE FROM recollections WHERE company_id = $1 AND id = $2")
        .params(params![&recollection.company_id, &recollection.id])
        .run()
        .await?;
    Ok(())
}

pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &RecollectionId,
) -> Result<Option<Recollection>> {
    tx.sql(recollections!(" FROM recollections WHERE company_id = $1 AND id = $2"))
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn find_by_reference(
    tx: &mut Tx,
    company_id: &CompanyId,
    reference: &str,
) -> Result<Option<Recollection>> {
    tx.sql(recollections!(" FROM recollections WHERE company_id = $1 AND reference = $2"))
        .params(params![company_id, reference])
        .optional()
        .await
}

/// Returns the sum of a loan's pending charges. Checkout sessions do not count, nor do charges that
/// have waited for their customer for more than 72 hours.
pub async fn pending_charges(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
    now: Timestamp,
) -> Result<Minor> {
    let (sum,): (i64,) = tx
        .sql(
            "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM recollections
             WHERE company_id = $1 AND loan_id = $2 AND status = 'pending'
                 AND payment_channel IN ('card', 'direct_debit')
                 AND (checkout_url IS NULL OR created_at > $3)",
        )
        .params(params![company_id, loan_id, now.plus_seconds(-ABANDONED_SECONDS)])
        .one()
        .await?;
    Ok(Minor(sum))
}

/// Returns a page of a company's recollections, of one user or of all, and the total number.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: Option<&UserKey>,
    filter: &RecollectionFilter,
    page: PageRequest,
) -> Result<(i64, Vec<Recollection>)> {
    let filtered = |select| {
        DynamicStatement::from(select)
            .append(" FROM recollections WHERE company_id = ")
            .bind(company_id)
            .append_if(" AND user_key = ", user_key)
            .append_if(" AND loan_id = ", filter.loan.as_ref())
            .append_period([" AND created_at >= ", " AND created_at < "], filter.date_created_at)
    };
    let order = order_by(filter.sort_created_at, filter.sort_updated_at);
    tx.list(filtered, recollections!(""), order, page).await
}

/// The key of a collected installment.
#[derive(Clone, Copy, Debug)]
pub struct InstallmentKey<'i> {
    pub company_id: &'i CompanyId,
    pub loan_id: &'i LoanId,
    /// The ordinal among the installments with this due date, from 1.
    pub number: i64,
    pub due_at: Timestamp,
}

/// Marks an installment as collected, with its recollection. Returns `false` if it already was.
pub async fn record_collection(
    tx: &mut Tx,
    installment: InstallmentKey<'_>,
    recollection_id: Option<&RecollectionId>,
    now: Timestamp,
) -> Result<bool> {
    let inserted = tx
        .sql(
            "INSERT INTO collections (company_id, loan_id, number, due_at, recollection_id,
                 created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (company_id, loan_id, number, due_at) DO NOTHING",
        )
        .params(params![
            installment.company_id, installment.loan_id, installment.number, installment.due_at,
            recollection_id, now
        ])
        .run()
        .await?;
    Ok(inserted == 1)
}

/// Returns the collected installments of a loan: ordinal and due date.
pub async fn collected_installments(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<(i64, Timestamp)>> {
    tx.sql("SELECT number, due_at FROM collections WHERE company_id = $1 AND loan_id = $2")
        .params(params![company_id, loan_id])
        .all()
        .await
}
