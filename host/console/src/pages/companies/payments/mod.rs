//! The payments of a company, and everything about one.

pub mod disputes;
pub mod routing;
mod timeline;

use askama::Template;
use axum::extract::{Form as FormBody, Path, Query};
use serde::Deserialize;
use serde_json::{Value, json};

use self::timeline::TimelineRow;
use crate::{
    format::{Cell, Column, Table, column, money, plain},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Form, Parent, company_name,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[
    ("status", "State", &["pending", "success", "failed", "refunded"]),
    ("user_id", "User", &[]),
    ("provider", "Provider", &[]),
    ("created_at", "Created (DD-MM-YYYY, or from/to)", &[]),
];

/// The columns of payments of a company.
pub fn columns<'c>(session: &'c Session, company: &'c str) -> Vec<Column<'c>> {
    let href = move |payment: &Value| {
        session.href(&["companies", company, "payments", &plain(&payment["id"])], &[])
    };
    vec![
        column("Reference", move |payment| Cell::link(href(payment), &payment["reference"])),
        column("Payer", |payment| Cell::text(&payment["email"])),
        money("Amount", "amount", "currency"),
        column("State", |payment| Cell::state(&payment["status"])),
        column("Provider", |payment| Cell::text(&payment["payment_service"])),
        column("Created", |payment| Cell::time(&payment["created_at"])),
        column("Paid", |payment| Cell::time(&payment["paid_at"])),
    ]
}

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let list = List {
        title: "Payments",
        source: &["companies", &company, "payments"],
        paging: Paging::NumberedOrKeyset,
        filters: FILTERS,
        columns: columns(&session, &company),
        empty: "There are no such payments.",
    };
    list.show_of_company(&session, &company, &sent).await
}

#[derive(Template)]
#[template(path = "payment.html")]
struct PaymentPage {
    frame: Frame,
    parent: Option<Parent>,
    status: Cell,
    amount: Cell,
    facts: Vec<Fact>,
    routing: Table,
    timeline: Vec<TimelineRow>,
    /// The path to which the buttons post.
    action: String,
    may_verify: bool,
    may_refund: bool,
    already_refunded: String,
    /// The path from which the page of a pending payment refreshes itself.
    refresh: Option<String>,
}

/// Maximum number of refreshes of a page, five seconds apart. It is so small that a page left open
/// does not keep its session alive.
const MAX_REFRESHES: u32 = 120;

#[derive(Deserialize)]
pub struct Shown {
    /// Number of earlier refreshes of the page.
    #[serde(default)]
    refreshes: u32,
}

pub async fn show(
    session: Session,
    Path((company, id)): Path<(String, String)>,
    Query(Shown { refreshes }): Query<Shown>,
) -> PageResult {
    let payment = session.get(&["companies", &company, "payments", &id], &[]).await?;
    let name = company_name(&session, &company).await?;
    let href = session.href(&["companies", &company, "payments"], &[]);
    let status = plain(&payment["status"]);
    let action = session.href(&["companies", &company, "payments", &id], &[]);
    let refreshes_itself = status == "pending" && refreshes < MAX_REFRESHES;
    render(&PaymentPage {
        refresh: refreshes_itself.then(|| format!("{action}?refreshes={}", refreshes + 1)),
        frame: Frame::of_company(&session, &company, "Payments", plain(&payment["reference"])),
        parent: Some(Parent { href, label: format!("Payments of {name}") }),
        status: Cell::state(&payment["status"]),
        amount: Cell::money(&payment["amount"], &payment["currency"]),
        facts: facts(&payment),
        routing: routing::of_record(&session, &company, ("payments", &id)).await?,
        timeline: timeline::fetch(&session, &company, &id).await?,
        action,
        may_verify: session.me.may("payments.verify"),
        may_refund: session.me.may("refunds.write") && status == "success",
        already_refunded: match &payment["refunded"] {
            Value::Null => "0".to_owned(),
            refunded => plain(refunded),
        },
    })
}

fn facts(payment: &Value) -> Vec<Fact> {
    vec![
        ("Id", Cell::code(&payment["id"])),
        ("Payer", Cell::text(&payment["email"])),
        ("User", Cell::text(&payment["user_id"])),
        ("Provider", Cell::text(&payment["payment_service"])),
        ("Service reference", Cell::code(&payment["service_ref"])),
        ("Channel", Cell::text(&payment["payment_channel"])),
        ("Fees", Cell::money(&payment["fees"], &payment["currency"])),
        ("Refunded", Cell::money(&payment["refunded"], &payment["currency"])),
        ("Narration", Cell::text(&payment["narration"])),
        ("Provider message", Cell::text(&payment["message"])),
        ("Created", Cell::time(&payment["created_at"])),
        ("Paid", Cell::time(&payment["paid_at"])),
        ("Updated", Cell::time(&payment["updated_at"])),
    ]
}

/// Verifies a payment with the provider.
pub async fn verify(
    session: Session,
    Path((company, id)): Path<(String, String)>,
    FormBody(form): FormBody<Form>,
) -> PageResult {
    act(&session, [&company, &id, "verify"], form, &json!({})).await
}

/// The form of a refund.
#[derive(Deserialize)]
pub struct RefundForm {
    /// Empty: the remaining amount.
    #[serde(default)]
    amount: String,
    /// The amount that the page showed as refunded.
    #[serde(default)]
    already_refunded: String,
    #[serde(flatten)]
    form: Form,
}

pub async fn refund(
    session: Session,
    Path((company, id)): Path<(String, String)>,
    FormBody(sent): FormBody<RefundForm>,
) -> PageResult {
    let number = |text: &str| match text.trim() {
        "" => Value::Null,
        text => text.parse().map_or_else(|_| json!(text), Value::Number),
    };
    let body = json!({
        "amount": number(&sent.amount),
        "already_refunded": number(&sent.already_refunded),
    });
    act(&session, [&company, &id, "refund"], sent.form, &body).await
}

async fn act(
    session: &Session,
    [company, id, action]: [&str; 3],
    form: Form,
    body: &Value,
) -> PageResult {
    session.check_form(&form.form_token)?;
    session.post(&["companies", company, "payments", id, action], body).await?;
    session.redirect(&["companies", company, "payments", id])
}
