//! Publishers for operators.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::super::{
    PublicKey,
    publishers::store::{self, KeyRow},
};
use crate::{
    app::App,
    audit,
    clock::Timestamp,
    error::{Error, Result},
    http::{
        answer::Answer,
        body::Body,
        fields::{Texts, fields},
        path::Path,
    },
    store::Tx,
};

/// Somebody whose components are taken.
#[derive(Serialize, JsonSchema)]
pub struct Publisher {
    name: String,
    keys: Vec<Key>,
}

/// What the publisher signs with.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PublisherKey")]
pub struct Key {
    /// Of its PEM file, the line between `BEGIN PUBLIC KEY` and `END PUBLIC KEY`.
    key: String,
    added_at: Timestamp,
}

/// Of rows sorted by name.
fn publishers(rows: Vec<KeyRow>) -> Vec<Publisher> {
    let mut publishers: Vec<Publisher> = Vec::new();
    for KeyRow { name, key, added_at } in rows {
        let key = Key { key, added_at };
        match publishers.last_mut() {
            Some(last) if last.name == name => last.keys.push(key),
            _ => publishers.push(Publisher { name, keys: vec![key] }),
        }
    }
    publishers
}

pub async fn list(State(app): State<App>) -> Result<Answer<Vec<Publisher>>> {
    let rows = app.store.select(async |tx| store::all(tx).await).await?;
    Answer::data(publishers(rows), "Publishers fetched successfully")
}

fields! {
    /// Somebody whose components shall be taken.
    Body PublisherChange {
        /// All keys that the publisher signs with; others are trusted no more. Each is an Ed25519 key as it stands in its PEM file, in
        /// one line between `BEGIN PUBLIC KEY` and `END PUBLIC KEY`.
        #[schemars(extend("examples" = [["MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="]]))]
        keys: Texts,
    }
}

pub async fn trust(
    State(app): State<App>,
    Path(publisher): Path<String>,
    body: Body<PublisherChange>,
) -> Result<Answer<Publisher>> {
    let keys = body.keys()?;
    check_name(&publisher)?;
    if keys.is_empty() {
        return Err(body.must_be("keys", "a list of at least one key"));
    }
    for (position, key) in keys.iter().enumerate() {
        if PublicKey::from_line(key).is_none() {
            let what = "an Ed25519 key, in the one line of its PEM file";
            return Err(body.must_be(&format!("keys.{position}"), what));
        }
    }
    let db = app.store.clone();
    db.write(async move |tx| set(tx, &app, &publisher, &keys).await).await
}

async fn set(
    tx: &mut Tx,
    app: &App,
    publisher: &str,
    keys: &[String],
) -> Result<Answer<Publisher>> {
    for before in store::of_publisher(tx, publisher).await? {
        if !keys.contains(&before.key) {
            store::remove(tx, publisher, &before.key).await?;
        }
    }
    for key in keys {
        let owner = store::add(tx, publisher, key, app.clock.now()).await?;
        if owner != publisher {
            return Err(Error::Conflict(format!("the key {key} is one of {owner}")));
        }
    }
    let detail = json!({ "publisher": publisher, "keys": keys });
    audit::record(tx, app, audit::SERVICE, "publisher.trust", detail).await?;
    let mut trusted = publishers(store::of_publisher(tx, publisher).await?);
    let trusted = trusted.pop().ok_or_else(|| Error::internal("a publisher has lost its keys"))?;
    Answer::data(trusted, "Publisher is trusted successfully")
}

/// What it has signed before goes on serving.
pub async fn distrust(
    State(app): State<App>,
    Path(publisher): Path<String>,
) -> Result<Answer<Publisher>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let rows = store::of_publisher(tx, &publisher).await?;
        for row in &rows {
            store::remove(tx, &publisher, &row.key).await?;
        }
        let gone = publishers(rows).pop();
        let gone = gone.ok_or_else(|| Error::not_found("there is no such publisher"))?;
        let detail = json!({ "publisher": publisher });
        audit::record(tx, &app, audit::SERVICE, "publisher.distrust", detail).await?;
        Answer::data(gone, "Publisher is trusted no more")
    })
    .await
}

/// It stands in grants, where it is read by people and by programs.
fn check_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c);
    match (1..=60).contains(&name.len()) && name.chars().all(allowed) {
        true => Ok(()),
        false => Err(Error::invalid("a publisher's name must be 1 to 60 of a-z, 0-9, _, - and .")),
    }
}
