//! Configuring an account.

use std::collections::HashMap;

use super::{Target, View, active_plugin, view};
use crate::{
    tenants::prelude::*,
    tenants::providers::{Mode, store},
};

fields! {
    /// Changes to a provider account.
    Body ProviderAccountChange {
        /// Credentials by name, as the plugin's manifest defines them; `null` removes them.
        credentials: Clearable<TextsByName>,
        /// `false` deactivates the provider: for the company or, on a service account, for all
        /// companies of the account's mode.
        active: Option<Flag>,
        /// Mode of the service account: `test` or `live`. Default: `test` in development mode,
        /// otherwise `live`. The mode of a company's own account is the company's `server`.
        mode: Option<OneOf<Mode>> as Option<Mode> => Ok(mode.as_deref().and_then(Mode::from_name)),
    }
}

pub async fn set_for_service(
    State(app): State<App>,
    actor: Actor,
    Path(provider): Path<String>,
    body: Body<ProviderAccountChange>,
) -> Result<DataResponse<View>> {
    let new = body.read()?;
    set(&app, actor, Target::service(&app, new.mode), provider, new).await
}

pub async fn set_for_company(
    State(app): State<App>,
    actor: Actor,
    Path((company, provider)): Path<(CompanyId, String)>,
    body: Body<ProviderAccountChange>,
) -> Result<DataResponse<View>> {
    let new = body.read()?;
    let target = Target::company(&app, &company, new.mode, &body).await?;
    set(&app, actor, target, provider, new).await
}

/// Changes the fields that the body names; `credentials: null` removes them.
async fn set(
    app: &App,
    actor: Actor,
    target: Target,
    provider: String,
    new: ProviderAccountChange,
) -> Result<DataResponse<View>> {
    let plugin = active_plugin(app, &provider)?;
    let check = |sent: Option<Vec<(String, String)>>| {
        let Some(pairs) = sent else { return Ok(None) };
        let values: HashMap<String, String> = pairs.into_iter().collect();
        // Only an active version defines the credentials.
        plugin?.manifest().check_credentials(&values, &app.egress.plugins)?;
        Ok(Some(json!(values).to_string()))
    };
    let credentials = new.credentials.try_map(check)?;
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let default = Account {
            owner: target.owner.clone(),
            provider: provider.clone(),
            id: app.random.token("").into(),
            credentials: None,
            active: true,
            created_at: now,
            updated_at: now,
        };
        // Lock before sealing: credentials are sealed under the stored id, not that of `default`.
        let mut account = store::lock_or_insert(tx, &default).await?;
        let credentials_changed = matches!(credentials, Change::To(_));
        if let Change::To(json) = credentials {
            account.credentials = json.map(|json| account.seal_json(&app.sealer, &json));
        }
        account.active = new.active.unwrap_or(account.active);
        account.updated_at = now;
        store::update(tx, &account).await?;
        let detail = json!({
            "provider": provider,
            "mode": target.mode,
            "active": account.active,
            "credentials_changed": credentials_changed,
        });
        audit::record(tx, &app, &actor, &target.owner, "provider.set", detail).await?;
        DataResponse::data(view(account, target.mode, &app), "Provider updated successfully")
    })
    .await
}
