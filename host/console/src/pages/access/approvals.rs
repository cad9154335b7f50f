//! Actions that a second operator must approve.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use crate::{
    format::{Cell, column, plain},
    page::PageResult,
    pages::{
        Form, company_cell,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[("state", "State", &["pending", "approved", "rejected", "used"])];

pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let button = |approval: &Value, decision: &str, label: &'static str| {
        let segments = ["approvals", &plain(&approval["id"]), decision];
        match approval["state"] == "pending" {
            true => session.button("approvals.decide", label, "", session.href(&segments, &[])),
            false => Cell::Empty,
        }
    };
    let columns = vec![
        column("Requested", |approval| Cell::time(&approval["requested_at"])),
        column("By", |approval| Cell::text(&approval["requested_by"])),
        column("Action", |approval| Cell::text(&approval["action"])),
        column("Company", |approval| company_cell(&session, &approval["company"])),
        column("Detail", |approval| Cell::pairs(&approval["detail"])),
        column("State", |approval| Cell::state(&approval["state"])),
        column("Decided by", |approval| Cell::text(&approval["decided_by"])),
        column("", |approval| button(approval, "approve", "Approve")),
        column("", |approval| button(approval, "reject", "Reject")),
    ];
    let list = List {
        title: "Approvals",
        source: &["approvals"],
        paging: Paging::Numbered,
        filters: FILTERS,
        columns,
        empty: "There are no such approvals.",
    };
    list.show(&session, &sent).await
}

pub async fn decide(
    session: Session,
    Path((approval, decision)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.post(&["approvals", &approval, &decision], &json!({})).await?;
    session.redirect(&["approvals"])
}
