//! The customers of a company, and everything about one.

use askama::Template;
use axum::extract::Path;
use serde_json::Value;

use super::{payments, recollections};
use crate::{
    api::ApiResult,
    format::{Cell, Column, Table, column, money, plain},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent, company_name,
        lists::{Declared, List, ListQuery, Paging},
    },
    session::Session,
};

const FILTERS: Declared = &[
    ("search", "Name, e-mail, phone or user id", &[]),
    ("active", "Active", &["true", "false"]),
    ("created_at", "Created (DD-MM-YYYY, or from/to)", &[]),
];

/// Maximum number of records of each kind on the page of a customer.
const MOST: &str = "10";

pub async fn list(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let href =
        |user: &Value| session.href(&["companies", &company, "users", &plain(&user["id"])], &[]);
    let columns = vec![
        column("Name", |user| Cell::Link { href: href(user), text: full_name(user) }),
        column("User id", |user| Cell::text(&user["user_id"])),
        column("E-mail", |user| Cell::text(&user["email"])),
        column("Phone", |user| Cell::text(&user["phone"])),
        column("Active", |user| Cell::text(&user["active"])),
        column("Created", |user| Cell::time(&user["created_at"])),
    ];
    let list = List {
        title: "Customers",
        source: &["companies", &company, "users"],
        paging: Paging::NumberedOrKeyset,
        filters: FILTERS,
        columns,
        empty: "There are no such customers.",
    };
    list.show_of_company(&session, &company, &sent).await
}

fn full_name(user: &Value) -> String {
    let names = ["first_name", "middle_name", "last_name"].map(|name| plain(&user[name]));
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ")
}

#[derive(Template)]
#[template(path = "user.html")]
struct UserPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    sections: Vec<Section>,
    /// The page of the identity records, for those who may see them.
    identities: Option<String>,
}

/// The records of one kind of a customer.
struct Section {
    heading: &'static str,
    table: Table,
    /// The list of all these records.
    all: Option<String>,
}

pub async fn show(session: Session, Path((company, id)): Path<(String, String)>) -> PageResult {
    let user = session.get(&["companies", &company, "users", &id], &[]).await?;
    let customer = Customer { session: &session, company: &company, id: &id };
    let mut sections = vec![customer.payments().await?];
    if session.me.may("lending.read") {
        sections.extend([customer.loans().await?, customer.recollections().await?]);
        sections.push(customer.mandates().await?);
    }
    sections.extend([customer.cards().await?, customer.virtual_accounts().await?]);
    if session.me.may("messages.read") {
        for to in ["phone", "email"].map(|address| plain(&user[address])) {
            if !to.is_empty() {
                sections.push(customer.messages(&to).await?);
            }
        }
    }
    let identities = session.me.may("identities.read").then(|| customer.page("identities"));
    let name = full_name(&user);
    render(&UserPage {
        frame: Frame::of_company(&session, &company, "Customers", name),
        parent: Some(customer.parent().await?),
        facts: facts(&user),
        sections: sections.into_iter().flatten().collect(),
        identities,
    })
}

fn facts(user: &Value) -> Vec<Fact> {
    let verified = |address: &str, verified: &str| match (plain(&user[address]), &user[verified]) {
        (text, _) if text.is_empty() => Cell::Empty,
        (text, Value::Bool(true)) => Cell::Text(format!("{text} (verified)")),
        (text, _) => Cell::Text(text),
    };
    vec![
        ("Id", Cell::code(&user["id"])),
        ("User id", Cell::text(&user["user_id"])),
        ("E-mail", verified("email", "email_verified")),
        ("Phone", verified("phone", "phone_verified")),
        ("Country", Cell::text(&user["country"])),
        ("Active", Cell::text(&user["active"])),
        ("Created", Cell::time(&user["created_at"])),
        ("Updated", Cell::time(&user["updated_at"])),
    ]
}

/// A customer whose records are fetched.
struct Customer<'c> {
    session: &'c Session,
    company: &'c str,
    id: &'c str,
}

impl Customer<'_> {
    fn page(&self, page: &str) -> String {
        self.session.href(&["companies", self.company, "users", self.id, page], &[])
    }

    async fn parent(&self) -> ApiResult<Parent> {
        let name = company_name(self.session, self.company).await?;
        let href = self.session.href(&["companies", self.company, "users"], &[]);
        Ok(Parent { href, label: format!("Customers of {name}") })
    }

    /// Returns the records of this customer in a list of the company; `None` if there are none.
    async fn of_list(
        &self,
        heading: &'static str,
        list: &str,
        filter: (&str, &str),
        columns: &[Column<'_>],
    ) -> ApiResult<Option<Section>> {
        let query = [filter, ("limit", MOST)];
        let found = self.session.get(&["companies", self.company, list], &query).await?;
        let all = self.session.href(&["companies", self.company, list], &[filter]);
        Ok(section(heading, &found["docs"], columns, Some(all)))
    }

    /// Returns the records under the path of this customer.
    async fn of_user(
        &self,
        heading: &'static str,
        list: &str,
        columns: &[Column<'_>],
    ) -> ApiResult<Option<Section>> {
        let source = ["companies", self.company, "users", self.id, list];
        Ok(section(heading, &self.session.get(&source, &[]).await?, columns, None))
    }

    async fn payments(&self) -> ApiResult<Option<Section>> {
        if !self.session.me.may("payments.read") {
            return Ok(None);
        }
        let columns = payments::columns(self.session, self.company);
        self.of_list("Payments", "payments", ("user_id", self.id), &columns).await
    }

    async fn recollections(&self) -> ApiResult<Option<Section>> {
        let columns = recollections::columns(self.session, self.company);
        self.of_list("Repayments", "recollections", ("user_id", self.id), &columns).await
    }

    async fn messages(&self, to: &str) -> ApiResult<Option<Section>> {
        let columns = super::messages::columns();
        let heading = if to.contains('@') { "E-mails" } else { "Text messages" };
        self.of_list(heading, "messages", ("to", to), &columns).await
    }

    async fn loans(&self) -> ApiResult<Option<Section>> {
        let columns = [
            column("Loan", |loan| Cell::code(&loan["id"])),
            money("Amount", "amount", "currency"),
            money("Repaid", "amount_paid", "currency"),
            money("Outstanding", "amount_remaining_to_pay", "currency"),
            column("Next due date", |loan| Cell::time(&loan["next_pay_date"])),
            column("Paid", |loan| Cell::text(&loan["paid"])),
        ];
        self.of_user("Loans", "loans", &columns).await
    }

    async fn cards(&self) -> ApiResult<Option<Section>> {
        let columns = [
            column("Card", |card| {
                let of = |field: &str| plain(&card["card"][field]);
                Cell::Text(format!("{} •••• {}", of("card_type"), of("last_4_digits")))
            }),
            column("Bank", |card| Cell::text(&card["card"]["bank"])),
            column("Expires", |card| {
                let of = |field: &str| plain(&card["card"][field]);
                Cell::Text(format!("{}/{}", of("exp_month"), of("exp_year")))
            }),
            column("Valid", |card| Cell::text(&card["valid"])),
            column("Default", |card| Cell::text(&card["default"])),
            column("Provider", |card| Cell::text(&card["payment_service"])),
            column("Saved", |card| Cell::time(&card["created_at"])),
        ];
        self.of_user("Cards", "cards", &columns).await
    }

    async fn mandates(&self) -> ApiResult<Option<Section>> {
        let columns = [
            column("Direct debit", |mandate| Cell::code(&mandate["id"])),
            column("Status", |mandate| Cell::text(&mandate["status"])),
            column("Bank", |mandate| Cell::text(&mandate["bank"])),
            column("Default", |mandate| Cell::text(&mandate["default"])),
            column("Provider", |mandate| Cell::text(&mandate["payment_service"])),
            column("Created", |mandate| Cell::time(&mandate["created_at"])),
        ];
        self.of_user("Direct debits", "direct-debits", &columns).await
    }

    async fn virtual_accounts(&self) -> ApiResult<Option<Section>> {
        let columns = [
            column("Account number", |account| Cell::code(&account["account_number"])),
            column("Bank", |account| Cell::text(&account["bank"])),
            column("Loan", |account| Cell::text(&account["loan"])),
            column("Provider", |account| Cell::text(&account["payment_service"])),
            column("Opened", |account| Cell::time(&account["created_at"])),
        ];
        self.of_user("Virtual accounts", "virtual-accounts", &columns).await
    }
}

fn section(
    heading: &'static str,
    records: &Value,
    columns: &[Column<'_>],
    all: Option<String>,
) -> Option<Section> {
    let is_empty = records.as_array().is_none_or(Vec::is_empty);
    let table = || Table::new(heading, records, columns, "");
    (!is_empty).then(|| Section { heading, table: table(), all })
}

#[derive(Template)]
#[template(path = "identities.html")]
struct IdentitiesPage {
    frame: Frame,
    parent: Option<Parent>,
    records: Vec<(String, Vec<Fact>, Cell)>,
}

/// Shows the identity records of a customer. The audit log records who did so.
pub async fn identities(
    session: Session,
    Path((company, id)): Path<(String, String)>,
) -> PageResult {
    let source = ["companies", &company, "users", &id, "identities"];
    let found = session.get(&source, &[]).await?;
    let customer = Customer { session: &session, company: &company, id: &id };
    let records = found.as_array().into_iter().flatten().map(|record| {
        let facts = vec![
            ("Verified", Cell::text(&record["verified"])),
            ("Verified by", Cell::text(&record["verified_by"])),
            ("E-mail", Cell::text(&record["email"])),
            ("Phone", Cell::text(&record["phone_number"])),
            ("Looked up", Cell::time(&record["created_at"])),
            ("Expires", Cell::time(&record["expires_at"])),
        ];
        (plain(&record["identity_name"]), facts, Cell::pairs(&record["details"]))
    });
    render(&IdentitiesPage {
        frame: Frame::of_company(&session, &company, "Customers", "Identity records"),
        parent: Some(Parent { href: customer.page(""), label: "The customer".to_owned() }),
        records: records.collect(),
    })
}
