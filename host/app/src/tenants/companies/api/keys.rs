//! The API keys of a company.

use ipnet::IpNet;

use crate::tenants::{
    companies::{
        Key, digest, find, get,
        scopes::{KeyLimits, SCOPES, read_networks},
        store,
    },
    prelude::*,
};

const KEY_PREFIX_CHARACTERS: usize = 12;
/// Default time for which a rotated key stays valid beside its replacement.
const KEY_OVERLAP_SECONDS: i64 = 24 * 3600;
const MAX_OVERLAP_SECONDS: i64 = 30 * 24 * 3600;

/// A created API key. The key itself is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedKey {
    #[serde(flatten)]
    key: Key,
    pub api_key: String,
}

pub async fn issue_key(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    label: Option<String>,
    limits: KeyLimits,
    expires_at: Option<Timestamp>,
) -> Result<CreatedKey> {
    let api_key = app.random.token(&format!("sk_{}_", company.server));
    let key = Key {
        id: app.new_id(),
        prefix: api_key[..KEY_PREFIX_CHARACTERS].to_owned(),
        label,
        limits,
        last_used_at: None,
        expires_at,
        revoked_at: None,
        created_at: app.clock.now(),
    };
    store::insert_key(tx, &company.id, &key, &digest(&api_key)).await?;
    Ok(CreatedKey { key, api_key })
}

fn check_future(body: &Fields, now: Timestamp, at: Option<Timestamp>) -> Result<Option<Timestamp>> {
    match at {
        Some(at) if at <= now => Err(body.must_be("expires_at", "in the future")),
        _ => Ok(at),
    }
}

fields! {
    /// A new API key.
    Body NewKey(body, now: Timestamp) {
        /// Purpose of the key.
        label: Option<Text<100>>,
        /// Scopes of the key. Default: all.
        scopes: Option<SomeOf<Scope>>,
        /// IP addresses or networks from which the key may be used. Default: all.
        #[schemars(extend("examples" = [["203.0.113.0/24"]]))]
        addresses: Option<Texts> as Option<Vec<IpNet>> => match addresses {
            Some(addresses) => read_networks(body, &addresses).map(Some),
            None => Ok(None),
        },
        /// Expiry of the key; must be in the future.
        expires_at: Option<Time> => check_future(body, now, expires_at),
    }
}

choices! {
    Scope = SCOPES;
}

pub async fn create_key(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<NewKey>,
) -> Result<DataResponse<CreatedKey>> {
    let NewKey { label, scopes, addresses, expires_at } = NewKey::read(&body, app.clock.now())?;
    let limits = KeyLimits { scopes: scopes.map(Json), addresses: addresses.map(Json) };
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = get(tx, &company).await?;
        let created = issue_key(tx, &app, &company, label, limits, expires_at).await?;
        let detail = json!({ "key": created.key.id, "label": created.key.label,
            "scopes": created.key.limits.scopes, "addresses": created.key.limits.addresses });
        audit::record(tx, &app, &actor, &company.id, "key.create", detail).await?;
        DataResponse::data(created, "Key created successfully")
    })
    .await
}

fields! {
    /// Rotation of an API key.
    Body KeyRotation(body, now: Timestamp) {
        /// Time for which the previous key stays valid: at most 30 days; default one day.
        overlap_seconds: Option<Whole<0, MAX_OVERLAP_SECONDS>>,
        /// Expiry of the new key; must be in the future.
        expires_at: Option<Time> => check_future(body, now, expires_at),
    }
}

/// The replacement of a rotated API key. The key itself is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct RotatedKey {
    #[serde(flatten)]
    created: CreatedKey,
    /// The previous key with its expiry.
    replaces: Key,
}

pub async fn rotate_key(
    State(app): State<App>,
    actor: Actor,
    Path((company, former)): Path<(CompanyId, String)>,
    body: Body<KeyRotation>,
) -> Result<DataResponse<RotatedKey>> {
    let now = app.clock.now();
    let KeyRotation { overlap_seconds, expires_at } = KeyRotation::read(&body, now)?;
    let overlap = overlap_seconds.unwrap_or(KEY_OVERLAP_SECONDS);
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = get(tx, &company).await?;
        let replaces = store::lock_key(tx, &company.id, &former).await?;
        let mut replaces = replaces.ok_or_else(|| Error::not_found("key not found"))?;
        if replaces.revoked_at.is_some() || replaces.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("the key was revoked or has expired: create another"));
        }
        let end = now.plus_seconds(overlap);
        let end = replaces.expires_at.map_or(end, |at| at.min(end));
        store::expire_key(tx, &company.id, &replaces.id, end).await?;
        replaces.expires_at = Some(end);
        let (label, limits) = (replaces.label.clone(), replaces.limits.clone());
        let created = issue_key(tx, &app, &company, label, limits, expires_at).await?;
        let detail = json!({ "key": created.key.id, "replaces": replaces.id, "until": end });
        audit::record(tx, &app, &actor, &company.id, "key.rotate", detail).await?;
        DataResponse::data(RotatedKey { created, replaces }, "Key rotated successfully")
    })
    .await
}

pub async fn list_keys(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<Key>>> {
    find(&app, &company).await?;
    let keys = app.store.select(async |tx| store::list_keys(tx, &company).await).await?;
    DataResponse::data(keys, "Keys fetched successfully")
}

/// Revokes a key, effective from the next request.
pub async fn revoke_key(
    State(app): State<App>,
    actor: Actor,
    Path((company, key)): Path<(CompanyId, String)>,
) -> Result<MessageResponse> {
    let db = app.store.clone();
    db.write(async move |tx| {
        get(tx, &company).await?;
        if !store::revoke_key(tx, &company, &key, app.clock.now()).await? {
            return Err(Error::not_found("key not found"));
        }
        audit::record(tx, &app, &actor, &company, "key.revoke", json!({ "key": key })).await?;
        Ok(MessageResponse("Key revoked successfully"))
    })
    .await
}
