//! Disputes: claims of payers, through their banks, against charges.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use crate::{
    form::{Field, FieldsForm, Sent},
    format::{Cell, Column, column, money, plain},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent, charge_cell, company_cell, company_frame,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[("state", "State", &["open", "answered", "won", "lost"])];

fn columns(session: &Session) -> Vec<Column<'_>> {
    vec![
        column("Opened", |dispute| Cell::time(&dispute["opened_at"])),
        column("Answer by", |dispute| Cell::time(&dispute["due_at"])),
        column("State", |dispute| Cell::state(&dispute["state"])),
        money("Amount", "amount", "currency"),
        column("Reason", |dispute| Cell::text(&dispute["reason"])),
        column("Provider", |dispute| Cell::text(&dispute["payment_service"])),
        column("Reference", |dispute| {
            let [company, id] = ["company", "id"].map(|field| plain(&dispute[field]));
            let href = session.href(&["companies", &company, "disputes", &id], &[]);
            let reference = match &dispute["reference"] {
                Value::Null => &dispute["service_ref"],
                reference => reference,
            };
            Cell::link(href, reference)
        }),
    ]
}

/// Lists the disputes of all companies.
pub async fn list(session: Session, sent: ListQuery) -> PageResult {
    let mut columns = columns(&session);
    columns.push(column("Company", |dispute| company_cell(&session, &dispute["company"])));
    let list = List {
        title: "Disputes",
        source: &["disputes"],
        paging: Paging::Cursor("disputes"),
        filters: FILTERS,
        columns,
        empty: "There are no such disputes.",
    };
    list.show(&session, &sent).await
}

pub async fn list_of_company(
    session: Session,
    Path(company): Path<String>,
    sent: ListQuery,
) -> PageResult {
    let list = List {
        title: "Disputes",
        source: &["companies", &company, "disputes"],
        paging: Paging::Cursor("disputes"),
        filters: FILTERS,
        columns: columns(&session),
        empty: "There are no such disputes.",
    };
    list.show_of_company(&session, &company, &sent).await
}

#[derive(Template)]
#[template(path = "dispute.html")]
struct DisputePage {
    frame: Frame,
    parent: Option<Parent>,
    amount: Cell,
    state: Cell,
    facts: Vec<Fact>,
    /// The forms that contest and accept the dispute, while it is open.
    forms: Vec<FieldsForm>,
}

pub async fn show(session: Session, Path((company, id)): Path<(String, String)>) -> PageResult {
    let dispute = session.get(&["companies", &company, "disputes", &id], &[]).await?;
    let href = session.href(&["companies", &company, "disputes"], &[]);
    let is_open = dispute["state"] == "open";
    render(&DisputePage {
        frame: company_frame(&session, &company, "Disputes").await?,
        parent: Some(Parent { href, label: "Disputes".to_owned() }),
        amount: Cell::money(&dispute["amount"], &dispute["currency"]),
        state: Cell::state(&dispute["state"]),
        facts: facts(&session, &company, &dispute),
        forms: if is_open { forms(&session, &company, &id) } else { Vec::new() },
    })
}

fn facts(session: &Session, company: &str, dispute: &Value) -> Vec<Fact> {
    let reference = match &dispute["reference"] {
        Value::Null => &dispute["service_ref"],
        reference => reference,
    };
    vec![
        ("Payment", charge_cell(session, dispute, company, reference)),
        ("Provider", Cell::text(&dispute["payment_service"])),
        ("Id at the provider", Cell::code(&dispute["provider_id"])),
        ("Reason", Cell::text(&dispute["reason"])),
        ("Opened", Cell::time(&dispute["opened_at"])),
        ("Answer by", Cell::time(&dispute["due_at"])),
        ("Answered", Cell::time(&dispute["answered_at"])),
        ("Ended", Cell::time(&dispute["closed_at"])),
        ("Held until the dispute ends", Cell::money(&dispute["held"], &dispute["currency"])),
    ]
}

fn forms(session: &Session, company: &str, id: &str) -> Vec<FieldsForm> {
    let form = |action: &'static str, texts, fields| {
        let href = session.href(&["companies", company, "disputes", id, action], &[]);
        FieldsForm::new(session, "disputes.answer", texts, href, fields)
    };
    let contest = vec![
        Field::lines("message", "Message to the bank"),
        Field::required("customer_name", "Name of the customer", "text"),
        Field::required("customer_email", "E-mail address of the customer", "email"),
        Field::text(
            "customer_phone", "Phone number of the customer", "With the country code, +234…",
        ),
        Field::lines("service", "Goods or service that the customer received"),
        Field::text("document_url", "Link to a document", "For example a receipt or an agreement."),
    ];
    let accept = vec![Field::lines("message", "Message to the bank")];
    let forms = [
        form("contest", ("Contest the dispute", "Send the evidence"), contest),
        form("accept", ("Accept the dispute", "Return the disputed amount to the payer"), accept),
    ];
    forms.into_iter().flatten().collect()
}

/// Contests or accepts a dispute.
pub async fn answer(
    session: Session,
    Path((company, id, action)): Path<(String, String, String)>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let body = json!({
        "action": action, "message": sent.text("message"),
        "customer_name": sent.optional("customer_name"),
        "customer_email": sent.optional("customer_email"),
        "customer_phone": sent.optional("customer_phone"),
        "service": sent.optional("service"),
        "document_url": sent.optional("document_url"),
    });
    session.post(&["companies", &company, "disputes", &id, "answer"], &body).await?;
    session.redirect(&["companies", &company, "disputes", &id])
}
