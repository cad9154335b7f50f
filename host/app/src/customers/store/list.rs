//! Queries for lists of users.

use std::collections::HashMap;

use super::User;
use tollhouse_platform::{
    store::{DynamicStatement, Result, SqlValue, Tx},
    values::{
        id::CompanyId,
        listing::{PageRequest, Period, SortOrder},
    },
};

/// Filter of users; empty and `None` match all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Lower-case words, each of which must occur in the searched fields.
    pub words: Vec<String>,
    pub id: Option<String>,
    pub user_id: Option<String>,
    pub active: Option<bool>,
    pub email_verified: Option<bool>,
    pub phone_verified: Option<bool>,
    /// Lower-case name.
    pub country: Option<String>,
    /// First and last birth date in the form `YYYY-MM-DD`; the bounds need not be valid dates.
    pub birth_dates: Option<[String; 2]>,
    pub years_of_employment: Option<[i64; 2]>,
    /// Alternative [`metadata_digests`](super::search::metadata_digests) for each key, one of which must exist.
    pub metadata: Vec<Vec<String>>,
    pub created: Option<Period>,
    /// Matches no user.
    pub matches_none: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Created(SortOrder),
    Updated(SortOrder),
    FirstName(SortOrder),
    LastName(SortOrder),
}

/// A cursor: the position after a user.
#[derive(Clone, Debug)]
pub struct UserCursor {
    key: SqlValue,
    id: String,
}

impl Sort {
    fn order(self) -> SortOrder {
        let (Sort::Created(order)
        | Sort::Updated(order)
        | Sort::FirstName(order)
        | Sort::LastName(order)) = self;
        order
    }

    /// The `ORDER BY` clause; ids break ties.
    fn order_by(self) -> &'static str {
        match self {
            Sort::Created(SortOrder::Ascending) => " ORDER BY created_at, id",
            Sort::Created(SortOrder::Descending) => " ORDER BY created_at DESC, id DESC",
            Sort::Updated(SortOrder::Ascending) => " ORDER BY updated_at, id",
            Sort::Updated(SortOrder::Descending) => " ORDER BY updated_at DESC, id DESC",
            Sort::FirstName(SortOrder::Ascending) => " ORDER BY first_name, id",
            Sort::FirstName(SortOrder::Descending) => " ORDER BY first_name DESC, id DESC",
            Sort::LastName(SortOrder::Ascending) => " ORDER BY last_name, id",
            Sort::LastName(SortOrder::Descending) => " ORDER BY last_name DESC, id DESC",
        }
    }

    fn after_condition(self) -> &'static str {
        match (self, self.order()) {
            (Sort::Created(_), SortOrder::Ascending) => " AND (created_at, id) > (",
            (Sort::Created(_), SortOrder::Descending) => " AND (created_at, id) < (",
            (Sort::Updated(_), SortOrder::Ascending) => " AND (updated_at, id) > (",
            (Sort::Updated(_), SortOrder::Descending) => " AND (updated_at, id) < (",
            (Sort::FirstName(_), SortOrder::Ascending) => " AND (first_name, id) > (",
            (Sort::FirstName(_), SortOrder::Descending) => " AND (first_name, id) < (",
            (Sort::LastName(_), SortOrder::Ascending) => " AND (last_name, id) > (",
            (Sort::LastName(_), SortOrder::Descending) => " AND (last_name, id) < (",
        }
    }

    /// Returns the cursor after a user.
    #[must_use]
    pub fn cursor_after(self, user: &User) -> UserCursor {
        let key = match self {
            Sort::Created(_) => user.created_at.into(),
            Sort::Updated(_) => user.updated_at.into(),
            Sort::FirstName(_) => user.first_name.as_str().into(),
            Sort::LastName(_) => user.last_name.as_str().into(),
        };
        UserCursor { key, id: user.id.to_string() }
    }
}

pub async fn count(tx: &mut Tx, company_id: &CompanyId, filter: &Filter) -> Result<i64> {
    let (total,) = tx.dynamic(&count_query(company_id, filter)).one().await?;
    Ok(total)
}

pub async fn list_page(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &Filter,
    sort: Sort,
    page: PageRequest,
) -> Result<Vec<User>> {
    tx.dynamic(&page_query(company_id, filter, sort, page)).all().await
}

/// Returns the query plans for counting, paging and lookup by ids, for benchmarks.
pub async fn explain(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &Filter,
    sort: Sort,
    page: PageRequest,
) -> Result<[Vec<String>; 3]> {
    let counting = tx.explain(&count_query(company_id, filter)).await?;
    let paging = tx.explain(&page_query(company_id, filter, sort, page)).await?;
    let ids: Vec<String> = (0..20).map(|n| format!("{n:024x}")).collect();
    Ok([counting, paging, tx.explain(&ids_query(company_id, &ids)).await?])
}

/// Returns the ids of up to `most` matching users after `place`, in order.
pub async fn list_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &Filter,
    sort: Sort,
    place: Option<&UserCursor>,
    most: i64,
) -> Result<Vec<String>> {
    let mut sql = with_filter(DynamicStatement::default().append("SELECT id"), company_id, filter);
    if let Some(place) = place {
        sql = sql.append(sort.after_condition()).bind(place.key.clone()).append(", ");
        sql = sql.bind(place.id.as_str()).append(")");
    }
    let ids: Vec<(String,)> =
        tx.dynamic(&sql.append(sort.order_by()).append(" LIMIT ").bind(most)).all().await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// Returns users in the order of the ids. Missing users are omitted.
pub async fn list_by_ids(tx: &mut Tx, company_id: &CompanyId, ids: &[String]) -> Result<Vec<User>> {
    let users: Vec<User> = tx.dynamic(&ids_query(company_id, ids)).all().await?;
    let mut users: HashMap<String, User> =
        users.into_iter().map(|user| (user.id.to_string(), user)).collect();
    Ok(ids.iter().filter_map(|id| users.remove(id)).collect())
}

/// Unordered: otherwise an engine with an index in that order would scan all of it.
fn ids_query(company_id: &CompanyId, ids: &[String]) -> DynamicStatement {
    DynamicStatement::default()
        .append("SELECT * FROM users WHERE company_id = ")
        .bind(company_id)
        .append(" AND id")
        .append_in(ids)
}

fn count_query(company_id: &CompanyId, filter: &Filter) -> DynamicStatement {
    with_filter(DynamicStatement::default().append("SELECT COUNT(*)"), company_id, filter)
}

/// Selects ids first, by an index alone, whose rows are short.
fn page_query(
    company_id: &CompanyId,
    filter: &Filter,
    sort: Sort,
    page: PageRequest,
) -> DynamicStatement {
    let select = DynamicStatement::default().append("SELECT listed.* FROM (SELECT id AS found");
    with_filter(select, company_id, filter)
        .append(sort.order_by())
        .append(" LIMIT ")
        .bind(page.limit)
        .append(" OFFSET ")
        .bind(page.offset())
        .append(") page CROSS JOIN users listed WHERE id = found AND company_id = ")
        .bind(company_id)
        .append(sort.order_by())
}

/// Adds the conditions of the filter.
fn with_filter(
    select: DynamicStatement,
    company_id: &CompanyId,
    filter: &Filter,
) -> DynamicStatement {
    let mut sql = select.append(" FROM users WHERE company_id = ").bind(company_id);
    if filter.matches_none {
        sql = sql.append(" AND FALSE");
    }
    for (condition, text) in [
        (" AND id = ", &filter.id),
        (" AND user_id = ", &filter.user_id),
        (" AND country = ", &filter.country),
    ] {
        if let Some(text) = text {
            sql = sql.append(condition).bind(text.as_str());
        }
    }
    for (condition, flag) in [
        (" AND active = ", filter.active),
        (" AND email_verified = ", filter.email_verified),
        (" AND phone_verified = ", filter.phone_verified),
    ] {
        if let Some(flag) = flag {
            sql = sql.append(condition).bind(flag);
        }
    }
    if let Some([first, last]) = &filter.birth_dates {
        sql = sql.append(" AND date_of_birth >= ").bind(first.as_str());
        sql = sql.append(" AND date_of_birth <= ").bind(last.as_str());
    }
    if let Some([least, most]) = filter.years_of_employment {
        sql =
            sql.append(" AND years_of_employment BETWEEN ").bind(least).append(" AND ").bind(most);
    }
    if let Some(Period { from, before }) = filter.created {
        sql =
            sql.append(" AND created_at >= ").bind(from).append(" AND created_at < ").bind(before);
    }
    for digests in &filter.metadata {
        sql = with_metadata(sql, company_id, digests);
    }
    with_words(sql, company_id, &filter.words)
}

fn with_metadata(
    sql: DynamicStatement,
    company_id: &CompanyId,
    digests: &[String],
) -> DynamicStatement {
    sql.append(" AND id IN (SELECT id FROM user_metadata WHERE company_id = ")
        .bind(company_id)
        .append(" AND digest")
        .append_in(digests)
        .append(")")
}

/// The index holds trigrams; shorter words are searched in all remaining rows.
fn with_words(
    mut sql: DynamicStatement,
    company_id: &CompanyId,
    words: &[String],
) -> DynamicStatement {
    let (long, short): (Vec<&String>, _) = words.iter().partition(|word| word.chars().count() >= 3);
    for (found_in, words) in [
        (" AND id IN (SELECT id FROM user_phrases WHERE company_id = ", long),
        (" AND id IN (SELECT id FROM user_words WHERE company_id = ", short),
    ] {
        if words.is_empty() {
            continue;
        }
        sql = sql.append(found_in).bind(company_id);
        for word in words {
            sql = with_word(sql, word);
        }
        sql = sql.append(")");
    }
    sql
}

/// SQLite cannot use its index for a pattern with an escape: a broader pattern without one narrows
/// the rows first.
fn with_word(mut sql: DynamicStatement, word: &str) -> DynamicStatement {
    let special = ['%', '_', '\\', '!'];
    sql = sql.append(" AND words LIKE ").bind(format!("%{}%", word.replace(special, "_")));
    if word.contains(special) {
        let mut exact = String::new();
        for c in word.chars() {
            exact.extend(special.contains(&c).then_some('!'));
            exact.push(c);
        }
        sql = sql.append(" AND words LIKE ").bind(format!("%{exact}%")).append(" ESCAPE '!'");
    }
    sql
}
