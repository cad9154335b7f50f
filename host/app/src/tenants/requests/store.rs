//! Storage of the API log.

use super::api::RequestList;
use crate::state::storage::*;
use tollhouse_platform::random::id_lower_bound;

/// A request of a company to the API, without its content.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct ApiRequest {
    pub id: String,
    /// When the request began.
    pub created_at: Timestamp,
    /// The `X-Request-Id` of the response.
    pub request_id: String,
    /// Id of the API key.
    #[serde(rename = "key")]
    pub key_id: String,
    /// First characters of the key.
    pub key_prefix: Option<String>,
    /// Address of the connection: that of the client, or of the last proxy.
    pub address: Option<String>,
    pub method: String,
    /// The route, for example `/api/v1/payment/fetch/{id}`: never the path itself.
    pub route: String,
    /// Status of the response; 499 if the client closed the connection before it.
    pub status: i64,
    /// Time until the response, in microseconds.
    pub duration_us: i64,
    /// Kind of the error, for example `invalid` or `not_found`, not its message.
    pub error: Option<String>,
    /// The field of the request that the error names.
    pub field: Option<String>,
}

pub struct NewRequest {
    pub company_id: CompanyId,
    /// Expiry, by the settings of the recording host.
    pub keep_until: Timestamp,
    pub request: ApiRequest,
}

pub async fn insert(tx: &mut Tx, rows: &[NewRequest]) -> Result<()> {
    let insert = "INSERT INTO api_requests (company_id, id, created_at, keep_until, request_id,
             key_id, method, route, status, duration_us, address, error, field) VALUES ";
    let values = |NewRequest { company_id, keep_until, request }: &NewRequest| {
        let optional = [&request.address, &request.error, &request.field];
        let [address, error, field] = optional.map(|text| SqlValue::from(text.clone()));
        vec![
            company_id.into(),
            (&request.id).into(),
            request.created_at.into(),
            (*keep_until).into(),
            (&request.request_id).into(),
            (&request.key_id).into(),
            (&request.method).into(),
            (&request.route).into(),
            request.status.into(),
            request.duration_us.into(),
            address,
            error,
            field,
        ]
    };
    tx.insert_rows(insert, rows, values).await
}

/// Returns requests of a company, newest first.
pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &RequestList,
) -> Result<Vec<ApiRequest>> {
    let after = Some(&filter.after).filter(|after| !after.is_empty());
    // Ids begin with the second, so that the primary key has the order and the period.
    let bound = |at: Timestamp| id_lower_bound(at.max(Timestamp(0)));
    let sql = DynamicStatement::from(
        "SELECT r.id, r.created_at, r.request_id, r.key_id, k.prefix AS key_prefix, r.address,
             r.method, r.route, r.status, r.duration_us, r.error, r.field
         FROM api_requests r
             LEFT JOIN api_keys k ON k.company_id = r.company_id AND k.id = r.key_id
         WHERE r.company_id = ",
    );
    let sql = sql
        .bind(company_id)
        .append_if(" AND r.id < ", after)
        .append_if(" AND r.id >= ", filter.created_at.map(|period| bound(period.from)))
        .append_if(" AND r.id < ", filter.created_at.map(|period| bound(period.before)))
        .append(match filter.outcome.as_deref() {
            Some("success") => " AND r.status < 400",
            Some("failed") => " AND r.status >= 400",
            Some("client_error") => " AND r.status >= 400 AND r.status < 500",
            Some("server_error") => " AND r.status >= 400 AND r.status >= 500",
            _ => "",
        })
        .append_if(" AND r.method = ", filter.method.as_ref())
        .append_if(" AND r.key_id = ", filter.key.as_ref())
        .append_if(" AND r.request_id = ", filter.request_id.as_ref())
        .append(" ORDER BY r.id DESC LIMIT ")
        .bind(filter.limit);
    tx.dynamic(&sql).all().await
}

/// Deletes up to `limit` expired requests of all companies, and returns their number.
pub async fn sweep(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    tx.sql(
        "DELETE FROM api_requests WHERE (company_id, id) IN (
             SELECT company_id, id FROM api_requests WHERE keep_until < $1
             ORDER BY keep_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
    )
    .params(params![now, limit])
    .run()
    .await
}
