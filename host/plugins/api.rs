//! Installing and listing plugins, for operators.

use axum::{body::Bytes, extract::State};
use serde_json::{Value, json};

use super::store;
use crate::{
    app::App,
    audit,
    error::{Error, Result},
    http::answer::Answer,
};

/// The body is the component itself (`application/wasm` or any other type). It serves when this answers.
pub async fn install(State(app): State<App>, wasm: Bytes) -> Result<Answer> {
    if wasm.is_empty() {
        return Err(Error::invalid("the body must be a WebAssembly component"));
    }
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

pub async fn list(State(app): State<App>) -> Result<Answer> {
    let rows = app.store.read(async |tx| store::all(tx).await).await?;
    let view = |row: &store::PluginRow| -> Value {
        let serves = app.plugins.provider(&row.name).filter(|p| p.plugin.digest == row.digest);
        json!({
            "name": row.name,
            "version": row.version,
            "digest": row.digest,
            "state": row.state,
            "interfaces": serves.as_ref().map(|provider| provider.plugin.guest.interfaces()),
            "manifest": serves.as_ref().map(|provider| provider.manifest()),
            "installed_at": row.installed_at,
        })
    };
    Answer::data(rows.iter().map(view).collect::<Vec<_>>(), "Plugins fetched successfully")
}
