//! The operator API for event endpoints.

use super::{Endpoint, MAX_ENDPOINTS, store};
use crate::{
    tenants::{
        companies::{check_https, new_event_secret},
        prelude::*,
    },
    webhooks::outgoing::{self as events, TYPES},
};

choices! {
    EventType = &TYPES;
}

fields! {
    /// A new event endpoint.
    Body NewEndpoint(body, app: &App) {
        /// HTTPS URL that receives events; development mode also accepts HTTP. No other endpoint of
        /// the company may have it.
        url: HttpUrl => check_https(app, body, "url", &url).map(|()| url),
        /// Types of events that it receives. Default, and if empty: all.
        types: Option<ListOf<EventType>>,
        /// Purpose of the endpoint.
        description: Option<Text<200>>,
        /// `false`: it receives no events yet. Default: `true`.
        active: Option<Flag>,
    }
}

fields! {
    /// Changes to an event endpoint.
    Body EndpointChange(body, app: &App) {
        /// HTTPS URL that receives events. Setting it enables a disabled URL again.
        url: Changeable<HttpUrl> => match url {
            Some(url) => check_https(app, body, "url", &url).map(|()| Some(url)),
            None => Ok(None),
        },
        /// Types of events that it receives; `null` or empty: all.
        types: Clearable<ListOf<EventType>>,
        description: Clearable<Text<200>>,
        /// `false`: it receives no events, and its pending deliveries are disabled.
        active: Option<Flag>,
    }
}

/// A created event endpoint. The secret is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedEndpoint {
    #[serde(flatten)]
    endpoint: Endpoint,
    /// Secret that signs the events to this endpoint, in the format of Standard Webhooks.
    secret: String,
}

pub async fn list(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<Endpoint>>> {
    companies::find(&app, &company).await?;
    let endpoints = app.store.select(async |tx| store::list(tx, &company).await).await?;
    DataResponse::data(endpoints, "Event endpoints fetched successfully")
}

pub async fn create(
    State(app): State<App>,
    actor: Actor,
    Path(company_id): Path<CompanyId>,
    body: Body<NewEndpoint>,
) -> Result<DataResponse<CreatedEndpoint>> {
    let NewEndpoint { url, types, description, active } = NewEndpoint::read(&body, &app)?;
    let (now, id, secret) = (app.clock.now(), app.new_id(), new_event_secret(&app.random));
    let endpoint = Endpoint {
        secret: store::seal_secret(&app.sealer, &company_id, &id, &secret),
        company_id,
        id,
        url,
        types: Json(types.unwrap_or_default()),
        description,
        active: active.unwrap_or(true),
        previous_secret: None,
        previous_secret_until: None,
        created_at: now,
        updated_at: now,
    };
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = &endpoint.company_id;
        let others = lock(tx, company).await?;
        if others.len() >= MAX_ENDPOINTS {
            return Err(Error::Invalid(format!(
                "the company has {MAX_ENDPOINTS} event endpoints, which is the maximum"
            )));
        }
        check_unique(&body, &others, &endpoint)?;
        store::insert(tx, &endpoint).await?;
        events::enable(tx, company, &endpoint.url).await?;
        audit::record(tx, &app, &actor, company, "event_endpoint.create", json!(endpoint)).await?;
        let created = CreatedEndpoint { endpoint, secret };
        DataResponse::data(created, "Event endpoint created successfully")
    })
    .await
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    Path((company, endpoint)): Path<(CompanyId, String)>,
    body: Body<EndpointChange>,
) -> Result<DataResponse<Endpoint>> {
    let new = EndpointChange::read(&body, &app)?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let others = lock(tx, &company).await?;
        let before = find(&others, &endpoint)?;
        let is_enabled = new.url.is_some() || new.active == Some(true);
        let mut endpoint = before.clone();
        endpoint.url = new.url.unwrap_or(endpoint.url);
        if let Change::To(types) = new.types {
            endpoint.types = Json(types.unwrap_or_default());
        }
        new.description.apply(&mut endpoint.description);
        endpoint.active = new.active.unwrap_or(endpoint.active);
        endpoint.updated_at = app.clock.now();
        check_unique(&body, &others, &endpoint)?;
        store::update(tx, &endpoint).await?;
        // Locks the URL before its deliveries, in the same order as an attempt.
        if is_enabled {
            events::enable(tx, &company, &endpoint.url).await?;
        }
        if before.url != endpoint.url || !endpoint.active {
            store::disable_deliveries(tx, &company, &before.url).await?;
        }
        let mut detail = audit::changes(before, &endpoint);
        detail["endpoint"] = json!(endpoint.id);
        audit::record(tx, &app, &actor, &company, "event_endpoint.edit", detail).await?;
        DataResponse::data(endpoint, "Event endpoint updated successfully")
    })
    .await
}

/// Deletes an endpoint. Its pending deliveries are disabled.
pub async fn delete(
    State(app): State<App>,
    actor: Actor,
    Path((company, endpoint)): Path<(CompanyId, String)>,
) -> Result<MessageResponse> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let endpoints = lock(tx, &company).await?;
        let endpoint = find(&endpoints, &endpoint)?;
        store::delete(tx, &company, &endpoint.id).await?;
        store::disable_deliveries(tx, &company, &endpoint.url).await?;
        let detail = json!({ "endpoint": endpoint.id, "url": endpoint.url });
        audit::record(tx, &app, &actor, &company, "event_endpoint.delete", detail).await?;
        Ok(MessageResponse("Event endpoint deleted successfully"))
    })
    .await
}

/// A new secret.
#[derive(Serialize, JsonSchema)]
pub struct NewEndpointSecret {
    secret: String,
}

/// Replaces the secret of an endpoint. The previous secret also signs events for one more day.
pub async fn rotate_secret(
    State(app): State<App>,
    actor: Actor,
    Path((company, endpoint)): Path<(CompanyId, String)>,
) -> Result<DataResponse<NewEndpointSecret>> {
    let secret = new_event_secret(&app.random);
    let db = app.store.clone();
    db.write(async move |tx| {
        let mut endpoint = find(&lock(tx, &company).await?, &endpoint)?.clone();
        endpoint.set_secret(endpoint.signing_secret().rotate(&app, &secret));
        endpoint.updated_at = app.clock.now();
        store::update(tx, &endpoint).await?;
        let (action, detail) = ("event_endpoint.secret.rotate", json!({ "endpoint": endpoint.id }));
        audit::record(tx, &app, &actor, &company, action, detail).await?;
        let rotated = NewEndpointSecret { secret };
        DataResponse::data(rotated, "Event endpoint secret rotated successfully")
    })
    .await
}

/// Locks the company, so that none is added, and its endpoints, and returns them.
async fn lock(tx: &mut Tx, company: &CompanyId) -> Result<Vec<Endpoint>> {
    companies::lock(tx, company).await?;
    Ok(store::lock_all(tx, company).await?)
}

fn find<'e>(endpoints: &'e [Endpoint], id: &str) -> Result<&'e Endpoint> {
    let found = endpoints.iter().find(|endpoint| endpoint.id == id);
    found.ok_or_else(|| Error::not_found("event endpoint not found"))
}

fn check_unique(body: &Fields, all: &[Endpoint], endpoint: &Endpoint) -> Result<()> {
    match all.iter().any(|other| other.id != endpoint.id && other.url == endpoint.url) {
        true => Err(body.must_be("url", "the URL of no other event endpoint")),
        false => Ok(()),
    }
}
