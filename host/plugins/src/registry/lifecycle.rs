//! Operators' changes: install, grant, activate, start a canary, roll back, deactivate, uninstall.
//! A change that fails has no effect.
//!
//! An upgrade:
//!
//! 1. Admission (`admission`), step by step. A failure returns 400 with the reason, and the active
//!    version stays.
//! 2. One transaction that locks the plugin's name: comparison with the manifests of all versions
//!    that ever served (`check_history`); the component; requested capabilities against those
//!    granted to the previous version (`waiting` if there are more, else `active`, by
//!    `versions::apply_change`); the audit entry; the notification of other hosts.
//! 3. `Plugins::adopt` replaces the map of plugins as a whole. A request that began on the old
//!    version ends on it.
//! 4. Other hosts are notified (LISTEN and NOTIFY on PostgreSQL) or poll once a second (`sync`),
//!    and admit the new version. If a host rejects it, the host logs this and keeps the old
//!    version.
//!
//! Activation, canary, rollback, deactivation and uninstallation follow the same path from step 2:
//! a version is admitted on this host before the transaction.

use super::{
    store::{self, PluginRow},
    versions::{VersionChange, VersionState, apply_change},
};
use crate::prelude::*;
use crate::{
    admission::{
        self, Admission, AdmissionCheck, AdmissionMode, publishers::Signer,
        signature::SignedComponent,
    },
    manifest::capabilities::Capabilities,
};
use tollhouse_platform::error::Result;

/// Options of an installation.
#[derive(Clone, Copy, Debug)]
pub struct InstallOptions {
    /// Grants all requested capabilities.
    pub grant: bool,
    /// Activates the version unless it waits for a grant.
    pub activate: bool,
}

pub struct InstalledVersion {
    pub row: PluginRow,
    /// Requested capabilities without a grant, for which the version waits.
    pub missing_capabilities: Capabilities,
    pub interfaces: Vec<&'static str>,
    /// The version that was active before.
    pub replaces: Option<String>,
    pub manifest: Manifest,
    pub checks: Vec<AdmissionCheck>,
}

impl Plugins {
    /// Admits a submitted component. Without a trusted signature, it is rejected unless this host
    /// accepts unsigned components.
    pub async fn admit_submitted(
        &self,
        db: &Store,
        component: &SignedComponent,
    ) -> Result<(Admission, Option<Signer>)> {
        let trust = self.trust();
        let signer = db.select(async |tx| trust.signer(tx, component).await).await?;
        let signed = trust.evaluate(component, signer.as_ref());
        let signature = AdmissionCheck::new("signature", &signed);
        let mut admission = match signed {
            Ok(_) => {
                admission::admit(&self.0.calls, component.wasm.clone(), AdmissionMode::Full).await
            }
            Err(reason) => Admission { checks: Vec::new(), plugin: Err(reason) },
        };
        admission.checks.insert(0, signature);
        Ok((admission, signer))
    }

    /// Admits and stores a component. `also` joins the transaction.
    pub async fn install<F>(
        &self,
        db: &Store,
        component: SignedComponent,
        options: InstallOptions,
        also: F,
    ) -> Result<InstalledVersion>
    where
        F: AsyncFnOnce(&mut Tx, &PluginRow) -> Result<()> + Clone + Send + 'static,
    {
        let (admission, signer) = self.admit_submitted(db, &component).await?;
        let plugin = admission.plugin.map_err(Error::Invalid)?;
        let serving =
            self.get(&plugin.manifest.name).filter(|other| other.digest() != plugin.digest);
        let replaces = serving.map(|other| other.manifest().version.to_string());
        let (new, now, trust) = (plugin.clone(), self.0.clock.now(), self.trust().clone());
        let manifests = Manifests::read(db, &new.manifest.name).await?;
        let kept = db.write(async move |tx| {
            // Trust may have changed during admission.
            if trust.signer(tx, &component).await? != signer {
                return Err(changed_meanwhile(&new.manifest.name));
            }
            let mut row = new_row(&new, signer, now);
            let before = store::lock(tx, &row.name).await?;
            manifests.check_history(tx, &new.manifest, &before).await?;
            let known = before.iter().find(|known| known.digest == row.digest);
            row.publisher = publisher_of(known, row.publisher, options.grant);
            let requested =
                Capabilities::of(&new.manifest).with_publisher(row.publisher.as_deref());
            let has = known.is_some_and(|known| known.state != VersionState::Waiting);
            let waits_for = match has || options.grant {
                true => Capabilities::default(),
                false => requested.not_covered_by(&manifests.granted_before(tx, &before).await?),
            };
            if waits_for.is_empty() {
                (row.state, row.granted) = (VersionState::Ready, Some(Json(requested)));
            }
            store::insert(tx, &row, &component.wasm).await?;
            if options.activate && waits_for.is_empty() {
                let change = VersionChange::Activate(Some(row.digest.clone()));
                apply_and_save(tx, &row.name, &change, now).await?;
            }
            also(tx, &row).await?;
            let rows = store::list_versions(tx, &row.name).await?;
            let kept = rows.into_iter().find(|kept| kept.digest == row.digest);
            let kept =
                kept.ok_or_else(|| Error::internal("plugin disappeared after it was stored"))?;
            Ok::<_, Error>((kept, waits_for))
        });
        let (row, waits_for) = kept.await?;
        self.adopt(db, std::slice::from_ref(&plugin)).await?;
        tracing::info!(plugin = &*plugin.label, digest = plugin.digest, state = ?row.state, "plugin installed");
        for warning in plugin.manifest.secrets.warnings() {
            tracing::warn!(plugin = &*plugin.label, "{warning}");
        }
        Ok(InstalledVersion {
            row,
            missing_capabilities: waits_for,
            interfaces: plugin.interfaces(),
            replaces,
            manifest: plugin.manifest.clone(),
            checks: admission.checks,
        })
    }

    /// Changes which versions serve, and returns all of them. With `grant`, the named version is
    /// granted what it requests. `also` joins the transaction and receives the changed versions.
    pub async fn change_versions<F>(
        &self,
        db: &Store,
        name: &str,
        wanted: VersionChange,
        grant: bool,
        also: F,
    ) -> Result<Vec<PluginRow>>
    where
        F: AsyncFnOnce(&mut Tx, &[PluginRow]) -> Result<()> + Clone + Send + 'static,
    {
        let admitted = self.admit_for_change(db, name, &wanted, grant).await?;
        let manifests = Manifests::read(db, name).await?;
        let (now, name) = (self.0.clock.now(), name.to_owned());
        let fit: Vec<String> = admitted.iter().map(|plugin| plugin.digest.clone()).collect();
        let rows = db.write(async move |tx| {
            if let Some(digest) = wanted.digest().filter(|_| grant) {
                let rows = store::lock(tx, &name).await?;
                let row =
                    rows.iter().find(|row| row.digest == *digest).ok_or_else(plugin_not_found)?;
                let requested = manifests.requested_capabilities(tx, row).await?;
                store::grant(tx, &name, digest, &requested).await?;
            }
            apply_and_save(tx, &name, &wanted, now).await?;
            let rows = store::list_versions(tx, &name).await?;
            for version in rows.iter().filter(|version| version.is_serving()) {
                if !fit.contains(&version.digest) {
                    return Err(changed_meanwhile(&name));
                }
                // It may be older than a version with a secret that it would read as a setting.
                let manifest = manifests.get(tx, &version.digest).await?;
                manifests.check_history(tx, &manifest, &rows).await?;
            }
            also(tx, &rows).await?;
            Ok(rows)
        });
        let rows = rows.await?;
        self.adopt(db, &admitted).await?;
        Ok(rows)
    }

    /// Admits, on this host, the versions that would serve after a change.
    async fn admit_for_change(
        &self,
        db: &Store,
        name: &str,
        wanted: &VersionChange,
        grant: bool,
    ) -> Result<Vec<Arc<Plugin>>> {
        let mut rows = db.select(async |tx| store::list_versions(tx, name).await).await?;
        if rows.is_empty() {
            return Err(plugin_not_found());
        }
        let granted = wanted.digest().filter(|_| grant);
        for row in &mut rows {
            if granted == Some(&row.digest) && row.state == VersionState::Waiting {
                row.state = VersionState::Ready;
            }
        }
        let mut admitted = Vec::new();
        let after = apply_change(rows, wanted, self.0.clock.now())?;
        for row in after.iter().filter(|row| row.is_serving()) {
            admitted.push(match self.serving_version(&row.name, &row.digest) {
                Some(serving) => serving,
                None => self.admit_stored(db, row).await?.map_err(Error::Invalid)?,
            });
        }
        Ok(admitted)
    }

    /// Removes a version that does not serve. `also` joins the transaction; its last argument is
    /// `true` if no other version could serve.
    pub async fn uninstall<F>(
        &self,
        db: &Store,
        name: &str,
        digest: &str,
        also: F,
    ) -> Result<PluginRow>
    where
        F: AsyncFnOnce(&mut Tx, &PluginRow, bool) -> Result<()> + Clone + Send + 'static,
    {
        let manifests = Manifests::read(db, name).await?;
        let (name, digest, now) = (name.to_owned(), digest.to_owned(), self.0.clock.now());
        let gone = db.write(async move |tx| {
            let rows = store::lock(tx, &name).await?;
            let could_serve = |row: &&PluginRow| row.state != VersionState::Waiting;
            let is_last = rows.iter().filter(could_serve).all(|row| row.digest == digest);
            let row =
                rows.into_iter().find(|row| row.digest == digest).ok_or_else(plugin_not_found)?;
            if row.is_serving() {
                let message = format!(
                    "{name} {} is in use: deactivate it, or activate another version",
                    row.version
                );
                return Err(Error::Conflict(message));
            }
            also(tx, &row, is_last).await?;
            let manifest = manifests.get(tx, &row.digest).await?;
            let secrets: Vec<String> = manifest.secrets.names().cloned().collect();
            store::delete(tx, &row, manifest.kind, &secrets, now).await?;
            Ok(row)
        });
        let gone = gone.await?;
        self.adopt(db, &[]).await?;
        Ok(gone)
    }
}

/// Returns the publisher of a component. An installed one keeps its publisher without a new grant,
/// even if it is sent again with another signature or none.
fn publisher_of(known: Option<&PluginRow>, signer: Option<String>, grant: bool) -> Option<String> {
    let Some(known) = known else { return signer };
    let renewed = signer.filter(|_| grant || known.state == VersionState::Waiting);
    renewed.or_else(|| known.publisher.clone())
}

fn new_row(plugin: &Plugin, signer: Option<Signer>, now: Timestamp) -> PluginRow {
    let signature = signer.as_ref().map(|signer| hex::encode(signer.signature));
    PluginRow {
        name: plugin.manifest.name.clone(),
        digest: plugin.digest.clone(),
        version: plugin.manifest.version.to_string(),
        publisher: signer.map(|signer| signer.publisher),
        signature,
        state: VersionState::Waiting,
        granted: Some(Json(Capabilities::default())),
        percent: 0,
        companies: Json(Vec::new()),
        installed_at: now,
        active_at: None,
        served_at: None,
        quarantined_at: None,
    }
}

fn changed_meanwhile(name: &str) -> Error {
    Error::Conflict(format!(
        "{name} was changed by another request: check its active version and retry"
    ))
}

pub fn plugin_not_found() -> Error {
    Error::not_found("plugin not found")
}

async fn apply_and_save(
    tx: &mut Tx,
    name: &str,
    wanted: &VersionChange,
    now: Timestamp,
) -> Result<()> {
    let before = store::lock(tx, name).await?;
    let after = apply_change(before.clone(), wanted, now)?;
    let activated = match wanted {
        VersionChange::Activate(_) | VersionChange::RollBack => Some(VersionState::Active),
        VersionChange::Canary(..) => Some(VersionState::Canary),
        VersionChange::Deactivate => None,
    };
    if let Some(version) = after.iter().find(|version| Some(version.state) == activated) {
        store::end_quarantine(tx, name, &version.digest).await?;
    }
    Ok(store::update(tx, name, &before, after, now).await?)
}

/// Manifests of versions that have served, read before the transaction: components are large.
#[derive(Clone)]
struct Manifests(Arc<BTreeMap<String, Manifest>>);

impl Manifests {
    async fn read(db: &Store, name: &str) -> Result<Manifests> {
        let mut manifests = BTreeMap::new();
        let rows = db.select(async |tx| store::list_versions(tx, name).await).await?;
        for row in rows.into_iter().filter(|row| row.served_at.is_some()) {
            let component =
                db.select(async |tx| store::find_component(tx, &row.digest).await).await?;
            let manifest = component.and_then(|wasm| Manifest::parse(&wasm).ok());
            manifests.extend(manifest.map(|manifest| (row.digest, manifest)));
        }
        Ok(Manifests(Arc::new(manifests)))
    }

    /// Returns the manifest of any version.
    async fn get(&self, tx: &mut Tx, digest: &str) -> Result<Manifest> {
        if let Some(manifest) = self.0.get(digest) {
            return Ok(manifest.clone());
        }
        let wasm = store::find_component(tx, digest).await?.ok_or_else(plugin_not_found)?;
        Manifest::parse(&wasm).map_err(|reason| {
            Error::Invalid(format!("the manifest of {digest} cannot be read: {reason}"))
        })
    }

    /// Returns the capabilities of the active version, else of the last one.
    async fn granted_before(&self, tx: &mut Tx, before: &[PluginRow]) -> Result<Capabilities> {
        let active = before.iter().find(|row| row.state == VersionState::Active);
        let latest =
            before.iter().filter(|row| row.active_at.is_some()).max_by_key(|row| row.active_at);
        let Some(row) = active.or(latest) else { return Ok(Capabilities::default()) };
        // Earlier releases required no grant for some of them.
        let has = self.requested_capabilities(tx, row).await?;
        Ok(match &row.granted {
            Some(Json(granted)) => has.union(granted),
            None => has,
        })
    }

    async fn requested_capabilities(&self, tx: &mut Tx, row: &PluginRow) -> Result<Capabilities> {
        let manifest = self.get(tx, &row.digest).await?;
        Ok(Capabilities::of(&manifest).with_publisher(row.publisher.as_deref()))
    }

    /// Compares a version with all that have served under its name and so received credentials.
    async fn check_history(&self, tx: &mut Tx, new: &Manifest, before: &[PluginRow]) -> Result<()> {
        for row in before.iter().filter(|row| row.served_at.is_some()) {
            let earlier = self.get(tx, &row.digest).await?;
            let version = earlier.version.to_string();
            let secrets: Vec<String> = earlier.secrets.names().cloned().collect();
            new.check_compatible(earlier.kind, &secrets, &version).map_err(Error::Invalid)?;
        }
        for gone in store::list_uninstalled(tx, &new.name).await? {
            new.check_compatible(gone.kind, &gone.secrets, &gone.version)
                .map_err(Error::Invalid)?;
        }
        Ok(())
    }
}
