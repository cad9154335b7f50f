//! The rows of payments and refunds.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Status;
use crate::{
    clock::Timestamp,
    listing::{Order, Page, Period},
    money::{Minor, Money},
    store::{FromRow, Json, Result, Tx, Type},
};

#[derive(Clone, Debug, FromRow)]
pub struct Payment {
    pub company_id: String,
    pub id: String,
    /// The internal id of its user.
    pub user_key: Option<String>,
    pub user_id: Option<String>,
    pub email: String,
    pub payment_service: String,
    pub account_id: String,
    /// Made with the service's own account, so that its money is the company's through the wallet.
    pub credits_wallet: bool,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    #[sqlx(rename = "fees_minor")]
    pub fees: Minor,
    pub currency: String,
    pub reference: String,
    pub status: Status,
    pub narration: String,
    pub payment_response: String,
    pub metadata: Json<Map<String, Value>>,
    pub service_ref: String,
    pub transaction_id: String,
    pub message: String,
    pub callback_url: Option<String>,
    pub success_url: String,
    pub cancel_url: Option<String>,
    pub checkout_url: Option<String>,
    /// Until then somebody is at the provider for the checkout URL.
    pub starting_until: Option<Timestamp>,
    pub channels: Json<Vec<String>>,
    pub paid_at: Option<Timestamp>,
    pub payment_channel: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Payment {
    pub fn money(&self) -> Money {
        Money { minor: self.amount, currency: self.currency.clone() }
    }
}

/// `None` when the reference is taken in its company.
pub async fn insert(tx: &mut Tx, payment: &Payment) -> Result<Option<Payment>> {
    tx.sql(
        "INSERT INTO payments (company_id, id, user_key, user_id, email, payment_service, account_id,
             credits_wallet, amount_minor, fees_minor, currency, reference, status, narration,
             payment_response, metadata, service_ref, transaction_id, message, callback_url,
             success_url, cancel_url, checkout_url, starting_until, channels, payment_channel,
             created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, $13, '', $14, $15, '', '', $16,
             $17, $18, NULL, $19, $20, '', $21, $21)
         ON CONFLICT (company_id, reference) DO NOTHING
         RETURNING *",
    )
    .bind(&payment.company_id)
    .bind(&payment.id)
    .bind(&payment.user_key)
    .bind(&payment.user_id)
    .bind(&payment.email)
    .bind(&payment.payment_service)
    .bind(&payment.account_id)
    .bind(payment.credits_wallet)
    .bind(payment.amount)
    .bind(&payment.currency)
    .bind(&payment.reference)
    .bind(payment.status)
    .bind(&payment.narration)
    .bind(&payment.metadata)
    .bind(&payment.service_ref)
    .bind(&payment.callback_url)
    .bind(&payment.success_url)
    .bind(&payment.cancel_url)
    .bind(payment.starting_until)
    .bind(&payment.channels)
    .bind(payment.created_at)
    .optional()
    .await
}

/// Writes what of a payment can change.
pub async fn update(tx: &mut Tx, payment: &Payment) -> Result<Payment> {
    tx.sql(
        "UPDATE payments SET fees_minor = $3, status = $4, payment_response = $5, service_ref = $6,
             transaction_id = $7, message = $8, checkout_url = $9, starting_until = $10, paid_at = $11,
             payment_channel = $12, updated_at = $13
         WHERE company_id = $1 AND id = $2 RETURNING *",
    )
    .bind(&payment.company_id)
    .bind(&payment.id)
    .bind(payment.fees)
    .bind(payment.status)
    .bind(&payment.payment_response)
    .bind(&payment.service_ref)
    .bind(&payment.transaction_id)
    .bind(&payment.message)
    .bind(&payment.checkout_url)
    .bind(payment.starting_until)
    .bind(payment.paid_at)
    .bind(&payment.payment_channel)
    .bind(payment.updated_at)
    .one()
    .await
}

pub async fn delete(tx: &mut Tx, payment: &Payment) -> Result<()> {
    tx.sql("DELETE FROM payments WHERE company_id = $1 AND id = $2")
        .bind(&payment.company_id)
        .bind(&payment.id)
        .run()
        .await?;
    Ok(())
}

pub async fn find(tx: &mut Tx, company_id: &str, id: &str) -> Result<Option<Payment>> {
    tx.sql("SELECT * FROM payments WHERE company_id = $1 AND id = $2")
        .bind(company_id)
        .bind(id)
        .optional()
        .await
}

pub async fn by_reference(
    tx: &mut Tx,
    company_id: &str,
    reference: &str,
) -> Result<Option<Payment>> {
    tx.sql("SELECT * FROM payments WHERE company_id = $1 AND reference = $2")
        .bind(company_id)
        .bind(reference)
        .optional()
        .await
}

/// The payment, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, company_id: &str, id: &str) -> Result<Option<Payment>> {
    tx.sql("SELECT * FROM payments WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .bind(company_id)
        .bind(id)
        .optional()
        .await
}

/// Which payments a list shows; `None` asks nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<String>,
    pub user_id: Option<String>,
    pub provider: Option<String>,
    pub payment_channel: Option<String>,
    pub created: Option<Period>,
    pub paid: Option<Period>,
}

#[derive(Clone, Copy, Debug)]
pub enum Sort {
    Created(Order),
    Updated(Order),
}

macro_rules! selected {
    ($what:literal, $from:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $what,
            $from,
            " AND (CAST($2 AS TEXT) IS NULL OR status = $2)
             AND (CAST($4 AS TEXT) IS NULL OR payment_service = $4)
             AND (CAST($5 AS TEXT) IS NULL OR payment_channel = $5)
             AND (CAST($6 AS BIGINT) IS NULL OR created_at >= $6 AND created_at < $7)
             AND (CAST($8 AS BIGINT) IS NULL OR paid_at >= $8 AND paid_at < $9) ",
            $rest
        )
    };
}

/// A user's payments are looked up first, by either index: a filter of the form `OR` would read all of the company's. SQLite takes
/// the two sides of a cross join in their written order.
macro_rules! filtered {
    ($filter:expr, $what:literal, $rest:literal) => {
        if $filter.user_id.is_some() {
            selected!(
                $what,
                " FROM (SELECT id AS payment_id FROM payments WHERE company_id = $1 AND user_id = $3
                        UNION
                        SELECT id FROM payments WHERE company_id = $1 AND user_key = $10) of_user
                  CROSS JOIN payments
                  WHERE payments.company_id = $1 AND payments.id = of_user.payment_id",
                $rest
            )
        } else {
            selected!(
                $what,
                " FROM payments WHERE company_id = $1
                  AND CAST($3 AS TEXT) IS NULL AND CAST($10 AS TEXT) IS NULL",
                $rest
            )
        }
    };
}

/// A page of a company's payments, and how many there are in all.
pub async fn list(
    tx: &mut Tx,
    company_id: &str,
    filter: &Filter,
    sort: Sort,
    page: Page,
) -> Result<(i64, Vec<Payment>)> {
    let user_key = match &filter.user_id {
        Some(user_id) => user_key(tx, company_id, user_id).await?,
        None => None,
    };
    let count = tx.sql(filtered!(filter, "COUNT(*)", ""));
    let (total,) = filter.bind(count, company_id, user_key.as_ref()).one().await?;
    let sql = match sort {
        Sort::Created(Order::Ascending) => {
            filtered!(filter, "payments.*", "ORDER BY created_at, id LIMIT $11 OFFSET $12")
        }
        Sort::Created(Order::Descending) => {
            filtered!(
                filter,
                "payments.*",
                "ORDER BY created_at DESC, id DESC LIMIT $11 OFFSET $12"
            )
        }
        Sort::Updated(Order::Ascending) => {
            filtered!(filter, "payments.*", "ORDER BY updated_at, id LIMIT $11 OFFSET $12")
        }
        Sort::Updated(Order::Descending) => {
            filtered!(
                filter,
                "payments.*",
                "ORDER BY updated_at DESC, id DESC LIMIT $11 OFFSET $12"
            )
        }
    };
    let rows = filter.bind(tx.sql(sql), company_id, user_key.as_ref());
    Ok((total, rows.bind(page.limit).bind(page.offset()).all().await?))
}

/// The internal id of the user who bears a `user_id` now.
async fn user_key(tx: &mut Tx, company_id: &str, user_id: &str) -> Result<Option<String>> {
    let found: Option<(String,)> = tx
        .sql("SELECT id FROM users WHERE company_id = $1 AND user_id = $2")
        .bind(company_id)
        .bind(user_id)
        .optional()
        .await?;
    Ok(found.map(|(id,)| id))
}

impl Filter {
    fn bind<'t>(
        &self,
        statement: crate::store::Statement<'t>,
        company_id: &str,
        user_key: Option<&String>,
    ) -> crate::store::Statement<'t> {
        statement
            .bind(company_id.to_owned())
            .bind(self.status.clone())
            .bind(self.user_id.clone())
            .bind(self.provider.clone())
            .bind(self.payment_channel.clone())
            .bind(self.created.map(|period| period.from))
            .bind(self.created.map(|period| period.before))
            .bind(self.paid.map(|period| period.from))
            .bind(self.paid.map(|period| period.before))
            .bind(user_key.cloned())
    }
}

/// The refund of a payment: there is at most one, of the whole.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Refund {
    #[serde(skip)]
    pub company_id: String,
    #[serde(rename = "payment")]
    pub payment_id: String,
    /// What the provider knows this try by.
    pub id: String,
    pub status: RefundStatus,
    #[sqlx(rename = "amount_minor")]
    pub amount: Minor,
    /// The provider's id of it; empty until it has taken it on.
    pub provider_id: String,
    /// What the provider says of it.
    pub message: String,
    /// Until then somebody is at the provider for it.
    #[serde(skip)]
    pub asking_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    /// Asked for; whether the provider knows is not certain.
    Requested,
    /// The provider works on it.
    Pending,
    Done,
    Failed,
}

pub async fn refund(tx: &mut Tx, company_id: &str, payment_id: &str) -> Result<Option<Refund>> {
    tx.sql("SELECT * FROM refunds WHERE company_id = $1 AND payment_id = $2")
        .bind(company_id)
        .bind(payment_id)
        .optional()
        .await
}

/// Writes a refund, in place of one that failed.
pub async fn put_refund(tx: &mut Tx, refund: &Refund) -> Result<()> {
    tx.sql(
        "INSERT INTO refunds (company_id, payment_id, id, status, amount_minor, provider_id, message,
             asking_until, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (company_id, payment_id) DO UPDATE SET id = excluded.id, status = excluded.status,
             provider_id = excluded.provider_id, message = excluded.message,
             asking_until = excluded.asking_until, created_at = excluded.created_at,
             updated_at = excluded.updated_at",
    )
    .bind(&refund.company_id)
    .bind(&refund.payment_id)
    .bind(&refund.id)
    .bind(refund.status)
    .bind(refund.amount)
    .bind(&refund.provider_id)
    .bind(&refund.message)
    .bind(refund.asking_until)
    .bind(refund.created_at)
    .bind(refund.updated_at)
    .run()
    .await?;
    Ok(())
}
