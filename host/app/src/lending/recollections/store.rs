//! The rows of recollections and of collected installments.

use super::{Charge, Status, api::RecollectionFilter};
use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey, select_with_user_id},
    lending::{
        loans::{Allocation, Loan, LoanId},
        mandates::MandateId,
    },
    money::{cards::CardId, charges::ChargeId},
    state::storage::*,
};
use tollhouse_plugins::Decline;

text_types! {
    /// The id of a recollection.
    RecollectionId;
}

#[derive(Clone, Debug, Default, FromRow)]
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
    pub reference: String,
    pub service_ref: String,
    pub message: String,
    pub callback_url: Option<String>,
    pub repaid_at: Option<Timestamp>,
    pub card_id: Option<CardId>,
    pub direct_debit_id: Option<MandateId>,
    #[sqlx(flatten)]
    pub checkout: Checkout,
    /// The ledger key of the fee for automatic collection.
    pub fee_key: Option<String>,
    pub metadata: Json<Map<String, Value>>,
    /// The charge that settled the recollection, else the latest. `None` for a manual one.
    pub charge_id: Option<ChargeId>,
    /// Why the charge was declined, if the plugin or the provider reports it.
    pub decline: Option<Decline>,
    /// The installments that the recollection repaid.
    pub applied: Option<Json<Vec<Allocation>>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The checkout session, or the page on which the customer confirms a charge.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "RecollectionCheckout")]
pub struct Checkout {
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    #[sqlx(rename = "checkout_url")]
    pub url: Option<String>,
}

impl Recollection {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }
}

fn from(select: &'static str, company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(select)
        .append(" FROM recollections t WHERE company_id = ")
        .bind(company_id)
}

/// Inserts a recollection with its first charge. Returns `false` if the company has already used
/// the reference.
pub async fn insert(tx: &mut Tx, new: &Recollection, charge: Option<&Charge>) -> Result<bool> {
    // Hosts of the previous version call the provider before they write, so no trigger stops them.
    // Without an account they cannot charge the card or mandate.
    tx.sql(
        "INSERT INTO recollections (company_id, id, run, loan_id, user_key, user_id, status,
             amount_minor, fees_minor, currency, with_provider, payment_service,
             payment_channel, account_id, credits_wallet, reference, service_ref, transaction_id,
             message, callback_url, repaid_at, card_id, direct_debit_id, success_url, cancel_url,
             fee_key, metadata, created_at, updated_at, charge_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11, $12, '', FALSE, $13, $14, '',
             $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)
         ON CONFLICT (company_id, reference) DO NOTHING",
    )
    .params(params![
        &new.company_id,
        &new.id,
        &new.run,
        &new.loan_id,
        &new.user_key,
        &new.user_id,
        new.status,
        new.amount,
        &new.currency,
        new.with_provider,
        &new.payment_service,
        &new.payment_channel,
        &new.reference,
        &new.service_ref,
        &new.message,
        &new.callback_url,
        new.repaid_at,
        &new.card_id,
        &new.direct_debit_id,
        &new.checkout.success_url,
        &new.checkout.cancel_url,
        &new.fee_key,
        &new.metadata,
        new.created_at,
        new.updated_at,
        charge.map(|charge| &charge.id)
    ])
    .affects_one()
    .await
}

/// Writes the mutable columns of a recollection, with the charge that determines them.
pub async fn update(
    tx: &mut Tx,
    recollection: &Recollection,
    charge: Option<&Charge>,
) -> Result<()> {
    let charge_id = charge.map(|charge| &charge.id).or(recollection.charge_id.as_ref());
    tx.defer(
        "UPDATE recollections SET status = $3, fees_minor = $4, service_ref = $5, message = $6,
             repaid_at = $7, checkout_url = $8, updated_at = $9, amount_minor = $10,
             charge_id = $11, applied = $12, decline = $13, payment_service = $14,
             revision = revision + 1
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &recollection.company_id, &recollection.id, recollection.status, recollection.fees,
        &recollection.service_ref, &recollection.message, recollection.repaid_at,
        &recollection.checkout.url, recollection.updated_at, recollection.amount, charge_id,
        &recollection.applied, recollection.decline, &recollection.payment_service
    ])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, recollection: &Recollection) -> Result<()> {
    tx.sql("DELETE FROM recollections WHERE company_id = $1 AND id = $2")
        .params(params![&recollection.company_id, &recollection.id])
        .execute()
        .await
}

pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &RecollectionId,
) -> Result<Option<Recollection>> {
    let sql = from(SELECT_WITH_USER_ID, company_id).append(" AND id = ").bind(id);
    tx.dynamic(&sql).optional().await
}

pub async fn find_by_reference(
    tx: &mut Tx,
    company_id: &CompanyId,
    reference: &str,
) -> Result<Option<Recollection>> {
    let sql = from(SELECT_WITH_USER_ID, company_id).append(" AND reference = ").bind(reference);
    tx.dynamic(&sql).optional().await
}

const SELECT_LISTED: &str = select_with_user_id!("t.*", " FROM (SELECT id AS found");
const LISTED_ROWS: &str =
    "page CROSS JOIN recollections t WHERE t.id = page.found AND t.company_id = ";

const SELECT_POSITION: &str =
    "SELECT id, created_at FROM recollections WHERE company_id = $1 AND id = $2";

/// Returns a page of a company's recollections, of one user or of all.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: Option<&UserKey>,
    filter: &RecollectionFilter,
    page: PageRequest,
) -> tollhouse_platform::error::Result<ListPage<Recollection>> {
    let filtered = |select| {
        from(select, company_id)
            .append_if(" AND user_key = ", user_key)
            .append_if(" AND loan_id = ", filter.loan.as_ref())
            .append_period([" AND created_at >= ", " AND created_at < "], filter.date_created_at)
    };
    let total = match (user_key, &filter.loan) {
        (None, None) => select_total(company_id, "recollections")
            .append_period([" AND day >= ", " AND day < "], filter.date_created_at),
        _ => filtered(SELECT_COUNT),
    };
    let order = ListOrder::new(filter.sort_created_at, filter.sort_updated_at);
    let after =
        tx.find_position(SELECT_POSITION, company_id, order, filter.after.as_deref()).await?;
    let total: ListTotal = tx.dynamic(&total).one().await?;
    let page = tx.list_counted(total, page, |_| {
        filtered(SELECT_LISTED).append_after(order, after.as_ref()).append_page_by_ids(
            order.order_by(),
            page,
            LISTED_ROWS,
            company_id,
        )
    });
    Ok(page.await?)
}

/// Identifies an installment of a loan: the ordinal among those with its due date, from 1, and that
/// date. Independent of the other due dates of a resent schedule.
pub type InstallmentKey = (i64, Timestamp);

const INSERT_COLLECTION: &str =
    "INSERT INTO collections (company_id, loan_id, number, due_at, recollection_id, created_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (company_id, loan_id, number, due_at) DO NOTHING";

/// Marks an installment as collected, with its recollection. The transaction fails if it already
/// was.
pub async fn record_collection(
    tx: &mut Tx,
    loan: &Loan,
    (number, due_at): InstallmentKey,
    recollection_id: Option<&RecollectionId>,
    now: Timestamp,
) -> Result<()> {
    tx.defer(INSERT_COLLECTION)
        .params(params![&loan.company_id, &loan.id, number, due_at, recollection_id, now])
        .require_one()
        .await
}

/// Marks an installment as collected, with its recollection, unless it already was.
pub async fn record_collection_if_new(
    tx: &mut Tx,
    loan: &Loan,
    (number, due_at): InstallmentKey,
    recollection_id: &RecollectionId,
    now: Timestamp,
) -> Result<()> {
    tx.defer(INSERT_COLLECTION)
        .params(params![&loan.company_id, &loan.id, number, due_at, recollection_id, now])
        .execute()
        .await
}

/// Returns the collected installments of a loan.
pub async fn collected_installments(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan_id: &LoanId,
) -> Result<Vec<InstallmentKey>> {
    tx.sql("SELECT number, due_at FROM collections WHERE company_id = $1 AND loan_id = $2")
        .params(params![company_id, loan_id])
        .all()
        .await
}
