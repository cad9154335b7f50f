//! The API keys of a company.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use super::{limit, show_secret};
use crate::{
    form::{Field, FieldsForm, Sent},
    format::{Cell, column, plain},
    page::PageResult,
    pages::{
        Form,
        lists::{List, ListQuery, Paging},
    },
    session::Session,
};

/// The scopes of keys, as the interface names them.
pub const SCOPES: &[&str] = &[
    "users.read", "users.write", "otp.send", "identities.read", "identities.write", "cards.read",
    "cards.write", "recollections.read", "recollections.write", "direct_debits.read",
    "direct_debits.write", "payments.read", "payments.write", "events.read", "events.write",
    "accounts.read", "accounts.write",
];

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let button = |key: &Value, label, question, action| match key["revoked_at"].is_null() {
        true => {
            let segments = ["companies", &company, "keys", &plain(&key["id"]), action];
            session.button("keys.write", label, question, session.href(&segments, &[]))
        }
        false => Cell::Empty,
    };
    let columns = vec![
        column("Key", |key| Cell::code(&key["prefix"])),
        column("Label", |key| Cell::text(&key["label"])),
        column("Scopes", |key| limit(&key["scopes"])),
        column("Networks", |key| limit(&key["addresses"])),
        column("Last used", |key| Cell::time(&key["last_used_at"])),
        column("Expires", |key| Cell::time(&key["expires_at"])),
        column("Revoked", |key| Cell::time(&key["revoked_at"])),
        column("", |key| {
            let question = "A new key with the same limits is created. This one remains valid for \
                            24 hours.";
            button(key, "Rotate", question, "rotate")
        }),
        column("", |key| {
            button(key, "Revoke", "Requests with this key are rejected from now on.", "revoke")
        }),
    ];
    let list = List {
        title: "API keys",
        source: &["companies", &company, "keys"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "The company has no API keys.",
    };
    let fields = vec![
        Field::text("label", "Label", ""),
        Field::choices("scopes", "Scopes", SCOPES),
        Field::text("addresses", "Networks", "For example 203.0.113.0/24. Empty: all."),
    ];
    let action = session.href(&["companies", &company, "keys"], &[]);
    let texts = ("Create an API key", "Create the key");
    let form = FieldsForm::new(&session, "keys.write", texts, action, fields);
    list.show_with(&session, &company, &sent, form).await
}

pub async fn create(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let networks = sent.optional("addresses");
    let networks = networks.map(|networks| {
        let separated = networks.split(|c: char| c == ',' || c.is_whitespace());
        separated.filter(|network| !network.is_empty()).collect::<Vec<_>>()
    });
    let body = json!({
        "label": sent.optional("label"), "scopes": sent.all("scopes"), "addresses": networks,
    });
    let created = session.post(&["companies", &company, "keys"], &body).await?;
    show_key(&session, &company, &created)
}

fn show_key(session: &Session, company: &str, created: &Value) -> PageResult {
    let note = "Clients send it in the header Authorization: Bearer KEY.";
    show_secret(session, company, ("API keys", "keys"), (plain(&created["api_key"]), note))
}

pub async fn rotate(
    session: Session,
    Path((company, key)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    let path = ["companies", &company, "keys", &key, "rotate"];
    let created = session.post(&path, &json!({})).await?;
    show_key(&session, &company, &created)
}

pub async fn revoke(
    session: Session,
    Path((company, key)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.delete(&["companies", &company, "keys", &key]).await?;
    session.redirect(&["companies", &company, "keys"])
}
