//! The rows of payments and refunds.

use super::{Charge, api::PaymentFilter};
use crate::{
    customers::{SELECT_WITH_USER_ID, UserKey, select_with_user_id},
    state::storage::*,
    tenants::providers::AccountId,
};

text_types! {
    /// The id of a payment.
    PaymentId;
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PaymentStatus")]
pub enum Status {
    #[default]
    Pending,
    Success,
    Failed,
    Refunded,
}

text_columns!(Status);

#[derive(Clone, Debug, Default, FromRow)]
pub struct Payment {
    pub company_id: CompanyId,
    pub id: PaymentId,
    /// The internal id of the user.
    pub user_key: Option<UserKey>,
    /// The user's current `user_id`.
    #[sqlx(rename = "present_user_id")]
    pub user_id: Option<String>,
    pub email: String,
    /// The payer's phone number in E.164, for providers that send a prompt to the phone.
    pub phone: Option<String>,
    pub payment_service: String,
    pub account_id: AccountId,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    /// The amount of the accepted refunds of a payment that is not fully refunded.
    #[sqlx(rename = "refunded_minor")]
    pub refunded: Minor,
    pub currency: Currency,
    pub reference: String,
    pub status: Status,
    pub narration: String,
    pub payment_response: String,
    pub metadata: Json<Map<String, Value>>,
    pub service_ref: String,
    pub message: String,
    pub callback_url: Option<String>,
    #[sqlx(flatten)]
    pub checkout: Checkout,
    pub channels: Json<Vec<String>>,
    pub paid_at: Option<Timestamp>,
    pub payment_channel: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The checkout session of the payment.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "CheckoutOfPayment")]
pub struct Checkout {
    pub success_url: String,
    pub cancel_url: Option<String>,
    /// The checkout page; `null` until the provider has returned it.
    #[sqlx(rename = "checkout_url")]
    pub url: Option<String>,
    /// The instruction to the payer if the provider has no checkout page; absent otherwise. The
    /// page at `url` shows it.
    #[sqlx(rename = "checkout_prompt")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl Payment {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }
}

fn from(select: &'static str, company_id: &CompanyId) -> DynamicStatement {
    DynamicStatement::from(select).append(" FROM payments t WHERE company_id = ").bind(company_id)
}

pub fn by_id(company_id: &CompanyId, id: &PaymentId) -> DynamicStatement {
    from(SELECT_WITH_USER_ID, company_id).append(" AND id = ").bind(id)
}

pub fn by_reference(company_id: &CompanyId, reference: &str) -> DynamicStatement {
    from(SELECT_WITH_USER_ID, company_id).append(" AND reference = ").bind(reference)
}

/// Inserts a payment with its first charge. Fails as a duplicate if the company has already used
/// the reference.
pub async fn insert(tx: &mut Tx, payment: &Payment, charge: &Charge) -> Result<()> {
    tx.defer(
        "INSERT INTO payments (company_id, id, user_key, user_id, email, payment_service,
             account_id, credits_wallet, amount_minor, fees_minor, currency, reference, status,
             narration, payment_response, metadata, service_ref, transaction_id, message,
             callback_url, success_url, cancel_url, channels, payment_channel, created_at,
             updated_at, charge_id, phone)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, $13, '', $14, $15, '',
             '', $16, $17, $18, $19, '', $20, $20, $21, $22)",
    )
    .params(params![
        &payment.company_id, &payment.id, &payment.user_key, &payment.user_id, &payment.email,
        &payment.payment_service, &charge.account_id, charge.in_books, payment.amount,
        &payment.currency, &payment.reference, payment.status, &payment.narration,
        &payment.metadata, &payment.service_ref, &payment.callback_url,
        &payment.checkout.success_url, &payment.checkout.cancel_url, &payment.channels,
        payment.created_at, &charge.id, &payment.phone
    ])
    .execute()
    .await
}

/// Writes the mutable columns of a payment, with the charge that determines them.
pub async fn update(tx: &mut Tx, payment: &Payment, charge: &Charge) -> Result<()> {
    tx.defer(
        "UPDATE payments SET fees_minor = $3, status = $4, payment_response = $5,
             service_ref = $6, message = $7, checkout_url = $8, paid_at = $9,
             payment_channel = $10, updated_at = $11, charge_id = $12, checkout_prompt = $13,
             refunded_minor = $14, payment_service = $15, account_id = $16,
             credits_wallet = $17, channels = $18, revision = revision + 1
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &payment.company_id, &payment.id, payment.fees, payment.status, &payment.payment_response,
        &payment.service_ref, &payment.message, &payment.checkout.url, payment.paid_at,
        &payment.payment_channel, payment.updated_at, &charge.id, &payment.checkout.prompt,
        payment.refunded, &charge.provider, &charge.account_id, charge.in_books, &payment.channels
    ])
    .require_one()
    .await
}

pub async fn delete(tx: &mut Tx, payment: &Payment) -> Result<()> {
    tx.sql("DELETE FROM payments WHERE company_id = $1 AND id = $2")
        .params(params![&payment.company_id, &payment.id])
        .execute()
        .await
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &PaymentId) -> Result<Option<Payment>> {
    tx.dynamic(&by_id(company_id, id)).optional().await
}

pub async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &PaymentId) -> Result<Option<Payment>> {
    tx.dynamic(&by_id(company_id, id).append(" FOR UPDATE")).optional().await
}

pub async fn find_by_reference(
    tx: &mut Tx,
    company_id: &CompanyId,
    reference: &str,
) -> Result<Option<Payment>> {
    tx.dynamic(&by_reference(company_id, reference)).optional().await
}

/// The listed columns of the payments of a page. An inner query finds their ids first.
const SELECT_LISTED: &str = select_with_user_id!(
    "t.company_id, t.id, t.user_key, t.email, t.phone, t.payment_service, t.account_id,
     t.amount_minor, t.fees_minor, t.refunded_minor, t.currency, t.reference, t.status,
     t.narration, '' AS payment_response,
     t.metadata, t.service_ref, t.message, t.callback_url, t.success_url, t.cancel_url,
     t.checkout_url, t.checkout_prompt, t.channels, t.paid_at, t.payment_channel, t.created_at,
     t.updated_at",
    " FROM (SELECT id AS found"
);
const LISTED_ROWS: &str = "page CROSS JOIN payments t WHERE t.id = page.found AND t.company_id = ";

const SELECT_POSITION: &str =
    "SELECT id, created_at FROM payments WHERE company_id = $1 AND id = $2";

/// Returns a page of a company's payments, of one user or of all. Lists omit `payment_response`.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: Option<&UserKey>,
    filter: &PaymentFilter,
    page: PageRequest,
) -> tollhouse_platform::error::Result<ListPage<Payment>> {
    let by_value = |sql: DynamicStatement| {
        sql.append_if(" AND status = ", filter.status.as_ref())
            .append_if(" AND payment_service = ", filter.provider.as_ref())
            .append_if(" AND payment_channel = ", filter.payment_channel.as_ref())
            // Companies do not see the channel of a failed payment.
            .append(match filter.payment_channel {
                Some(_) => " AND status <> 'failed' ",
                None => "",
            })
    };
    let filtered = |select| {
        by_value(from(select, company_id))
            .append_if(" AND user_key = ", user_key)
            .append_period([" AND created_at >= ", " AND created_at < "], filter.created_at)
            .append_period([" AND paid_at >= ", " AND paid_at < "], filter.paid_at)
    };
    let total = match user_key {
        Some(_) => filtered(SELECT_COUNT),
        None => by_value(select_total(company_id, "payments"))
            .append_period([" AND day >= ", " AND day < "], filter.created_at)
            .append_period([" AND paid_day >= ", " AND paid_day < "], filter.paid_at),
    };
    let order = ListOrder::new(filter.sort_created_at, filter.sort_updated_at);
    let after =
        tx.find_position(SELECT_POSITION, company_id, order, filter.after.as_deref()).await?;
    let total: ListTotal = tx.dynamic(&total).one().await?;
    let page = tx.list_counted(total, page, |created| {
        filtered(SELECT_LISTED)
            .append_period([" AND created_at >= ", " AND created_at < "], created)
            .append_after(order, after.as_ref())
            .append_page_by_ids(order.order_by(), page, LISTED_ROWS, company_id)
    });
    Ok(page.await?)
}
