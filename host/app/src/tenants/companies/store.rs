//! Storage of companies and their API keys.

use super::{KnownKey, SigningSecret, routing::RoutingPolicy, scopes::KeyLimits};
use crate::state::storage::*;

/// A company.
// What operators see: no event secret, not even a sealed one, is serialized.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
pub struct Company {
    pub id: CompanyId,
    pub name: String,
    /// `live` or `test`.
    pub server: String,
    pub logo: Option<String>,
    /// URL that receives events.
    pub event_url: Option<String>,
    /// Sealed.
    #[serde(skip)]
    pub event_secret: String,
    /// Sealed.
    #[serde(skip)]
    pub previous_event_secret: Option<String>,
    #[serde(skip)]
    pub previous_event_secret_until: Option<Timestamp>,
    /// Provider that is used if a request names none; `null`: the default of the service.
    pub payment_service: Option<String>,
    /// Routing policy for requests that name no provider; `null`: they use `payment_service`.
    #[schemars(with = "Option<RoutingPolicy>")]
    pub routing: Option<Json<RoutingPolicy>>,
    /// Balance below which operators receive an event. 0: disabled; `null`: the service's default.
    #[sqlx(rename = "low_balance_minor")]
    pub low_balance: Option<Minor>,
    /// ISO 3166 codes of the countries in which the company operates. Text messages go only to
    /// numbers of these countries. `null`: the countries of the service.
    #[schemars(with = "Option<Vec<String>>")]
    pub countries: Option<Json<Vec<String>>>,
    /// SMS gateway that is tried first; `null`: the default of the service.
    pub sms_gateway: Option<String>,
    /// Sender of text messages; `null`: the default of the gateway account.
    pub sms_sender: Option<String>,
    /// Allowed prefixes of phone numbers, in place of the rule by country; `null`: no prefixes.
    #[schemars(with = "Option<Vec<String>>")]
    pub sms_prefixes: Option<Json<Vec<String>>>,
    /// Fixed one-time password of a test company.
    pub fixed_otp: Option<String>,
    /// `false` if the company is suspended.
    pub active: bool,
    #[sqlx(flatten)]
    pub subscription: Subscription,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Subscription of a company.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
pub struct Subscription {
    #[sqlx(rename = "subscription_active")]
    pub active: bool,
    /// `null`: no end.
    #[sqlx(rename = "subscription_expires_at")]
    pub expires_at: Option<Timestamp>,
    /// Features of the plan; `null`: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub features: Option<Json<Vec<String>>>,
}

/// An API key without its secret.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Key {
    pub id: String,
    /// First characters of the key.
    pub prefix: String,
    pub label: Option<String>,
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub limits: KeyLimits,
    /// Last use, recorded at most once a minute.
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Sealed columns. Different contexts: neither secret can be opened in the other's column.
pub const SEALED: [SealedColumn; 2] = [EVENT_SECRET, PREVIOUS_EVENT_SECRET];
const EVENT_SECRET: SealedColumn = sealed_column!(
    companies(id, id).event_secret,
    |_, id| format!("companies/{id}/event_secret/current"),
    formerly common_context
);
const PREVIOUS_EVENT_SECRET: SealedColumn = sealed_column!(
    companies(id, id).previous_event_secret,
    |_, id| format!("companies/{id}/event_secret/previous"),
    formerly common_context
);

/// Seal context of both secrets in rows written by versions that did not distinguish them.
fn common_context(_: &str, id: &str) -> String {
    format!("companies/{id}/event_secret")
}

impl Company {
    pub fn signing_secret(&self) -> SigningSecret<'_> {
        SigningSecret {
            columns: [&EVENT_SECRET, &PREVIOUS_EVENT_SECRET],
            row: [&self.id; 2],
            current: &self.event_secret,
            previous: self.previous_event_secret.as_deref(),
            previous_until: self.previous_event_secret_until,
        }
    }
}

pub fn seal_event_secret(sealer: &Sealer, company_id: &CompanyId, secret: &str) -> String {
    sealer.seal(&(EVENT_SECRET.context)(company_id, company_id), secret)
}

/// A company and the key that authenticated it.
#[derive(Clone, Debug, FromRow)]
pub struct KeyHolder {
    #[sqlx(flatten)]
    pub company: Company,
    pub key_id: String,
    pub digest: String,
    #[sqlx(flatten)]
    pub limits: KeyLimits,
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyHolder {
    pub fn known(&self) -> KnownKey {
        let (company_id, key_id) = (self.company.id.clone(), self.key_id.clone());
        KnownKey { company_id, key_id, limits: self.limits.clone() }
    }
}

pub async fn insert(tx: &mut Tx, company: &Company) -> Result<()> {
    tx.sql(
        "INSERT INTO companies (id, name, server, logo, event_url, payment_service, active,
             event_secret, subscription_active, countries, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
    )
    .params(params![
        &company.id, &company.name, &company.server, &company.logo, &company.event_url,
        &company.payment_service, company.active, &company.event_secret,
        company.subscription.active, &company.countries, company.created_at
    ])
    .execute()
    .await
}

pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<Company>> {
    tx.sql("SELECT * FROM companies WHERE id = $1").bind(id).optional().await
}

/// Returns the company and locks its row until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &str) -> Result<Option<Company>> {
    tx.sql("SELECT * FROM companies WHERE id = $1 FOR UPDATE").bind(id).optional().await
}

pub async fn list(tx: &mut Tx, page: PageRequest) -> Result<ListPage<Company>> {
    let all = |select| DynamicStatement::from(select).append(" FROM companies");
    tx.list(all, "SELECT *", " ORDER BY created_at DESC, id DESC", page).await
}

pub async fn update(tx: &mut Tx, company: &Company) -> Result<()> {
    let Company { subscription, previous_event_secret_until, .. } = company;
    tx.sql(
        "UPDATE companies SET name = $2, logo = $3, event_url = $4, payment_service = $5,
             active = $6, event_secret = $7, previous_event_secret = $8,
             previous_event_secret_until = $9, subscription_active = $10,
             subscription_expires_at = $11, features = $12, low_balance_minor = $13,
             sms_gateway = $14, sms_sender = $15, sms_prefixes = $16, fixed_otp = $17,
             countries = $18, updated_at = $19, routing = $20
         WHERE id = $1",
    )
    .params(params![
        &company.id, &company.name, &company.logo, &company.event_url, &company.payment_service,
        company.active, &company.event_secret, &company.previous_event_secret,
        previous_event_secret_until, subscription.active, subscription.expires_at,
        &subscription.features, company.low_balance, &company.sms_gateway, &company.sms_sender,
        &company.sms_prefixes, &company.fixed_otp, &company.countries, company.updated_at,
        &company.routing
    ])
    .execute()
    .await
}

pub async fn insert_key(
    tx: &mut Tx,
    company_id: &CompanyId,
    key: &Key,
    digest: &str,
) -> Result<()> {
    tx.sql(
        "INSERT INTO api_keys (company_id, id, digest, prefix, label, expires_at, created_at,
             scopes, addresses)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .params(params![
        company_id, &key.id, digest, &key.prefix, &key.label, key.expires_at, key.created_at,
        &key.limits.scopes, &key.limits.addresses
    ])
    .execute()
    .await
}

pub async fn list_keys(tx: &mut Tx, company_id: &CompanyId) -> Result<Vec<Key>> {
    tx.sql("SELECT * FROM api_keys WHERE company_id = $1 ORDER BY created_at DESC, id DESC")
        .bind(company_id)
        .all()
        .await
}

/// Revokes a key; `false` if there is none. An earlier revocation keeps its time.
pub async fn revoke_key(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    now: Timestamp,
) -> Result<bool> {
    tx.sql(
        "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $3)
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![company_id, id, now])
    .affects_one()
    .await
}

/// Returns the key and locks its row until the transaction ends.
pub async fn lock_key(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Key>> {
    tx.sql("SELECT * FROM api_keys WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn expire_key(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    at: Timestamp,
) -> Result<()> {
    tx.sql("UPDATE api_keys SET expires_at = $3 WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id, at])
        .execute()
        .await
}

/// Records a use. An earlier time does not overwrite a later one.
pub async fn record_key_use(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE api_keys SET last_used_at = $3
         WHERE company_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)",
    )
    .params(params![company_id, id, now])
    .execute()
    .await
}

/// Returns digests of valid keys of all companies used at `since` or later, most recent first.
pub async fn digests_used_since(
    tx: &mut Tx,
    since: Timestamp,
    now: Timestamp,
    most: i64,
) -> Result<Vec<String>> {
    tx.sql(
        "SELECT digest FROM api_keys
         WHERE last_used_at >= $1 AND revoked_at IS NULL
             AND (expires_at IS NULL OR expires_at > $2)
         ORDER BY last_used_at DESC LIMIT $3",
    )
    .params(params![since, now, most])
    .values()
    .await
}

pub async fn find_by_key(tx: &mut Tx, digest: &str) -> Result<Option<KeyHolder>> {
    tx.sql(
        "SELECT companies.*, api_keys.id AS key_id, api_keys.digest, api_keys.last_used_at,
             api_keys.expires_at, api_keys.revoked_at, api_keys.scopes, api_keys.addresses
         FROM api_keys JOIN companies ON companies.id = api_keys.company_id
         WHERE api_keys.digest = $1",
    )
    .bind(digest)
    .optional()
    .await
}

/// Limits a statement on rows `t` of a company to those that the holder of a key may read, by the
/// rules of `authenticate` and `Company::check_feature`.
pub fn readable_with_key(
    statement: DynamicStatement,
    digest: &str,
    feature: &str,
    now: Timestamp,
) -> DynamicStatement {
    let feature = format!("%\"{feature}\"%");
    statement
        .append(
            " AND EXISTS (SELECT 1 FROM api_keys k JOIN companies c ON c.id = k.company_id
             WHERE k.company_id = t.company_id AND k.revoked_at IS NULL AND c.active
                 AND c.subscription_active AND k.digest = ",
        )
        .bind(digest)
        .append(" AND (k.expires_at IS NULL OR k.expires_at > ")
        .bind(now)
        .append(") AND (c.subscription_expires_at IS NULL OR c.subscription_expires_at > ")
        .bind(now)
        .append(") AND (c.features IS NULL OR CAST(c.features AS TEXT) LIKE ")
        .bind(feature)
        .append("))")
}
