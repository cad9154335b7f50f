//! Storage of messages.

use serde::Serializer;

use super::{Channel, api::MessageList, seal_context};
use crate::state::storage::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageState")]
pub enum State {
    Pending,
    /// Accepted by a mail server or a gateway.
    Delivered,
    /// Failed and refunded, or refused before a fee was charged.
    Failed,
}

text_columns!(State);

/// A message and its delivery.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Message {
    #[serde(skip)]
    pub company_id: CompanyId,
    pub id: String,
    /// `email` or `sms`.
    #[schemars(with = "String")]
    pub channel: Channel,
    /// Purpose, for example `otp`.
    pub purpose: String,
    #[serde(skip)]
    pub topic: String,
    /// Recipient, mostly masked.
    #[serde(rename = "to")]
    pub recipient: String,
    /// Keyed digest of the recipient, by which messages are found. `None` in older rows.
    #[serde(skip)]
    pub recipient_digest: Option<String>,
    // Sealed; `None` once there is nothing left to deliver.
    #[serde(skip)]
    pub content: Option<String>,
    /// `delivered`: accepted by the mail server or a gateway. `failed`: refunded, or never charged.
    pub state: State,
    pub attempts: i64,
    /// Reason of the last failed attempt, cancellation or refusal; empty if there is none.
    pub reason: String,
    /// System that accepted the message: `smtp`, or the name of a gateway.
    pub via: Option<String>,
    /// Message id at the gateway.
    pub via_id: Option<String>,
    // Stored as an empty text if there is none.
    /// Key of the fee: its ledger transactions have this key with the prefix `charge:` or
    /// `refund:`. `null` if the message was never charged.
    #[serde(serialize_with = "serialize_charge_key")]
    #[schemars(with = "Option<String>")]
    pub charge_key: String,
    /// Time after which the message is no longer sent.
    pub give_up_at: Timestamp,
    pub created_at: Timestamp,
    /// Time of delivery or final failure.
    pub ended_at: Option<Timestamp>,
}

fn serialize_charge_key<S: Serializer>(key: &str, to: S) -> Result<S::Ok, S::Error> {
    Some(key).filter(|key| !key.is_empty()).serialize(to)
}

pub const SEALED: [SealedColumn; 1] =
    [sealed_column!(messages(company_id, id).content, seal_context)];

pub async fn insert(tx: &mut Tx, message: &Message) -> Result<()> {
    tx.defer(
        "INSERT INTO messages (company_id, id, channel, purpose, topic, recipient, content,
             state, attempts, reason, charge_key, give_up_at, created_at, ended_at,
             recipient_digest)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .params(params![
        &message.company_id, &message.id, message.channel, &message.purpose, &message.topic,
        &message.recipient, &message.content, message.state, message.attempts, &message.reason,
        &message.charge_key, message.give_up_at, message.created_at, message.ended_at,
        &message.recipient_digest
    ])
    .execute()
    .await
}

/// Marks a queued message as in flight until `until`; `None` if it is no longer queued.
pub async fn begin_attempt(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    until: Timestamp,
) -> Result<Option<Message>> {
    tx.sql(
        "UPDATE messages SET under_way_until = $3
         WHERE company_id = $1 AND id = $2 AND state = 'pending' RETURNING *",
    )
    .params(params![company_id, id, until])
    .optional()
    .await
}

/// Returns the expiry of a queued message and locks its row until the transaction ends.
pub async fn lock_expiry(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<Timestamp>> {
    tx.sql(
        "SELECT give_up_at FROM messages
         WHERE company_id = $1 AND id = $2 AND state = 'pending' FOR UPDATE",
    )
    .params(params![company_id, id])
    .optional_value()
    .await
}

/// Records an attempt for a queued message, whose row is locked.
pub async fn update(tx: &mut Tx, message: &Message) -> Result<()> {
    tx.sql(
        "UPDATE messages SET content = $3, state = $4, attempts = $5, reason = $6, via = $7,
             via_id = $8, ended_at = $9, under_way_until = NULL
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &message.company_id, &message.id, &message.content, message.state, message.attempts,
        &message.reason, &message.via, &message.via_id, message.ended_at
    ])
    .execute()
    .await
}

/// Deletes up to `limit` messages of all companies that ended before a time; returns their number.
pub async fn sweep(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM messages WHERE (company_id, id) IN (
             SELECT company_id, id FROM messages WHERE ended_at < $1
             ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![before, limit])
    .run()
    .await
}

/// Cancels the queued messages of a topic and returns their fee keys; in-flight ones expire.
pub async fn cancel_superseded(
    tx: &mut Tx,
    company_id: &CompanyId,
    topic: &str,
    now: Timestamp,
) -> Result<Vec<String>> {
    let cancelled: Vec<Option<String>> = tx
        .sql(
            "UPDATE messages SET
                 give_up_at = CASE WHEN under_way_until > $3 THEN $3 ELSE give_up_at END,
                 content = CASE WHEN under_way_until > $3 THEN content END,
                 state = CASE WHEN under_way_until > $3 THEN state ELSE 'failed' END,
                 reason = CASE WHEN under_way_until > $3 THEN reason ELSE 'superseded' END,
                 ended_at = CASE WHEN under_way_until > $3 THEN ended_at ELSE $3 END
             WHERE company_id = $1 AND topic = $2 AND state = 'pending'
             RETURNING CASE WHEN state = 'failed' THEN charge_key END",
        )
        .params(params![company_id, topic, now])
        .values()
        .await?;
    Ok(cancelled.into_iter().flatten().collect())
}

/// Returns a page of a company's messages, newest first. `recipient` has the digests under each
/// key of a recipient.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &MessageList,
    recipient: Option<&[String]>,
    page: PageRequest,
) -> Result<ListPage<Message>> {
    let filtered = |select| {
        let sql = DynamicStatement::from(select)
            .append(" FROM messages WHERE company_id = ")
            .bind(company_id)
            .append_if(" AND state = ", filter.state.as_ref())
            .append_if(" AND channel = ", filter.channel.as_ref());
        match recipient {
            Some(digests) => sql.append(" AND recipient_digest").append_in(digests),
            None => sql,
        }
    };
    tx.list(filtered, "SELECT *", " ORDER BY created_at DESC, id DESC", page).await
}
