//! The people of a company, who use the portal.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use crate::{
    form::{Field, FieldsForm, Sent},
    format::{Cell, Table, column, plain},
    page::{Frame, PageResult, not_found, render},
    pages::{
        ListPage, Parent,
        lists::{List, ListQuery, Paging},
    },
    session::Session,
};

/// The roles of members, with their labels.
pub const ROLES: &[(&str, &str)] = &[
    ("company-owner", "Owner: everything, including the team"),
    ("company-finance", "Finance: payments, repayments, wallet and statements"),
    ("company-support", "Support: customers, payments, repayments and messages"),
    ("company-developer", "Developer: API keys, events and event endpoints"),
];

fn role(member: &Value) -> Cell {
    let name = plain(&member["role"]);
    let known = ROLES.iter().find(|(role, _)| *role == name);
    let label = known.and_then(|(_, label)| label.split(':').next());
    Cell::Text(label.unwrap_or(&name).to_owned())
}

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("E-mail", |member| {
            let segments = ["companies", &company, "members", &plain(&member["id"])];
            match session.me.may("members.write") {
                true => Cell::link(session.href(&segments, &[]), &member["email"]),
                false => Cell::text(&member["email"]),
            }
        }),
        column("Role", role),
        column("State", |member| Cell::state(&member["state"])),
        column("Last seen", |member| Cell::time(&member["last_seen_at"])),
        column("Invited", |member| Cell::time(&member["created_at"])),
    ];
    let list = List {
        title: "Team",
        source: &["companies", &company, "members"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "The company has no members.",
    };
    let fields = vec![
        Field::required("email", "E-mail address", "email"),
        Field::choice("role", "Role", ROLES),
    ];
    let action = session.href(&["companies", &company, "members"], &[]);
    let texts = ("Invite a person", "Send the invitation");
    let form = FieldsForm::new(&session, "members.write", texts, action, fields);
    list.show_with(&session, &company, &sent, form).await
}

pub async fn create(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let body = json!({ "email": sent.text("email"), "role": sent.text("role") });
    session.post(&["companies", &company, "members"], &body).await?;
    session.redirect(&["companies", &company, "members"])
}

/// Shows one member, with what can be changed.
pub async fn show(session: Session, Path((company, id)): Path<(String, String)>) -> PageResult {
    let members = session.get(&["companies", &company, "members"], &[]).await?;
    let found = members.as_array().into_iter().flatten().find(|member| member["id"] == *id);
    let Some(member) = found else { return Err(not_found().await) };
    let page = |action: &str| session.href(&["companies", &company, "members", &id, action], &[]);
    let button = |label, question, action: &str| {
        session.button("members.write", label, question, page(action))
    };
    let columns = [
        column("Role", role),
        column("State", |member| Cell::state(&member["state"])),
        column("Last seen", |member| Cell::time(&member["last_seen_at"])),
        column("", |member| match plain(&member["state"]).as_str() {
            "inactive" => Cell::Empty,
            _ => {
                let question = "All sessions of the person end. The e-mail has a link to set a \
                                new password.";
                button("Invite again", question, "invite")
            }
        }),
        column("", |member| match plain(&member["state"]).as_str() {
            "inactive" => button("Activate", "", "activate"),
            _ => button("Deactivate", "All sessions of the person end.", "deactivate"),
        }),
    ];
    let href = session.href(&["companies", &company, "members"], &[]);
    let texts = ("Change the role", "Change the role");
    let fields = vec![Field::choice("role", "Role", ROLES)];
    render(&ListPage {
        frame: Frame::of_company(&session, &company, "Team", plain(&member["email"])),
        parent: Some(Parent { href, label: "Team".to_owned() }),
        form: FieldsForm::new(&session, "members.write", texts, page("role"), fields),
        filters: Vec::new(),
        views: None,
        table: Table::new("Member", &json!([member]), &columns, ""),
    })
}

/// Invites, activates or deactivates a member, or changes the member's role.
pub async fn act(
    session: Session,
    Path((company, id, action)): Path<(String, String, String)>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let path = ["companies", &company, "members", &id];
    match &*action {
        "invite" => session.post(&[&path[..], &["invite"]].concat(), &json!({})).await?,
        "activate" => session.patch(&path, &json!({ "active": true })).await?,
        "deactivate" => session.patch(&path, &json!({ "active": false })).await?,
        "role" => session.patch(&path, &json!({ "role": sent.text("role") })).await?,
        _ => return Err(not_found().await),
    };
    session.redirect(&["companies", &company, "members"])
}
