//! `POST /api/v1/notifications/{provider}/{account}`: no API key, but a signature.

use axum::http::HeaderMap;
use sha2::{Digest, Sha256};

use super::{find_verification, store};
use crate::tenants::prelude::*;
use tollhouse_http::request::body::RawBody;
use tollhouse_plugins::{
    Credentials, Notification, NotificationRefusal, Provider, Unavailability, Webhook,
};

const UNKNOWN: &str = "notification account not found";

/// Responds once the webhook is stored; jobs do the rest.
#[instrument(target = SPAN_TARGET, name = "notifications.receive", skip_all)]
pub async fn receive(
    State(app): State<App>,
    Path((provider, account)): Path<(String, String)>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<MessageResponse> {
    let (account, plugin, credentials) = open(&app, &provider, &account).await?;
    if !plugin.exports("notifications") {
        return Err(Error::not_found(UNKNOWN));
    }
    let webhook = Webhook { headers: lower_case(&headers), body: body.clone() };
    let notifications = match plugin.parse_notification(&credentials, &webhook).await {
        Ok(Ok(notifications)) => notifications,
        Ok(Err(NotificationRefusal::Unauthentic)) => {
            return Err(Error::Unauthorized("the signature is not valid"));
        }
        Ok(Err(NotificationRefusal::Malformed(reason))) => {
            tracing::warn!(provider, reason, "malformed notification");
            return Err(Error::invalid("the notification cannot be read"));
        }
        Err(error) => return Err(Error::internal(error.fault.message)),
    };
    let (mut verifications, has_disputes) = (Vec::new(), plugin.has_disputes());
    for notification in &notifications {
        let found = find_verification(&app, &account, notification, has_disputes).await?;
        verifications.extend(found);
    }
    let digest = hex::encode(Sha256::digest(&body));
    let db = app.store.clone();
    db.write(async move |tx| {
        let now = app.clock.now();
        let about = notifications.iter().map(summarize).collect();
        store::insert_or_count(tx, &account, &digest, about, now).await?;
        for (company_id, job, subject) in &verifications {
            jobs::enqueue(tx, company_id, job, subject, now).await?;
        }
        Ok(MessageResponse("Notification received successfully"))
    })
    .await
}

/// Opens the account of a notification URL, with its plugin.
pub async fn open(
    app: &App,
    provider: &str,
    account: &str,
) -> Result<(Account, Provider, Credentials)> {
    let unknown = || Error::not_found(UNKNOWN);
    let account = app.store.select(async |tx| providers::find_by_id(tx, account).await).await?;
    let account = account.filter(|account| account.provider == provider).ok_or_else(unknown)?;
    let owner = Owner::from(&account.owner);
    let plugin = app
        .plugins
        .provider(provider, owner.column())
        .map_err(|_| plugin_unavailable(app, provider))?;
    if account.credentials.is_none() {
        return Err(unknown());
    }
    let credentials = account.open_credentials(app)?;
    Ok((account, plugin, credentials))
}

/// 503 while the plugin is out of service, so that the provider retries its webhook.
fn plugin_unavailable(app: &App, provider: &str) -> Error {
    match app.plugins.unavailability(provider) {
        Some(Unavailability::Deactivated) => {
            Error::Unavailable("the provider has been deactivated, try again later")
        }
        Some(Unavailability::NotReady) => {
            Error::Unavailable("the provider is not ready on this host, try again later")
        }
        None => Error::not_found(UNKNOWN),
    }
}

/// Returns the headers as plugins receive them.
pub fn lower_case(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

fn summarize(notification: &Notification) -> serde_json::Value {
    json!({
        "subject": format!("{:?}", notification.subject).to_lowercase(),
        "event": notification.event,
        "service_ref": notification.service_ref,
        "transaction_id": notification.transaction_id,
    })
}
