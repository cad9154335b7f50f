//! The rows of the outbox: events, deliveries and attempts.

use serde::{Serializer, ser::Error as _};

use super::endpoints::EndpointSecret;
use crate::{state::storage::*, tenants::companies::Company};

text_types! {
    /// The id of an event.
    EventId;
}

pub async fn insert(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    kind: &str,
    subject_id: &str,
    body: &str,
    now: Timestamp,
) -> Result<()> {
    tx.defer(
        "INSERT INTO events (company_id, id, kind, subject_id, body, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .params(params![company_id, id, kind, subject_id, body, now])
    .execute()
    .await
}

/// An event and its deliveries.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventRow {
    pub id: EventId,
    /// The kind of event, for example `payment.success`.
    #[serde(rename = "event")]
    pub kind: String,
    /// The id of the record that changed.
    #[serde(rename = "subject")]
    pub subject_id: String,
    /// The body of the webhook.
    #[serde(serialize_with = "parsed")]
    #[schemars(with = "Value")]
    pub body: String,
    // Only the list of events reads them.
    #[sqlx(skip)]
    pub deliveries: Vec<Delivery>,
    pub created_at: Timestamp,
}

/// Serializes a JSON text as its value.
fn parsed<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let value: Value = serde_json::from_str(json).map_err(S::Error::custom)?;
    value.serialize(serializer)
}

pub async fn find_event(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<EventRow>> {
    tx.sql("SELECT * FROM events WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .optional()
        .await
}

/// An event as companies see it.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct ListedEvent {
    pub id: EventId,
    /// The type, for example `payment.success`.
    #[serde(rename = "event")]
    pub kind: String,
    /// The body of the webhook.
    #[serde(serialize_with = "parsed")]
    #[schemars(with = "Value")]
    pub body: String,
    pub created_at: Timestamp,
}

impl EventId {
    const PREFIX: &str = "evt_";

    /// Returns the id in cursors.
    pub fn cursor(&self) -> &str {
        self.strip_prefix(EventId::PREFIX).unwrap_or(self)
    }
}

/// Returns up to `limit` events of these types (if empty, of all types) after a cursor, in the
/// order of ids.
pub async fn list_after(
    tx: &mut Tx,
    company_id: &CompanyId,
    after: &str,
    types: &[String],
    limit: i64,
) -> Result<Vec<ListedEvent>> {
    let listed = "SELECT id, kind, body, created_at FROM events WHERE company_id = ";
    let after = format!("{}{after}", EventId::PREFIX);
    let mut sql = DynamicStatement::from(listed).bind(company_id).append(" AND id > ").bind(after);
    if !types.is_empty() {
        sql = sql.append(" AND kind").append_in(types);
    }
    tx.dynamic(&sql.append(" ORDER BY id LIMIT ").bind(limit)).all().await
}

/// Returns the first event of a record.
pub async fn find_listed(
    tx: &mut Tx,
    company_id: &CompanyId,
    subject_id: &str,
) -> Result<Option<ListedEvent>> {
    tx.sql(
        "SELECT id, kind, body, created_at FROM events WHERE company_id = $1 AND subject_id = $2
         ORDER BY created_at, id LIMIT 1",
    )
    .params(params![company_id, subject_id])
    .optional()
    .await
}

/// Returns a page of events, newest first.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    page: PageRequest,
) -> Result<ListPage<EventRow>> {
    let total = tx.dynamic(&select_total(company_id, "events")).one().await?;
    let found = "SELECT t.* FROM (SELECT id AS found FROM events WHERE company_id = ";
    let found = DynamicStatement::from(found).bind(company_id);
    let order = " ORDER BY created_at DESC, id DESC";
    let rows = "page CROSS JOIN events t WHERE t.id = page.found AND t.company_id = ";
    tx.list_counted(total, page, |_| found.append_page_by_ids(order, page, rows, company_id)).await
}

/// Returns the events of a record with their deliveries, oldest first.
pub async fn list_of_subject(
    tx: &mut Tx,
    company_id: &CompanyId,
    subject: &str,
) -> Result<Vec<EventRow>> {
    let mut events: Vec<EventRow> = tx
        .sql(
            "SELECT * FROM events WHERE company_id = $1 AND subject_id = $2
             ORDER BY created_at, id",
        )
        .params(params![company_id, subject])
        .all()
        .await?;
    for event in &mut events {
        event.deliveries = list_deliveries(tx, company_id, &event.id).await?;
    }
    Ok(events)
}

/// An event for one webhook endpoint.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Delivery {
    #[serde(skip)]
    pub company_id: CompanyId,
    pub id: String,
    pub event_id: EventId,
    pub url: String,
    /// `true` if only an event endpoint has the URL.
    #[serde(skip)]
    pub for_endpoint: bool,
    /// `pending`, `delivered`, `failed` or `disabled`.
    pub state: String,
    /// Attempts since it was last queued.
    #[serde(skip)]
    pub tries: i64,
    /// Number of times it was queued.
    #[serde(skip)]
    pub queued: i64,
    pub attempts: i64,
    pub delivered_at: Option<Timestamp>,
}

/// A URL that receives an event.
#[derive(FromRow)]
pub struct Destination {
    pub url: String,
    /// `true` if only an event endpoint has the URL.
    pub for_endpoint: bool,
    /// `true` after a 410 response, or five days of failures.
    pub disabled: bool,
}

/// Inserts a delivery. If the event has one for that URL, it keeps its state.
pub async fn insert_delivery(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    event_id: &EventId,
    destination: &Destination,
    now: Timestamp,
) -> Result<()> {
    let state = if destination.disabled { "disabled" } else { "pending" };
    tx.defer(
        "INSERT INTO event_deliveries (company_id, id, event_id, url, for_endpoint, state, tries,
             queued, attempts, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, 1, 0, $7)
         ON CONFLICT (company_id, event_id, url) DO UPDATE
             SET for_endpoint = event_deliveries.for_endpoint AND excluded.for_endpoint",
    )
    .params(params![
        company_id, id, event_id, &destination.url, destination.for_endpoint, state, now
    ])
    .execute()
    .await
}

/// A pending delivery and what an attempt needs.
#[derive(FromRow)]
pub struct PendingDelivery {
    #[sqlx(flatten)]
    pub company: Company,
    pub delivery_id: String,
    pub event_id: EventId,
    /// The body of the webhook.
    pub body: String,
    pub url: String,
    pub for_endpoint: bool,
    #[sqlx(flatten)]
    pub endpoint: EndpointSecret,
    pub tries: i64,
    pub queued: i64,
    pub attempts: i64,
    /// The endpoint has recent failures.
    pub is_failing: bool,
}

pub async fn find_pending(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<PendingDelivery>> {
    tx.sql(
        "SELECT c.*, d.id AS delivery_id, d.event_id, e.body, d.url, d.for_endpoint, d.tries,
             d.queued, d.attempts, p.id AS endpoint_id, p.secret AS endpoint_secret,
             p.previous_secret AS endpoint_previous_secret,
             p.previous_secret_until AS endpoint_previous_secret_until,
             EXISTS (SELECT 1 FROM event_destinations f
                     WHERE f.company_id = d.company_id AND f.url = d.url) AS is_failing
         FROM event_deliveries d
         JOIN events e ON e.company_id = d.company_id AND e.id = d.event_id
         JOIN companies c ON c.id = d.company_id
         LEFT JOIN event_endpoints p
             ON p.company_id = d.company_id AND p.url = d.url AND p.active
         WHERE d.company_id = $1 AND d.id = $2 AND d.state = 'pending'",
    )
    .params(params![company_id, id])
    .optional()
    .await
}

/// Records that a delivery arrived. The transaction fails with `NotOneRow` if it was changed since
/// it was loaded.
pub async fn mark_delivered(tx: &mut Tx, delivery: &PendingDelivery, now: Timestamp) -> Result<()> {
    tx.defer(
        "UPDATE event_deliveries SET state = 'delivered', tries = tries + 1,
             attempts = attempts + 1, delivered_at = $6
         WHERE company_id = $1 AND id = $2 AND state = 'pending' AND tries = $3 AND queued = $4
             AND attempts = $5",
    )
    .params(params![
        &delivery.company.id, &delivery.delivery_id, delivery.tries, delivery.queued,
        delivery.attempts, now
    ])
    .require_one()
    .await
}

pub async fn lock_delivery(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<Delivery>> {
    tx.sql("SELECT * FROM event_deliveries WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![company_id, id])
        .optional()
        .await
}

/// Requeues a delivery in any state, even during an attempt.
pub async fn requeue_delivery(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<()> {
    tx.sql(
        "UPDATE event_deliveries SET state = 'pending', tries = 0, queued = queued + 1
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![company_id, id])
    .execute()
    .await
}

pub async fn list_deliveries(
    tx: &mut Tx,
    company_id: &CompanyId,
    event_id: &EventId,
) -> Result<Vec<Delivery>> {
    tx.sql(
        "SELECT * FROM event_deliveries WHERE company_id = $1 AND event_id = $2
         ORDER BY created_at, id",
    )
    .params(params![company_id, event_id])
    .all()
    .await
}

/// Returns the deliveries of the events that [`list`] returns, in the order of [`list_deliveries`].
pub async fn list_deliveries_of_page(
    tx: &mut Tx,
    company_id: &CompanyId,
    page: PageRequest,
) -> Result<Vec<Delivery>> {
    tx.sql(
        "SELECT * FROM event_deliveries WHERE company_id = $1 AND event_id IN (
             SELECT id FROM events WHERE company_id = $1
             ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3)
         ORDER BY created_at, id",
    )
    .params(params![company_id, page.limit, page.offset()])
    .all()
    .await
}

pub async fn update_delivery(tx: &mut Tx, delivery: &Delivery) -> Result<()> {
    tx.defer(
        "UPDATE event_deliveries SET state = $3, tries = $4, attempts = $5, delivered_at = $6
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &delivery.company_id, &delivery.id, &delivery.state, delivery.tries, delivery.attempts,
        delivery.delivered_at
    ])
    .execute()
    .await
}

/// An attempt of a delivery.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Attempt {
    pub url: String,
    /// The number of the attempt, from 1.
    pub number: i64,
    /// The HTTP status; `null` without a complete response.
    pub status: Option<i64>,
    /// The error, if there was no complete response; otherwise empty.
    pub error: String,
    pub duration_ms: i64,
    pub created_at: Timestamp,
}

pub async fn insert_attempt(
    tx: &mut Tx,
    company_id: &CompanyId,
    delivery_id: &str,
    attempt: &Attempt,
) -> Result<()> {
    tx.defer(
        "INSERT INTO event_attempts (company_id, delivery_id, number, status, error,
             duration_ms, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .params(params![
        company_id, delivery_id, attempt.number, attempt.status, &attempt.error,
        attempt.duration_ms, attempt.created_at
    ])
    .execute()
    .await
}

/// Returns all delivery attempts of an event in order.
pub async fn list_attempts(
    tx: &mut Tx,
    company_id: &CompanyId,
    event_id: &EventId,
) -> Result<Vec<Attempt>> {
    tx.sql(
        "SELECT d.url, a.number, a.status, a.error, a.duration_ms, a.created_at
         FROM event_attempts a
         JOIN event_deliveries d ON d.company_id = a.company_id AND d.id = a.delivery_id
         WHERE d.company_id = $1 AND d.event_id = $2
         ORDER BY a.created_at, d.url, a.number",
    )
    .params(params![company_id, event_id])
    .all()
    .await
}

/// Locks an endpoint with recent failures until the transaction ends.
pub async fn lock_endpoint(tx: &mut Tx, company_id: &CompanyId, url: &str) -> Result<()> {
    tx.sql("SELECT url FROM event_destinations WHERE company_id = $1 AND url = $2 FOR UPDATE")
        .params(params![company_id, url])
        .execute()
        .await
}

/// Returns the destinations of an event: the company's registered URL, `callback_url`, and the
/// active event endpoints that receive its kind. A URL is listed once.
pub async fn destinations(
    tx: &mut Tx,
    company_id: &CompanyId,
    kind: &str,
    callback_url: Option<&str>,
) -> Result<Vec<Destination>> {
    let in_types = format!("%\"{kind}\"%");
    tx.sql(
        "SELECT endpoint.url, endpoint.for_endpoint,
             destination.disabled_at IS NOT NULL AS disabled
         FROM (
             SELECT 1 AS number, event_url AS url, FALSE AS for_endpoint
             FROM companies WHERE id = $1
             UNION ALL SELECT 2, $2, FALSE WHERE NOT EXISTS (
                 SELECT 1 FROM companies WHERE id = $1 AND event_url = $2)
             UNION ALL SELECT 3, p.url, TRUE FROM event_endpoints p
             WHERE p.company_id = $1 AND p.active AND p.url <> COALESCE($2, '')
                 AND (CAST(p.types AS TEXT) = '[]' OR CAST(p.types AS TEXT) LIKE $3)
                 AND NOT EXISTS (SELECT 1 FROM companies WHERE id = $1 AND event_url = p.url)
         ) endpoint
         LEFT JOIN event_destinations destination
             ON destination.company_id = $1 AND destination.url = endpoint.url
         WHERE endpoint.url IS NOT NULL ORDER BY endpoint.number, endpoint.url",
    )
    .params(params![company_id, callback_url, in_types])
    .all()
    .await
}

/// Disables a delivery whose event endpoint was deleted or changed after it was queued.
pub async fn disable_pending(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<()> {
    tx.sql(
        "UPDATE event_deliveries SET state = 'disabled'
         WHERE company_id = $1 AND id = $2 AND state = 'pending'",
    )
    .params(params![company_id, id])
    .execute()
    .await
}

/// Records a failure and returns when its run of failures began. A new run begins if the last
/// failure was before `run_after`.
pub async fn record_failure(
    tx: &mut Tx,
    company_id: &CompanyId,
    url: &str,
    now: Timestamp,
    run_after: Timestamp,
) -> Result<Timestamp> {
    tx.sql(
        "INSERT INTO event_destinations (company_id, url, failing_since, last_failure_at,
             reason)
         VALUES ($1, $2, $3, $3, '')
         ON CONFLICT (company_id, url) DO UPDATE
             SET last_failure_at = excluded.last_failure_at,
                 failing_since = CASE WHEN event_destinations.last_failure_at < $4
                 THEN excluded.failing_since ELSE event_destinations.failing_since END
         RETURNING failing_since",
    )
    .params(params![company_id, url, now, run_after])
    .value()
    .await
}

/// Disables an endpoint and its pending deliveries.
pub async fn disable(
    tx: &mut Tx,
    company_id: &CompanyId,
    url: &str,
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE event_destinations SET disabled_at = $3, reason = $4
         WHERE company_id = $1 AND url = $2",
    )
    .params(params![company_id, url, now, reason])
    .execute()
    .await?;
    tx.sql(
        "UPDATE event_deliveries SET state = 'disabled'
         WHERE company_id = $1 AND url = $2 AND state = 'pending'",
    )
    .params(params![company_id, url])
    .execute()
    .await
}

/// Clears the failures of an endpoint and enables it.
pub async fn enable(tx: &mut Tx, company_id: &CompanyId, url: &str) -> Result<()> {
    tx.sql("DELETE FROM event_destinations WHERE company_id = $1 AND url = $2")
        .params(params![company_id, url])
        .execute()
        .await
}
