//! Users by what they are narrowed to, in an order.

use std::collections::HashMap;

use super::User;
use crate::{
    listing::{Order, Page, Period},
    store::{Assembled, Result, Tx, Value},
};

/// What a list is narrowed to; what is empty or `None` asks nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In lower case; each must stand somewhere in what users are searched by.
    pub words: Vec<String>,
    pub id: Option<String>,
    pub user_id: Option<String>,
    pub active: Option<bool>,
    pub email_verified: Option<bool>,
    pub phone_verified: Option<bool>,
    /// In lower case.
    pub country: Option<String>,
    /// The first and the last day of birth, `YYYY-MM-DD`; not every such text need be a date.
    pub born: Option<[String; 2]>,
    pub years_of_employment: Option<[i64; 2]>,
    /// For each key, the [`digests`](super::search::digests) of which one must be there.
    pub metadata: Vec<Vec<String>>,
    pub created: Option<Period>,
    /// Whether nobody fits, whatever the rest says.
    pub nobody: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Created(Order),
    Updated(Order),
    FirstName(Order),
    LastName(Order),
}

/// A place in a list, right behind a user.
#[derive(Clone, Debug)]
pub struct Place {
    key: Value,
    id: String,
}

impl Sort {
    fn order(self) -> Order {
        let (Sort::Created(order)
        | Sort::Updated(order)
        | Sort::FirstName(order)
        | Sort::LastName(order)) = self;
        order
    }

    /// By what the rows are put in order, behind which their ids settle it.
    fn order_by(self) -> &'static str {
        match self {
            Sort::Created(Order::Ascending) => " ORDER BY created_at, id",
            Sort::Created(Order::Descending) => " ORDER BY created_at DESC, id DESC",
            Sort::Updated(Order::Ascending) => " ORDER BY updated_at, id",
            Sort::Updated(Order::Descending) => " ORDER BY updated_at DESC, id DESC",
            Sort::FirstName(Order::Ascending) => " ORDER BY first_name, id",
            Sort::FirstName(Order::Descending) => " ORDER BY first_name DESC, id DESC",
            Sort::LastName(Order::Ascending) => " ORDER BY last_name, id",
            Sort::LastName(Order::Descending) => " ORDER BY last_name DESC, id DESC",
        }
    }

    fn behind(self) -> &'static str {
        match (self, self.order()) {
            (Sort::Created(_), Order::Ascending) => " AND (created_at, id) > (",
            (Sort::Created(_), Order::Descending) => " AND (created_at, id) < (",
            (Sort::Updated(_), Order::Ascending) => " AND (updated_at, id) > (",
            (Sort::Updated(_), Order::Descending) => " AND (updated_at, id) < (",
            (Sort::FirstName(_), Order::Ascending) => " AND (first_name, id) > (",
            (Sort::FirstName(_), Order::Descending) => " AND (first_name, id) < (",
            (Sort::LastName(_), Order::Ascending) => " AND (last_name, id) > (",
            (Sort::LastName(_), Order::Descending) => " AND (last_name, id) < (",
        }
    }

    /// The place behind a user in this order.
    #[must_use]
    pub fn place(self, user: &User) -> Place {
        let key = match self {
            Sort::Created(_) => user.created_at.into(),
            Sort::Updated(_) => user.updated_at.into(),
            Sort::FirstName(_) => user.first_name.as_str().into(),
            Sort::LastName(_) => user.last_name.as_str().into(),
        };
        Place { key, id: user.id.clone() }
    }
}

/// How many users fit.
pub async fn count(tx: &mut Tx, company_id: &str, filter: &Filter) -> Result<i64> {
    let (total,) = tx.assembled(&counting(company_id, filter)).one().await?;
    Ok(total)
}

/// A page of those that fit.
pub async fn page(
    tx: &mut Tx,
    company_id: &str,
    filter: &Filter,
    sort: Sort,
    page: Page,
) -> Result<Vec<User>> {
    tx.assembled(&paging(company_id, filter, sort, page)).all().await
}

/// How the engine counts those that fit, how it finds a page of them, and users by their ids: for whoever measures.
pub async fn explain(
    tx: &mut Tx,
    company_id: &str,
    filter: &Filter,
    sort: Sort,
    page: Page,
) -> Result<[Vec<String>; 3]> {
    let counting = tx.explain(&counting(company_id, filter)).await?;
    let paging = tx.explain(&paging(company_id, filter, sort, page)).await?;
    let ids: Vec<String> = (0..20).map(|n| format!("{n:024x}")).collect();
    Ok([counting, paging, tx.explain(&among(company_id, &ids)).await?])
}

/// The ids of up to `most` of those that fit, from a place on, in order.
pub async fn ids(
    tx: &mut Tx,
    company_id: &str,
    filter: &Filter,
    sort: Sort,
    place: Option<&Place>,
    most: i64,
) -> Result<Vec<String>> {
    let mut sql = narrowed(Assembled::default().then("SELECT id"), company_id, filter);
    if let Some(place) = place {
        sql = sql.then(sort.behind()).value(place.key.clone()).then(", ");
        sql = sql.value(place.id.as_str()).then(")");
    }
    let ids: Vec<(String,)> =
        tx.assembled(&sql.then(sort.order_by()).then(" LIMIT ").value(most)).all().await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// The users of these ids, in the order of the ids; one that is not there is left out.
pub async fn of_ids(tx: &mut Tx, company_id: &str, ids: &[String]) -> Result<Vec<User>> {
    let users: Vec<User> = tx.assembled(&among(company_id, ids)).all().await?;
    let mut users: HashMap<String, User> =
        users.into_iter().map(|user| (user.id.clone(), user)).collect();
    Ok(ids.iter().filter_map(|id| users.remove(id)).collect())
}

/// Not in order: an engine that has an index in that order would walk all of it.
fn among(company_id: &str, ids: &[String]) -> Assembled {
    Assembled::default()
        .then("SELECT * FROM users WHERE company_id = ")
        .value(company_id)
        .then(" AND id")
        .among(ids)
}

fn counting(company_id: &str, filter: &Filter) -> Assembled {
    narrowed(Assembled::default().then("SELECT COUNT(*)"), company_id, filter)
}

/// The ids are found first: by an index alone, in which rows are short.
fn paging(company_id: &str, filter: &Filter, sort: Sort, page: Page) -> Assembled {
    let select = Assembled::default().then("SELECT listed.* FROM (SELECT id AS found");
    narrowed(select, company_id, filter)
        .then(sort.order_by())
        .then(" LIMIT ")
        .value(page.limit)
        .then(" OFFSET ")
        .value(page.offset())
        .then(") page CROSS JOIN users listed WHERE id = found AND company_id = ")
        .value(company_id)
        .then(sort.order_by())
}

/// The select with all that narrows it.
fn narrowed(select: Assembled, company_id: &str, filter: &Filter) -> Assembled {
    let mut sql = select.then(" FROM users WHERE company_id = ").value(company_id);
    if filter.nobody {
        sql = sql.then(" AND FALSE");
    }
    for (condition, text) in [
        (" AND id = ", &filter.id),
        (" AND user_id = ", &filter.user_id),
        (" AND country = ", &filter.country),
    ] {
        if let Some(text) = text {
            sql = sql.then(condition).value(text.as_str());
        }
    }
    for (condition, flag) in [
        (" AND active = ", filter.active),
        (" AND email_verified = ", filter.email_verified),
        (" AND phone_verified = ", filter.phone_verified),
    ] {
        if let Some(flag) = flag {
            sql = sql.then(condition).value(flag);
        }
    }
    if let Some([first, last]) = &filter.born {
        sql = sql.then(" AND date_of_birth >= ").value(first.as_str());
        sql = sql.then(" AND date_of_birth <= ").value(last.as_str());
    }
    if let Some([least, most]) = filter.years_of_employment {
        sql = sql.then(" AND years_of_employment BETWEEN ").value(least).then(" AND ").value(most);
    }
    if let Some(Period { from, before }) = filter.created {
        sql = sql.then(" AND created_at >= ").value(from).then(" AND created_at < ").value(before);
    }
    for digests in &filter.metadata {
        sql = with_metadata(sql, company_id, digests);
    }
    with_words(sql, company_id, &filter.words)
}

fn with_metadata(sql: Assembled, company_id: &str, digests: &[String]) -> Assembled {
    sql.then(" AND id IN (SELECT id FROM user_metadata WHERE company_id = ")
        .value(company_id)
        .then(" AND digest")
        .among(digests)
        .then(")")
}

/// The index is one of three letters in a row; what is shorter is looked for in all that is left.
fn with_words(mut sql: Assembled, company_id: &str, words: &[String]) -> Assembled {
    let (long, short): (Vec<&String>, _) = words.iter().partition(|word| word.chars().count() >= 3);
    for (found_in, words) in [
        (" AND id IN (SELECT id FROM user_phrases WHERE company_id = ", long),
        (" AND id IN (SELECT id FROM user_words WHERE company_id = ", short),
    ] {
        if words.is_empty() {
            continue;
        }
        sql = sql.then(found_in).value(company_id);
        for word in words {
            sql = with_word(sql, word);
        }
        sql = sql.then(")");
    }
    sql
}

/// SQLite finds no pattern with an escape by its index: one without, which fits more than the word, narrows it down first.
fn with_word(mut sql: Assembled, word: &str) -> Assembled {
    let special = ['%', '_', '\\', '!'];
    sql = sql.then(" AND words LIKE ").value(format!("%{}%", word.replace(special, "_")));
    if word.contains(special) {
        let mut exact = String::new();
        for c in word.chars() {
            exact.extend(special.contains(&c).then_some('!'));
            exact.push(c);
        }
        sql = sql.then(" AND words LIKE ").value(format!("%{exact}%")).then(" ESCAPE '!'");
    }
    sql
}
