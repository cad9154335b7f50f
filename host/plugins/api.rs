//! Installing and listing plugins, for operators.

use axum::{
    body::Bytes,
    extract::{Request, State},
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::store;
use crate::{
    app::App,
    audit,
    error::{Error, Result},
    http::answer::Answer,
};

/// The body is the component itself (`application/wasm` or any other type). It serves when this answers.
pub async fn install(State(app): State<App>, request: Request) -> Result<Answer> {
    let wasm = read(request, app.plugins.most_component_bytes()).await?;
    let db = app.clone();
    let installed = app
        .plugins
        .install(&app.store, wasm, async move |tx, manifest, digest| {
            let (name, version) = (&manifest.name, &manifest.version);
            let detail = json!({ "plugin": name, "version": version, "digest": digest });
            Ok(audit::record(tx, &db, audit::SERVICE, "plugin.install", detail).await?)
        })
        .await?;
    Answer::data(installed, "Plugin installed successfully")
}

/// Components are larger than other bodies may be.
async fn read(request: Request, most: usize) -> Result<Vec<u8>> {
    let mut chunks = request.into_body().into_data_stream();
    let mut wasm = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk.map_err(|_| Error::invalid("the body could not be read"))?;
        if wasm.len() + chunk.len() > most {
            return Err(Error::TooLarge);
        }
        wasm.extend_from_slice(&chunk);
    }
    if wasm.is_empty() {
        return Err(Error::invalid("the body must be a WebAssembly component"));
    }
    Ok(wasm)
}

pub async fn list(State(app): State<App>) -> Result<Answer> {
    let rows = app.store.select(async |tx| store::all(tx).await).await?;
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
