//! Operator API for plugins and their versions.

pub mod publishers;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
};

use crate::{
    operations::{
        audit::{self, Actor},
        monitor,
        operators::approvals::{self, ApprovalSubject},
    },
    state::prelude::*,
};
use tollhouse_http::{
    openapi::{Describe, Operation},
    request::body::RawBody,
};
use tollhouse_plugins::{
    Manifest, SIGNATURE_BYTES, SignedComponent,
    admission::AdmissionCheck,
    manifest::capabilities::Capabilities,
    registry::{
        OpenCircuit,
        lifecycle::{InstallOptions, InstalledVersion, plugin_not_found},
        store::{self, PluginRow},
        versions::{CanaryShare, VersionChange, VersionState as Life},
    },
    statistics::CallSummary,
};

/// A component as request body, with any content type. It may be larger than other bodies.
pub struct ComponentBody(Bytes);

impl ComponentBody {
    /// Parses the component, and adds a separate signature to those that it contains.
    fn signed(self, beside: Option<[u8; SIGNATURE_BYTES]>) -> SignedComponent {
        let mut file = SignedComponent::parse(self.0.into());
        file.signatures.extend(beside);
        file
    }
}

impl<S: Send + Sync> FromRequest<S> for ComponentBody {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<ComponentBody> {
        let RawBody(wasm) = RawBody::from_request(request, state).await?;
        if wasm.is_empty() {
            return Err(Error::invalid("the body must be a WebAssembly component"));
        }
        Ok(ComponentBody(wasm))
    }
}

impl Describe for ComponentBody {
    fn describe(operation: &mut Operation<'_>) {
        operation.add_body("application/wasm", json!({}), true);
    }
}

fields! {
    /// Options of an installation.
    Query Installation {
        /// `true` grants all requested capabilities. Otherwise the version waits for a grant if it
        /// requests more than the previous one.
        grant: Truth,
        /// `false` installs the version without activating it.
        activate: Truth,
        /// Signature of the publisher, unless the component contains it.
        signature: Signature,
    }
}

fields! {
    /// Options of a check.
    Query Examination {
        /// Signature of the publisher, unless the component contains it.
        signature: Signature,
    }
}

/// An installed component.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InstalledPlugin")]
pub struct InstalledView {
    #[serde(flatten)]
    plugin: PluginView,
    /// Requested capabilities that are not granted: `host:api.acme.example`, `address:base_url`,
    /// `secret:api_key -> header authorization at base_url`.
    waits_for: Capabilities,
    /// Warnings before a grant: secrets that are not bound.
    warnings: Vec<String>,
    /// Version that was active before.
    replaces: Option<String>,
    /// Admission checks.
    checks: Vec<AdmissionCheck>,
}

pub async fn install(
    State(app): State<App>,
    actor: Actor,
    query: Query<Installation>,
    component: ComponentBody,
) -> Result<DataResponse<InstalledView>> {
    let Installation { grant, activate, signature } = query.read()?;
    let grant = grant.unwrap_or(false);
    let component = component.signed(signature);
    let what = json!({
        "digest": component.digest(), "activate": activate.unwrap_or(true),
        "signature": signature.map(hex::encode),
    });
    require_grant(&app, &actor, grant, "plugin.install", &what).await?;
    let options = InstallOptions { grant, activate: activate.unwrap_or(true) };
    let db = app.clone();
    let installed = app.plugins.install(&app.store, component, options, async move |tx, row| {
        let detail = json!({
            "plugin": row.name, "version": row.version, "digest": row.digest,
            "publisher": row.publisher, "grant": grant,
        });
        Ok(audit::record(tx, &db, &actor, Owner::Service, "plugin.install", detail).await?)
    });
    let installed = installed.await?;
    let message = match installed.row.state {
        Life::Waiting => "Plugin waits for a grant",
        _ => "Plugin installed successfully",
    };
    DataResponse::data(InstalledView::from(installed), message)
}

impl From<InstalledVersion> for InstalledView {
    fn from(installed: InstalledVersion) -> InstalledView {
        let InstalledVersion { row, missing_capabilities, interfaces, replaces, manifest, checks } =
            installed;
        InstalledView {
            waits_for: missing_capabilities,
            warnings: manifest.secrets.warnings(),
            plugin: PluginView {
                interfaces: Some(interfaces),
                manifest: Some(manifest),
                ..PluginView::from(row)
            },
            replaces,
            checks,
        }
    }
}

/// A grant of capabilities may need an approval.
async fn require_grant(
    app: &App,
    actor: &Actor,
    grant: bool,
    action: &str,
    detail: &Value,
) -> Result<()> {
    if !grant {
        return Ok(());
    }
    let subject = ApprovalSubject::PluginGrants;
    approvals::require(app, actor, subject, Owner::Service, action, detail).await
}

/// Result of a component check.
#[derive(Serialize, JsonSchema)]
pub struct Examined {
    admitted: bool,
    checks: Vec<AdmissionCheck>,
    /// Requested capabilities; `null` if the component was not admitted.
    requested_capabilities: Option<Capabilities>,
    /// Warnings before a grant: secrets that are not bound.
    warnings: Vec<String>,
    manifest: Option<Manifest>,
}

/// Checks a component without installing it.
pub async fn examine(
    State(app): State<App>,
    query: Query<Examination>,
    component: ComponentBody,
) -> Result<DataResponse<Examined>> {
    let component = component.signed(query.read()?.signature);
    let (admission, signer) = app.plugins.admit_submitted(&app.store, &component).await?;
    let manifest = admission.plugin.ok().map(|plugin| plugin.manifest.clone());
    let publisher = signer.as_ref().map(|signer| &*signer.publisher);
    let requested = |manifest| Capabilities::of(manifest).with_publisher(publisher);
    let warnings = manifest.as_ref().map(|manifest| manifest.secrets.warnings());
    let examined = Examined {
        admitted: manifest.is_some(),
        checks: admission.checks,
        requested_capabilities: manifest.as_ref().map(requested),
        warnings: warnings.unwrap_or_default(),
        manifest,
    };
    DataResponse::data(examined, "Plugin checked successfully")
}

/// An installed version of a plugin.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plugin")]
pub struct PluginView {
    name: String,
    version: String,
    /// SHA-256 digest of the component without its signature.
    digest: String,
    /// Publisher that signed it; `null` if no signer was trusted at installation.
    publisher: Option<String>,
    state: Life,
    /// Canary share: percentage of the plugin's calls, chosen at random.
    percent: i64,
    /// Ids of companies that the canary always serves.
    companies: Vec<String>,
    /// Granted capabilities; `null`: all that it requests.
    granted: Option<Capabilities>,
    /// Implemented interfaces; `null` unless the version serves.
    interfaces: Option<Vec<&'static str>>,
    /// `null` unless it serves.
    manifest: Option<Manifest>,
    installed_at: Timestamp,
    /// Time of the last activation; `null` if there was none or it was rolled back.
    active_at: Option<Timestamp>,
    /// Start of the quarantine after repeated failures; activation ends it.
    quarantined_at: Option<Timestamp>,
    /// Calls on this host since its start; `null` unless the version serves on it.
    calls: Option<CallSummary>,
    /// Open circuits on this host: of companies, and of accounts and origins.
    open_circuits: Vec<OpenCircuit>,
}

impl From<PluginRow> for PluginView {
    fn from(row: PluginRow) -> PluginView {
        PluginView {
            name: row.name,
            version: row.version,
            digest: row.digest,
            publisher: row.publisher,
            state: row.state,
            percent: row.percent,
            companies: row.companies.0,
            granted: row.granted.map(|granted| granted.0),
            interfaces: None,
            manifest: None,
            installed_at: row.installed_at,
            active_at: row.active_at,
            quarantined_at: row.quarantined_at,
            calls: None,
            open_circuits: Vec::new(),
        }
    }
}

/// Returns versions, with the interfaces, the manifest and the calls of those that serve on this
/// host.
fn views(app: &App, rows: Vec<PluginRow>) -> Vec<PluginView> {
    let view = |row: PluginRow| {
        let serving = app.plugins.serving_version(&row.name, &row.digest);
        let stored = PluginView::from(row);
        let Some(plugin) = serving else { return stored };
        PluginView {
            interfaces: Some(plugin.interfaces()),
            manifest: Some(plugin.manifest.clone()),
            calls: Some(plugin.calls()),
            open_circuits: app.plugins.open_circuits(&plugin),
            ..stored
        }
    };
    rows.into_iter().map(view).collect()
}

pub async fn list(State(app): State<App>) -> Result<DataResponse<Vec<PluginView>>> {
    let rows = app.store.select(async |tx| store::list(tx).await).await?;
    DataResponse::data(views(&app, rows), "Plugins fetched successfully")
}

/// Returns the versions of a plugin, newest first.
pub async fn fetch(
    State(app): State<App>,
    Path(plugin): Path<String>,
) -> Result<DataResponse<Vec<PluginView>>> {
    let rows = app.store.select(async |tx| store::list_versions(tx, &plugin).await).await?;
    if rows.is_empty() {
        return Err(plugin_not_found());
    }
    DataResponse::data(views(&app, rows), "Plugin fetched successfully")
}

fields! {
    /// Activation of a version.
    Body Activation {
        /// SHA-256 digest of the component; default: the version that was last active.
        digest: Option<Text<64>>,
        /// `true` grants all requested capabilities.
        grant: Option<Flag>,
    }
}

pub async fn activate(
    State(app): State<App>,
    actor: Actor,
    Path(plugin): Path<String>,
    body: Body<Activation>,
) -> Result<DataResponse<Vec<PluginView>>> {
    let Activation { digest, grant } = body.read()?;
    let grant = grant.unwrap_or(false);
    let detail = json!({ "digest": digest, "grant": grant });
    let wanted = VersionChange::Activate(digest);
    let change = change(&app, actor, plugin, wanted, grant, "plugin.activate", detail);
    DataResponse::data(change.await?, "Plugin activated successfully")
}

fields! {
    /// Canary: a version that serves beside the active one.
    Body Canary {
        /// SHA-256 digest of the component.
        digest: Text<64>,
        /// Percentage of the plugin's calls, chosen at random; default 0.
        percent: Option<Whole<0, 100>>,
        /// Ids of companies that the canary always serves.
        companies: Option<Texts>,
        /// `true` grants all requested capabilities.
        grant: Option<Flag>,
    }
}

pub async fn canary(
    State(app): State<App>,
    actor: Actor,
    Path(plugin): Path<String>,
    body: Body<Canary>,
) -> Result<DataResponse<Vec<PluginView>>> {
    let Canary { digest, percent, companies, grant } = body.read()?;
    let (percent, grant) = (percent.unwrap_or(0), grant.unwrap_or(false));
    let companies = companies.unwrap_or_default();
    let detail = json!({
        "digest": digest, "percent": percent, "companies": companies, "grant": grant,
    });
    let share = CanaryShare { percent, companies };
    let wanted = VersionChange::Canary(digest, share);
    let change = change(&app, actor, plugin, wanted, grant, "plugin.canary", detail);
    DataResponse::data(change.await?, "Canary started successfully")
}

pub async fn roll_back(
    State(app): State<App>,
    actor: Actor,
    Path(plugin): Path<String>,
) -> Result<DataResponse<Vec<PluginView>>> {
    let wanted = VersionChange::RollBack;
    let change = change(&app, actor, plugin, wanted, false, "plugin.rollback", json!({}));
    DataResponse::data(change.await?, "Plugin rolled back successfully")
}

pub async fn deactivate(
    State(app): State<App>,
    actor: Actor,
    Path(plugin): Path<String>,
) -> Result<DataResponse<Vec<PluginView>>> {
    let wanted = VersionChange::Deactivate;
    let change = change(&app, actor, plugin, wanted, false, "plugin.deactivate", json!({}));
    DataResponse::data(change.await?, "Plugin deactivated successfully")
}

async fn change(
    app: &App,
    actor: Actor,
    plugin: String,
    wanted: VersionChange,
    grant: bool,
    action: &'static str,
    mut detail: Value,
) -> Result<Vec<PluginView>> {
    detail["plugin"] = json!(plugin);
    require_grant(app, &actor, grant, action, &detail).await?;
    let db = app.clone();
    let note = async move |tx: &mut Tx, rows: &[PluginRow]| {
        let serves = rows.iter().find(|row| row.state == Life::Active);
        detail["serves"] = json!(serves.map(|row| &row.digest));
        Ok(audit::record(tx, &db, &actor, Owner::Service, action, detail).await?)
    };
    let rows = app.plugins.change_versions(&app.store, &plugin, wanted, grant, note).await?;
    Ok(views(app, rows))
}

pub async fn uninstall(
    State(app): State<App>,
    actor: Actor,
    Path((plugin, digest)): Path<(String, String)>,
) -> Result<DataResponse<PluginView>> {
    let db = app.clone();
    let check = async move |tx: &mut Tx, row: &PluginRow, is_last: bool| {
        if is_last {
            check_unused(tx, &row.name).await?;
        }
        let detail = json!({ "plugin": row.name, "version": row.version, "digest": row.digest });
        Ok(audit::record(tx, &db, &actor, Owner::Service, "plugin.uninstall", detail).await?)
    };
    let gone = app.plugins.uninstall(&app.store, &plugin, &digest, check).await?;
    DataResponse::data(PluginView::from(gone), "Plugin uninstalled successfully")
}

/// Returns 409 while records need the plugin.
async fn check_unused(tx: &mut Tx, plugin: &str) -> Result<()> {
    let mut uses = monitor::plugin_uses(tx, plugin).await?;
    uses.retain(|(_, count)| *count > 0);
    if uses.is_empty() {
        return Ok(());
    }
    let uses: Vec<_> = uses.iter().map(|(what, count)| format!("{count} {what}")).collect();
    Err(Error::Conflict(format!("{plugin} is needed by {}", uses.join(", "))))
}
