//! Storage of event endpoints.

use crate::{
    state::storage::*,
    tenants::companies::{RotatedSecret, SigningSecret},
};

/// A URL that receives events of a company.
// What operators see: no secret, not even a sealed one, is serialized.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "EventEndpoint")]
pub struct Endpoint {
    #[serde(skip)]
    pub company_id: CompanyId,
    pub id: String,
    pub url: String,
    /// Types of events that it receives; empty: all.
    #[schemars(with = "Vec<String>")]
    pub types: Json<Vec<String>>,
    pub description: Option<String>,
    /// `false`: it receives no events.
    pub active: bool,
    /// Sealed.
    #[serde(skip)]
    pub secret: String,
    /// Sealed.
    #[serde(skip)]
    pub previous_secret: Option<String>,
    #[serde(skip)]
    pub previous_secret_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub const SEALED: [SealedColumn; 2] = [SECRET, PREVIOUS_SECRET];
const SECRET: SealedColumn =
    sealed_column!(event_endpoints(company_id, id).secret, |company, id| {
        format!("event_endpoints/{company}/{id}/secret/current")
    });
const PREVIOUS_SECRET: SealedColumn =
    sealed_column!(event_endpoints(company_id, id).previous_secret, |company, id| {
        format!("event_endpoints/{company}/{id}/secret/previous")
    });

impl Endpoint {
    pub fn signing_secret(&self) -> SigningSecret<'_> {
        SigningSecret {
            columns: [&SECRET, &PREVIOUS_SECRET],
            row: [&self.company_id, &self.id],
            current: &self.secret,
            previous: self.previous_secret.as_deref(),
            previous_until: self.previous_secret_until,
        }
    }

    pub fn set_secret(&mut self, rotated: RotatedSecret) {
        self.secret = rotated.current;
        self.previous_secret = rotated.previous;
        self.previous_secret_until = Some(rotated.previous_until);
    }
}

pub fn seal_secret(sealer: &Sealer, company_id: &CompanyId, id: &str, secret: &str) -> String {
    sealer.seal(&(SECRET.context)(company_id, id), secret)
}

/// The secret of the active endpoint with a delivery's URL: columns of an outer join.
#[derive(FromRow)]
pub struct EndpointSecret {
    endpoint_id: Option<String>,
    endpoint_secret: Option<String>,
    endpoint_previous_secret: Option<String>,
    endpoint_previous_secret_until: Option<Timestamp>,
}

impl EndpointSecret {
    /// Returns the secret; `None` if no active endpoint has the URL.
    pub fn signing_secret<'r>(&'r self, company_id: &'r CompanyId) -> Option<SigningSecret<'r>> {
        Some(SigningSecret {
            columns: [&SECRET, &PREVIOUS_SECRET],
            row: [company_id, self.endpoint_id.as_deref()?],
            current: self.endpoint_secret.as_deref()?,
            previous: self.endpoint_previous_secret.as_deref(),
            previous_until: self.endpoint_previous_secret_until,
        })
    }
}

pub async fn insert(tx: &mut Tx, endpoint: &Endpoint) -> Result<()> {
    tx.sql(
        "INSERT INTO event_endpoints (company_id, id, url, types, description, active, secret,
             created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .params(params![
        &endpoint.company_id, &endpoint.id, &endpoint.url, &endpoint.types, &endpoint.description,
        endpoint.active, &endpoint.secret, endpoint.created_at, endpoint.updated_at
    ])
    .execute()
    .await
}

/// Returns the endpoints of a company, oldest first.
pub async fn list(tx: &mut Tx, company_id: &CompanyId) -> Result<Vec<Endpoint>> {
    tx.sql("SELECT * FROM event_endpoints WHERE company_id = $1 ORDER BY created_at, id")
        .bind(company_id)
        .all()
        .await
}

/// Like [`list`]; locks the rows, so that a rotation of the master key does not reseal the secrets
/// meanwhile.
pub async fn lock_all(tx: &mut Tx, company_id: &CompanyId) -> Result<Vec<Endpoint>> {
    tx.sql("SELECT * FROM event_endpoints WHERE company_id = $1 ORDER BY created_at, id FOR UPDATE")
        .bind(company_id)
        .all()
        .await
}

pub async fn update(tx: &mut Tx, endpoint: &Endpoint) -> Result<()> {
    tx.sql(
        "UPDATE event_endpoints SET url = $3, types = $4, description = $5, active = $6,
             secret = $7, previous_secret = $8, previous_secret_until = $9, updated_at = $10
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        &endpoint.company_id, &endpoint.id, &endpoint.url, &endpoint.types, &endpoint.description,
        endpoint.active, &endpoint.secret, &endpoint.previous_secret,
        endpoint.previous_secret_until, endpoint.updated_at
    ])
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<()> {
    tx.sql("DELETE FROM event_endpoints WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .execute()
        .await
}

/// Disables pending deliveries to a URL that no longer belongs to an active endpoint.
pub async fn disable_deliveries(tx: &mut Tx, company_id: &CompanyId, url: &str) -> Result<()> {
    tx.sql(
        "UPDATE event_deliveries SET state = 'disabled'
         WHERE company_id = $1 AND url = $2 AND state = 'pending' AND for_endpoint",
    )
    .params(params![company_id, url])
    .execute()
    .await
}
