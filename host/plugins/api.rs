//! Plugins for operators: what is installed, and which version serves whom.

pub mod publishers;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, State},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    Manifest, SIGNATURE_BYTES, Signed,
    admission::Check,
    capabilities::Capabilities,
    life::{Installed, Wish, missing},
    store::{self, PluginRow},
    versions::{Change, Share, State as Life},
};
use crate::{
    app::App,
    audit,
    clock::Timestamp,
    error::{Error, Result},
    http::{
        answer::Answer,
        body::{Body, Raw},
        fields::{Flag, Text, Texts, Whole, fields},
        openapi::{Describe, Operation},
        path::Path,
        query::{Query, Signature, Truth},
    },
    monitor,
    store::Tx,
};

/// The body is the component itself, whatever type it says. It may be larger than other bodies.
pub struct Component(Bytes);

impl Component {
    /// With the signature that it carries, and one from beside it.
    fn signed(self, beside: Option<[u8; SIGNATURE_BYTES]>) -> Signed {
        let mut file = Signed::read(self.0.into());
        file.signatures.extend(beside);
        file
    }
}

impl<S: Send + Sync> FromRequest<S> for Component {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Component> {
        let Raw(wasm) = Raw::from_request(request, state).await?;
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

fields! {
    /// What becomes of a component.
    Query Installation {
        /// `true`: it may have all that it asks for. Otherwise it waits for a grant if it asks for more than the previous version.
        grant: Truth,
        /// `false`: it is kept, and serves nobody yet.
        activate: Truth,
        /// The signature of its author, unless it is in the component.
        signature: Signature,
    }
}

fields! {
    /// Whose component it is.
    Query Examination {
        /// The signature of its author, unless it is in the component.
        signature: Signature,
    }
}

/// A component that was installed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InstalledPlugin")]
pub struct InstalledView {
    #[serde(flatten)]
    plugin: PluginView,
    /// What it asks for and nobody has granted yet: `host:api.acme.example`, `address:base_url`,
    /// `secret:api_key -> header authorization at base_url`.
    waits_for: Capabilities,
    /// What an operator should know before granting it: secrets that are not bound.
    warnings: Vec<String>,
    /// The version that served everyone until now.
    replaces: Option<String>,
    /// What was asked of it before it was taken.
    checks: Vec<Check>,
}

pub async fn install(
    State(app): State<App>,
    query: Query<Installation>,
    component: Component,
) -> Result<Answer<InstalledView>> {
    let grant = query.grant()?.unwrap_or(false);
    let wish = Wish { grant, activate: query.activate()?.unwrap_or(true) };
    let (db, component) = (app.clone(), component.signed(query.signature()?));
    let installed = app.plugins.install(&app.store, component, wish, async move |tx, row| {
        let detail = json!({
            "plugin": row.name, "version": row.version, "digest": row.digest,
            "publisher": row.publisher, "grant": grant,
        });
        Ok(audit::record(tx, &db, audit::SERVICE, "plugin.install", detail).await?)
    });
    let installed = installed.await?;
    let said = match installed.row.state {
        Life::Waiting => "Plugin waits for a grant",
        _ => "Plugin installed successfully",
    };
    Answer::data(installed.view(), said)
}

impl Installed {
    fn view(self) -> InstalledView {
        let Installed { row, waits_for, interfaces, replaces, manifest, checks } = self;
        let warnings = manifest.secrets.warnings();
        let plugin =
            PluginView { interfaces: Some(interfaces), manifest: Some(manifest), ..row.view() };
        InstalledView { plugin, waits_for, warnings, replaces, checks }
    }
}

/// What would be asked of a component, and what it would ask for.
#[derive(Serialize, JsonSchema)]
pub struct Examined {
    admitted: bool,
    checks: Vec<Check>,
    /// `null` when it was not admitted.
    asks_for: Option<Capabilities>,
    /// What an operator should know before granting it: secrets that are not bound.
    warnings: Vec<String>,
    manifest: Option<Manifest>,
}

/// Nothing is kept.
pub async fn examine(
    State(app): State<App>,
    query: Query<Examination>,
    component: Component,
) -> Result<Answer<Examined>> {
    let component = component.signed(query.signature()?);
    let (admission, signer) = app.plugins.examine(&app.store, &component).await?;
    let manifest = admission.plugin.ok().map(|plugin| plugin.manifest.clone());
    let publisher = signer.as_ref().map(|signer| &*signer.publisher);
    let asks = |manifest| Capabilities::of(manifest).signed_by(publisher);
    let asks_for = manifest.as_ref().map(asks);
    let admitted = manifest.is_some();
    let warnings = manifest.as_ref().map(|manifest| manifest.secrets.warnings());
    let warnings = warnings.unwrap_or_default();
    let examined = Examined { admitted, checks: admission.checks, asks_for, warnings, manifest };
    Answer::data(examined, "Plugin checked successfully")
}

/// A version of a plugin that was installed here.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plugin")]
pub struct PluginView {
    name: String,
    version: String,
    /// The SHA-256 of the component, without its signature.
    digest: String,
    /// Who signed it; `null`: nobody whom this host trusted then.
    publisher: Option<String>,
    state: Life,
    /// Of a canary: the share of what the plugin is asked for that it serves, by chance.
    percent: i64,
    /// Of a canary: the ids of companies that it serves always.
    companies: Vec<String>,
    /// What it may use; `null`: all that it asks for.
    granted: Option<Capabilities>,
    /// What it implements; `null` unless it serves.
    interfaces: Option<Vec<&'static str>>,
    /// `null` unless it serves.
    manifest: Option<Manifest>,
    installed_at: Timestamp,
    /// Since when, or when last, it served everyone.
    active_at: Option<Timestamp>,
    /// Since when it is called no more, because it broke again and again; activating it again ends that.
    quarantined_at: Option<Timestamp>,
}

impl PluginRow {
    fn view(self) -> PluginView {
        PluginView {
            name: self.name,
            version: self.version,
            digest: self.digest,
            publisher: self.publisher,
            state: self.state,
            percent: self.percent,
            companies: self.companies.0,
            granted: self.granted.map(|granted| granted.0),
            interfaces: None,
            manifest: None,
            installed_at: self.installed_at,
            active_at: self.active_at,
            quarantined_at: self.quarantined_at,
        }
    }

    /// With what is known of versions that serve.
    fn view_in(self, app: &App) -> PluginView {
        let serving = app.plugins.serving_version(&self.name, &self.digest);
        let interfaces = serving.as_ref().map(|plugin| plugin.guest.interfaces());
        let manifest = serving.map(|plugin| plugin.manifest.clone());
        PluginView { interfaces, manifest, ..self.view() }
    }
}

fn views(app: &App, rows: Vec<PluginRow>) -> Vec<PluginView> {
    rows.into_iter().map(|row| row.view_in(app)).collect()
}

pub async fn list(State(app): State<App>) -> Result<Answer<Vec<PluginView>>> {
    let rows = app.store.select(async |tx| store::all(tx).await).await?;
    Answer::data(views(&app, rows), "Plugins fetched successfully")
}

/// Its versions, newest first.
pub async fn fetch(
    State(app): State<App>,
    Path(plugin): Path<String>,
) -> Result<Answer<Vec<PluginView>>> {
    let rows = app.store.select(async |tx| store::versions(tx, &plugin).await).await?;
    if rows.is_empty() {
        return Err(missing());
    }
    Answer::data(views(&app, rows), "Plugin fetched successfully")
}

fields! {
    /// Which version shall serve everyone.
    Body Activation {
        /// The SHA-256 of the component; without it, the version that served last.
        digest: Option<Text<64>>,
        /// `true`: it may have all that it asks for.
        grant: Option<Flag>,
    }
}

pub async fn activate(
    State(app): State<App>,
    Path(plugin): Path<String>,
    body: Body<Activation>,
) -> Result<Answer<Vec<PluginView>>> {
    let (digest, grant) = (body.digest()?, body.grant()?.unwrap_or(false));
    let detail = json!({ "digest": digest, "grant": grant });
    let rows = change(&app, plugin, Change::Activate(digest), grant, "plugin.activate", detail);
    Answer::data(views(&app, rows.await?), "Plugin activated successfully")
}

fields! {
    /// Which version shall serve some, beside the one that serves everyone else.
    Body Canary {
        /// The SHA-256 of the component.
        digest: Text<64>,
        /// The share of what the plugin is asked for that it serves, by chance. At first nothing.
        percent: Option<Whole<0, 100>>,
        /// The ids of companies that it serves always.
        companies: Option<Texts>,
        /// `true`: it may have all that it asks for.
        grant: Option<Flag>,
    }
}

pub async fn canary(
    State(app): State<App>,
    Path(plugin): Path<String>,
    body: Body<Canary>,
) -> Result<Answer<Vec<PluginView>>> {
    let (digest, percent) = (body.digest()?, body.percent()?.unwrap_or(0));
    let companies = body.companies()?.unwrap_or_default();
    let grant = body.grant()?.unwrap_or(false);
    let detail = json!({
        "digest": digest, "percent": percent, "companies": companies, "grant": grant,
    });
    let share = Share { percent: u8::try_from(percent).unwrap_or(0), companies };
    let wanted = Change::Canary(digest, share);
    let rows = change(&app, plugin, wanted, grant, "plugin.canary", detail).await?;
    Answer::data(views(&app, rows), "Plugin is tried successfully")
}

pub async fn roll_back(
    State(app): State<App>,
    Path(plugin): Path<String>,
) -> Result<Answer<Vec<PluginView>>> {
    let rows = change(&app, plugin, Change::RollBack, false, "plugin.rollback", json!({})).await?;
    Answer::data(views(&app, rows), "Plugin rolled back successfully")
}

pub async fn deactivate(
    State(app): State<App>,
    Path(plugin): Path<String>,
) -> Result<Answer<Vec<PluginView>>> {
    let rows = change(&app, plugin, Change::Deactivate, false, "plugin.deactivate", json!({}));
    Answer::data(views(&app, rows.await?), "Plugin deactivated successfully")
}

async fn change(
    app: &App,
    plugin: String,
    wanted: Change,
    grant: bool,
    action: &'static str,
    mut detail: serde_json::Value,
) -> Result<Vec<PluginRow>> {
    detail["plugin"] = json!(plugin);
    let db = app.clone();
    let note = async move |tx: &mut Tx, rows: &[PluginRow]| {
        let serves = rows.iter().find(|row| row.state == Life::Active);
        detail["serves"] = json!(serves.map(|row| &row.digest));
        Ok(audit::record(tx, &db, audit::SERVICE, action, detail).await?)
    };
    app.plugins.change(&app.store, &plugin, wanted, grant, note).await
}

pub async fn uninstall(
    State(app): State<App>,
    Path((plugin, digest)): Path<(String, String)>,
) -> Result<Answer<PluginView>> {
    let db = app.clone();
    let check = async move |tx: &mut Tx, row: &PluginRow, is_last: bool| {
        if is_last {
            check_unused(tx, &row.name).await?;
        }
        let detail = json!({ "plugin": row.name, "version": row.version, "digest": row.digest });
        Ok(audit::record(tx, &db, audit::SERVICE, "plugin.uninstall", detail).await?)
    };
    let gone = app.plugins.uninstall(&app.store, &plugin, &digest, check).await?;
    Answer::data(gone.view(), "Plugin uninstalled successfully")
}

/// Refuses while a record could not be brought to its end without the plugin.
async fn check_unused(tx: &mut Tx, plugin: &str) -> Result<()> {
    let uses = monitor::plugin_uses(tx, plugin).await?.into_iter();
    let uses = uses.filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}"));
    let uses: Vec<String> = uses.collect();
    match uses.is_empty() {
        true => Ok(()),
        false => Err(Error::Conflict(format!("{plugin} is needed by {}", uses.join(", ")))),
    }
}
