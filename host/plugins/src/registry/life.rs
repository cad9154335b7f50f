//! Operators' changes: install, grant, activate, start a canary, roll back, deactivate, uninstall.
//! A change that fails has no effect.
//!
//! An upgrade:
//!
//! 1. Admission (`admission`), step by step. A failure is a 400 with the reason, and the active version
//!    stays.
//! 2. One transaction under the plugin's name: comparison with the manifests of all versions that ever
//!    served (`check_history`); the component; requested capabilities against those granted to the
//!    previous version (`waiting` if there are more, else `active`, by `versions::changed`); the audit
//!    entry; the announcement to other hosts.
//! 3. `Plugins::adopt` exchanges one map of plugins as a whole. A request that began on the old version
//!    ends on it.
//! 4. Other hosts are notified (LISTEN and NOTIFY on PostgreSQL) or poll once a second (`keep_up`), and
//!    admit what changed. A host that cannot keeps the old version and logs it.
//!
//! Activation, canary, rollback, deactivation and uninstallation follow the same path from step 2: a
//! version is admitted on this host before the transaction.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    store::{self, PluginRow},
    versions::{Change, State, Version, changed},
};
use crate::{
    Manifest, Plugin, Plugins,
    admission::{self, Admission, Care, Check, publishers::Signer, signature::Signed},
    manifest::capabilities::Capabilities,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::{Json, Store, Tx},
};

/// Options of an installation.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Grants all requested capabilities.
    pub grant: bool,
    /// Activates the version unless it waits for a grant.
    pub activate: bool,
}

pub struct Installed {
    pub row: PluginRow,
    /// Requested capabilities without a grant, for which the version waits.
    pub waits_for: Capabilities,
    pub interfaces: Vec<&'static str>,
    /// The version that was active before.
    pub replaces: Option<String>,
    pub manifest: Manifest,
    pub checks: Vec<Check>,
}

impl Plugins {
    /// Checks a submitted component; without a trusted signature, only if this host requires none.
    pub async fn examine(
        &self,
        db: &Store,
        component: &Signed,
    ) -> Result<(Admission, Option<Signer>)> {
        let trust = self.trust();
        let signer = db.select(async |tx| trust.signer(tx, component).await).await?;
        let signed = trust.judge(component, signer.as_ref());
        let signature = Check::new("signature", &signed);
        let mut admission = match signed {
            Ok(_) => admission::admit(&self.0.calls, component.wasm.clone(), Care::Full).await,
            Err(reason) => Admission { checks: Vec::new(), plugin: Err(reason) },
        };
        admission.checks.insert(0, signature);
        Ok((admission, signer))
    }

    /// Admits and stores a component. `also` joins the transaction.
    pub async fn install<F>(
        &self,
        db: &Store,
        component: Signed,
        wish: Wish,
        also: F,
    ) -> Result<Installed>
    where
        F: AsyncFnOnce(&mut Tx, &PluginRow) -> Result<()> + Clone + Send + 'static,
    {
        let (admission, signer) = self.examine(db, &component).await?;
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
            row.publisher = whose(known, row.publisher, wish.grant);
            let asks = Capabilities::of(&new.manifest).signed_by(row.publisher.as_deref());
            let has = known.is_some_and(|known| known.state != State::Waiting);
            let waits_for = match has || wish.grant {
                true => Capabilities::default(),
                false => asks.beyond(&manifests.granted_before(tx, &before).await?),
            };
            if waits_for.is_empty() {
                (row.state, row.granted) = (State::Ready, Some(Json(asks)));
            }
            store::insert(tx, &row, &component.wasm).await?;
            if wish.activate && waits_for.is_empty() {
                change(tx, &row.name, &Change::Activate(Some(row.digest.clone())), now).await?;
            }
            also(tx, &row).await?;
            let rows = store::versions(tx, &row.name).await?;
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
        Ok(Installed {
            row,
            waits_for,
            interfaces: plugin.guest.interfaces(),
            replaces,
            manifest: plugin.manifest.clone(),
            checks: admission.checks,
        })
    }

    /// Changes which versions serve, and returns all of them. With `grant`, the named version is
    /// granted what it requests. `also` joins the transaction and receives the changed versions.
    pub async fn change<F>(
        &self,
        db: &Store,
        name: &str,
        wanted: Change,
        grant: bool,
        also: F,
    ) -> Result<Vec<PluginRow>>
    where
        F: AsyncFnOnce(&mut Tx, &[PluginRow]) -> Result<()> + Clone + Send + 'static,
    {
        let admitted = self.fit_to_serve(db, name, &wanted, grant).await?;
        let manifests = Manifests::read(db, name).await?;
        let (now, name) = (self.0.clock.now(), name.to_owned());
        let fit: Vec<String> = admitted.iter().map(|plugin| plugin.digest.clone()).collect();
        let rows = db.write(async move |tx| {
            if grant && let Change::Activate(Some(digest)) | Change::Canary(digest, _) = &wanted {
                let rows = store::lock(tx, &name).await?;
                let row = rows.iter().find(|row| row.digest == *digest).ok_or_else(missing)?;
                let asks = manifests.all_that(tx, row).await?;
                store::grant(tx, &name, digest, &asks).await?;
            }
            let after = change(tx, &name, &wanted, now).await?;
            let rows = store::versions(tx, &name).await?;
            for version in after.iter().filter(|version| serves(version)) {
                if !fit.contains(&version.digest) {
                    return Err(changed_meanwhile(&name));
                }
                // It may be older than a version with a secret that it would read as a setting.
                let manifest = manifests.of(tx, &version.digest).await?;
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
    async fn fit_to_serve(
        &self,
        db: &Store,
        name: &str,
        wanted: &Change,
        grant: bool,
    ) -> Result<Vec<Arc<Plugin>>> {
        let rows = db.select(async |tx| store::versions(tx, name).await).await?;
        let mut before: Vec<Version> = rows.iter().map(PluginRow::life).collect();
        if before.is_empty() {
            return Err(missing());
        }
        if grant && let Change::Activate(Some(digest)) | Change::Canary(digest, _) = wanted {
            let waiting = |version: &&mut Version| {
                version.digest == *digest && version.state == State::Waiting
            };
            before.iter_mut().filter(waiting).for_each(|version| version.state = State::Ready);
        }
        let mut admitted = Vec::new();
        for version in changed(before, wanted.clone(), self.0.clock.now())? {
            if let Some(row) = rows.iter().find(|row| row.digest == version.digest)
                && serves(&version)
            {
                admitted.push(self.fit(db, row).await?);
            }
        }
        Ok(admitted)
    }

    async fn fit(&self, db: &Store, row: &PluginRow) -> Result<Arc<Plugin>> {
        match self.serving_version(&row.name, &row.digest) {
            Some(serving) => Ok(serving),
            None => self.admit_stored(db, row).await?.map_err(Error::Invalid),
        }
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
            let could_serve = |row: &&PluginRow| row.state != State::Waiting;
            let is_last = rows.iter().filter(could_serve).all(|row| row.digest == digest);
            let row = rows.into_iter().find(|row| row.digest == digest).ok_or_else(missing)?;
            if serves(&row.life()) {
                let message = format!(
                    "{name} {} is in use: deactivate it, or activate another version",
                    row.version
                );
                return Err(Error::Conflict(message));
            }
            also(tx, &row, is_last).await?;
            let manifest = manifests.of(tx, &row.digest).await?;
            let secrets: Vec<String> = manifest.secrets.names().cloned().collect();
            store::remove(tx, &row, manifest.kind, &secrets, now).await?;
            Ok(row)
        });
        let gone = gone.await?;
        self.adopt(db, &[]).await?;
        Ok(gone)
    }
}

/// Returns the publisher of a component. An installed one keeps its publisher without a new grant,
/// even if it is sent again with another signature or none.
fn whose(known: Option<&PluginRow>, signer: Option<String>, grant: bool) -> Option<String> {
    match known {
        None => signer,
        Some(known) if grant || known.state == State::Waiting => {
            signer.or_else(|| known.publisher.clone())
        }
        Some(known) => known.publisher.clone(),
    }
}

fn new_row(plugin: &Plugin, signer: Option<Signer>, now: Timestamp) -> PluginRow {
    let signature = signer.as_ref().map(|signer| hex::encode(signer.signature));
    PluginRow {
        name: plugin.manifest.name.clone(),
        digest: plugin.digest.clone(),
        version: plugin.manifest.version.to_string(),
        publisher: signer.map(|signer| signer.publisher),
        signature,
        state: State::Waiting,
        granted: Some(Json(Capabilities::default())),
        percent: 0,
        companies: Json(Vec::new()),
        installed_at: now,
        active_at: None,
        served_at: None,
        quarantined_at: None,
    }
}

fn serves(version: &Version) -> bool {
    matches!(version.state, State::Active | State::Canary)
}

fn changed_meanwhile(name: &str) -> Error {
    Error::Conflict(format!(
        "{name} was changed by another request: check its active version and retry"
    ))
}

pub fn missing() -> Error {
    Error::not_found("plugin not found")
}

async fn change(tx: &mut Tx, name: &str, wanted: &Change, now: Timestamp) -> Result<Vec<Version>> {
    let before: Vec<Version> = store::lock(tx, name).await?.iter().map(PluginRow::life).collect();
    let after = changed(before.clone(), wanted.clone(), now)?;
    let is_named = |version: &&Version| match wanted {
        Change::Activate(_) | Change::RollBack => version.state == State::Active,
        Change::Canary(..) => version.state == State::Canary,
        Change::Deactivate => false,
    };
    if let Some(version) = after.iter().find(is_named) {
        store::release(tx, name, &version.digest).await?;
    }
    store::change(tx, name, &before, after.clone(), now).await?;
    Ok(after)
}

/// Manifests of versions that have served, read before the transaction: components are large.
#[derive(Clone)]
struct Manifests(Arc<BTreeMap<String, Manifest>>);

impl Manifests {
    async fn read(db: &Store, name: &str) -> Result<Manifests> {
        let mut manifests = BTreeMap::new();
        let rows = db.select(async |tx| store::versions(tx, name).await).await?;
        for row in rows.into_iter().filter(|row| row.served_at.is_some()) {
            let component = db.select(async |tx| store::component(tx, &row.digest).await).await?;
            let manifest = component.and_then(|(wasm,)| Manifest::parse(&wasm).ok());
            manifests.extend(manifest.map(|manifest| (row.digest, manifest)));
        }
        Ok(Manifests(Arc::new(manifests)))
    }

    /// Returns the manifest of any version.
    async fn of(&self, tx: &mut Tx, digest: &str) -> Result<Manifest> {
        if let Some(manifest) = self.0.get(digest) {
            return Ok(manifest.clone());
        }
        let (wasm,) = store::component(tx, digest).await?.ok_or_else(missing)?;
        Manifest::parse(&wasm).map_err(|reason| {
            Error::Invalid(format!("the manifest of {digest} cannot be read: {reason}"))
        })
    }

    /// Returns the capabilities of the active version, else of the last one.
    async fn granted_before(&self, tx: &mut Tx, before: &[PluginRow]) -> Result<Capabilities> {
        let active = before.iter().find(|row| row.state == State::Active);
        let latest =
            before.iter().filter(|row| row.active_at.is_some()).max_by_key(|row| row.active_at);
        let Some(row) = active.or(latest) else { return Ok(Capabilities::default()) };
        // Earlier releases required no grant for some of them.
        let has = self.all_that(tx, row).await?;
        Ok(match &row.granted {
            Some(Json(granted)) => has.and(granted),
            None => has,
        })
    }

    /// Returns the capabilities that a version requests.
    async fn all_that(&self, tx: &mut Tx, row: &PluginRow) -> Result<Capabilities> {
        let manifest = self.of(tx, &row.digest).await?;
        Ok(Capabilities::of(&manifest).signed_by(row.publisher.as_deref()))
    }

    /// Compares a version with all that have served under its name and so received credentials.
    async fn check_history(&self, tx: &mut Tx, new: &Manifest, before: &[PluginRow]) -> Result<()> {
        for row in before.iter().filter(|row| row.served_at.is_some()) {
            let earlier = self.of(tx, &row.digest).await?;
            let version = earlier.version.to_string();
            let secrets: Vec<String> = earlier.secrets.names().cloned().collect();
            new.check_against(earlier.kind, &secrets, &version).map_err(Error::Invalid)?;
        }
        for gone in store::gone(tx, &new.name).await? {
            new.check_against(gone.kind, &gone.secrets, &gone.version).map_err(Error::Invalid)?;
        }
        Ok(())
    }
}
