//! Installing and listing plugins, for operators.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, State},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Installed, Manifest, store};
use crate::{
    app::App,
    audit,
    clock::Timestamp,
    error::{Error, Result},
    http::{
        answer::Answer,
        body::Raw,
        openapi::{Describe, Operation},
    },
};

/// The body is the component itself, whatever type it says. It may be larger than other bodies.
pub struct Component(Bytes);

impl FromRequest<App> for Component {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Component> {
        let Raw(wasm) = Raw::from_request(request, app).await?;
        if wasm.is_empty() {
            return Err(Error::invalid("the body must be a WebAssembly component"));
        }
        Ok(Component(wasm))
    }
}

impl Describe for Component {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes_body("application/wasm", json!({}), true);
    }
}

/// It serves when this answers.
pub async fn install(
    State(app): State<App>,
    Component(wasm): Component,
) -> Result<Answer<Installed>> {
    let db = app.clone();
    let installed = app
        .plugins
        .install(&app.store, wasm.into(), async move |tx, manifest, digest| {
            let (name, version) = (&manifest.name, &manifest.version);
            let detail = json!({ "plugin": name, "version": version, "digest": digest });
            Ok(audit::record(tx, &db, audit::SERVICE, "plugin.install", detail).await?)
        })
        .await?;
    Answer::data(installed, "Plugin installed successfully")
}

/// A version of a plugin that was installed here.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plugin")]
pub struct PluginView {
    name: String,
    version: String,
    /// The SHA-256 of the component.
    digest: String,
    /// `active` or `retired`.
    state: String,
    /// What it implements; `null` unless it serves.
    interfaces: Option<Vec<&'static str>>,
    /// `null` unless it serves.
    manifest: Option<Manifest>,
    installed_at: Timestamp,
}

pub async fn list(State(app): State<App>) -> Result<Answer<Vec<PluginView>>> {
    let rows = app.store.select(async |tx| store::all(tx).await).await?;
    let view = |row: store::PluginRow| {
        let serves = app.plugins.get(&row.name).filter(|p| p.plugin.digest == row.digest);
        PluginView {
            interfaces: serves.as_ref().map(|found| found.plugin.guest.interfaces()),
            manifest: serves.as_ref().map(|found| found.manifest().clone()),
            name: row.name,
            version: row.version,
            digest: row.digest,
            state: row.state,
            installed_at: row.installed_at,
        }
    };
    Answer::data(rows.into_iter().map(view).collect(), "Plugins fetched successfully")
}
