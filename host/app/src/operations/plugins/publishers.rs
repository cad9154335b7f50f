//! Operator API for trusted publishers.

use crate::{
    operations::{
        audit::{self, Actor},
        operators::approvals::{self, ApprovalSubject},
    },
    state::prelude::*,
};
use tollhouse_plugins::{
    PublicKey, TrustedKey,
    admission::publishers::{
        check_name,
        store::{self, PublisherKeyRow},
    },
};

/// A trusted publisher of plugins.
#[derive(Serialize, JsonSchema)]
pub struct Publisher {
    name: String,
    keys: Vec<PublisherKey>,
}

/// A signing key of a publisher.
#[derive(Serialize, JsonSchema)]
pub struct PublisherKey {
    /// Line between `BEGIN PUBLIC KEY` and `END PUBLIC KEY` in the PEM file.
    key: String,
    /// `null` if the settings of this host pin the key.
    added_at: Option<Timestamp>,
}

/// Groups keys, which are sorted by publisher.
fn group_by_publisher(
    keys: impl Iterator<Item = (String, String, Option<Timestamp>)>,
) -> Vec<Publisher> {
    let mut publishers: Vec<Publisher> = Vec::new();
    for (name, key, added_at) in keys {
        let key = PublisherKey { key, added_at };
        match publishers.last_mut() {
            Some(last) if last.name == name => last.keys.push(key),
            _ => publishers.push(Publisher { name, keys: vec![key] }),
        }
    }
    publishers
}

fn from_rows(rows: Vec<PublisherKeyRow>) -> Vec<Publisher> {
    group_by_publisher(rows.into_iter().map(|row| (row.name, row.key, Some(row.added_at))))
}

fn from_settings(mut keys: Vec<TrustedKey>) -> Vec<Publisher> {
    keys.sort_by(|a, b| a.publisher.cmp(&b.publisher));
    group_by_publisher(keys.into_iter().map(|key| (key.publisher, key.key.to_line(), None)))
}

pub async fn list(State(app): State<App>) -> Result<DataResponse<Vec<Publisher>>> {
    let trust = app.plugins.trust();
    let publishers = match trust.is_pinned() {
        true => from_settings(trust.pinned.clone()),
        false => from_rows(app.store.select(async |tx| store::list(tx).await).await?),
    };
    DataResponse::data(publishers, "Publishers fetched successfully")
}

/// Returns 409 if the settings pin the publishers: those in the database then have no effect.
fn check_not_pinned(app: &App) -> Result<()> {
    if app.plugins.trust().is_pinned() {
        let message =
            "publishers are pinned by the setting plugin_publishers: change it on every host";
        return Err(Error::Conflict(message.to_owned()));
    }
    Ok(())
}

fields! {
    /// Trust in a publisher.
    Body PublisherChange {
        /// All signing keys of the publisher, replacing earlier ones. Each is an Ed25519 key: the
        /// line between `BEGIN PUBLIC KEY` and `END PUBLIC KEY` in its PEM file.
        #[schemars(extend("examples" = [["MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="]]))]
        keys: Texts,
    }
}

pub async fn trust(
    State(app): State<App>,
    actor: Actor,
    Path(publisher): Path<String>,
    body: Body<PublisherChange>,
) -> Result<DataResponse<Publisher>> {
    let keys = body.read()?.keys;
    check_name(&publisher).map_err(Error::invalid)?;
    check_not_pinned(&app)?;
    if keys.is_empty() {
        return Err(body.must_be("keys", "a list of at least one key"));
    }
    for (position, key) in keys.iter().enumerate() {
        if PublicKey::from_line(key).is_none() {
            let what = "an Ed25519 key: the base64 line of its PEM file";
            return Err(body.must_be(&format!("keys.{position}"), what));
        }
    }
    let (subject, detail) =
        (ApprovalSubject::Publishers, json!({ "publisher": publisher, "keys": keys }));
    approvals::require(&app, &actor, subject, Owner::Service, "publisher.trust", &detail).await?;
    let db = app.store.clone();
    db.write(async move |tx| {
        for before in store::list_by_publisher(tx, &publisher).await? {
            if !keys.contains(&before.key) {
                store::delete(tx, &publisher, &before.key, app.clock.now()).await?;
            }
        }
        for key in &keys {
            let owner = store::insert(tx, &publisher, key, app.clock.now()).await?;
            if owner != publisher {
                let message = format!("the key {key} belongs to the publisher {owner}");
                return Err(Error::Conflict(message));
            }
        }
        audit::record(tx, &app, &actor, Owner::Service, "publisher.trust", detail).await?;
        let trusted = from_rows(store::list_by_publisher(tx, &publisher).await?).pop();
        let trusted = trusted.ok_or_else(|| Error::internal("publisher has no keys"))?;
        DataResponse::data(trusted, "Publisher trusted successfully")
    })
    .await
}

/// Removes a publisher. Its installed versions continue to serve, also on hosts that start later.
pub async fn distrust(
    State(app): State<App>,
    actor: Actor,
    Path(publisher): Path<String>,
) -> Result<DataResponse<Publisher>> {
    check_not_pinned(&app)?;
    let (subject, detail) = (ApprovalSubject::Publishers, json!({ "publisher": publisher }));
    approvals::require(&app, &actor, subject, Owner::Service, "publisher.distrust", &detail)
        .await?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let rows = store::list_by_publisher(tx, &publisher).await?;
        for row in &rows {
            store::delete(tx, &publisher, &row.key, app.clock.now()).await?;
        }
        let gone = from_rows(rows).pop();
        let gone = gone.ok_or_else(|| Error::not_found("publisher not found"))?;
        audit::record(tx, &app, &actor, Owner::Service, "publisher.distrust", detail).await?;
        DataResponse::data(gone, "Publisher removed successfully")
    })
    .await
}
