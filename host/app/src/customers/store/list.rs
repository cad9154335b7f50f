//! Queries for lists of users.

use std::collections::HashMap;

use super::{User, UserKey};
use crate::{
    customers::{ROLE, api::UserFilter},
    state::storage::*,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Created(SortOrder),
    Updated(SortOrder),
    FirstName(SortOrder),
    LastName(SortOrder),
}

impl Sort {
    fn column(self) -> (&'static str, SortOrder) {
        match self {
            Sort::Created(order) => ("created_at", order),
            Sort::Updated(order) => ("updated_at", order),
            Sort::FirstName(order) => ("first_name", order),
            Sort::LastName(order) => ("last_name", order),
        }
    }

    /// Appends the `ORDER BY` clause; ids break ties.
    fn append_order(self, sql: DynamicStatement) -> DynamicStatement {
        let (column, order) = self.column();
        sql.append(" ORDER BY ").append(column).append(match order {
            SortOrder::Ascending => ", id",
            SortOrder::Descending => " DESC, id DESC",
        })
    }

    /// Appends the condition for users after another.
    fn append_after(self, sql: DynamicStatement, user: &User) -> DynamicStatement {
        let (column, order) = self.column();
        let sql = sql.append(" AND (").append(column).append(match order {
            SortOrder::Ascending => ", id) > (",
            SortOrder::Descending => ", id) < (",
        });
        let sql = match self {
            Sort::Created(_) => sql.bind(user.created_at),
            Sort::Updated(_) => sql.bind(user.updated_at),
            Sort::FirstName(_) => sql.bind(&user.first_name),
            Sort::LastName(_) => sql.bind(&user.last_name),
        };
        sql.append(", ").bind(&user.id).append(")")
    }
}

pub async fn list(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &UserFilter,
    page: PageRequest,
) -> Result<ListPage<User>> {
    let total = tx.dynamic(&count_query(company_id, filter)).value().await?;
    let users = tx.dynamic(&page_query(company_id, filter, page)).all().await?;
    Ok(page.to_list_page(total, users))
}

/// Returns the query plans for counting, paging and lookup by ids, for tests.
pub async fn explain(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &UserFilter,
    page: PageRequest,
) -> Result<[Vec<String>; 3]> {
    let counting = tx.explain(&count_query(company_id, filter)).await?;
    let paging = tx.explain(&page_query(company_id, filter, page)).await?;
    let ids: Vec<UserKey> = (0..20).map(|n| format!("{n:024x}").into()).collect();
    Ok([counting, paging, tx.explain(&ids_query(company_id, &ids)).await?])
}

/// Returns the ids of up to `most` matching users after the user `last`, in order.
pub async fn list_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &UserFilter,
    last: Option<&User>,
    most: i64,
) -> Result<Vec<UserKey>> {
    let (mut sql, sort) = (with_filter("SELECT id", company_id, filter), filter.sort());
    if let Some(last) = last {
        sql = sort.append_after(sql, last);
    }
    let sql = sort.append_order(sql).append(" LIMIT ").bind(most);
    tx.dynamic(&sql).values().await
}

/// Returns users in the order of the internal ids. Missing users are omitted.
pub async fn find_by_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    ids: &[UserKey],
) -> Result<Vec<User>> {
    let Some(last) = ids.last() else { return Ok(Vec::new()) };
    // Few lengths: each one is a statement of its own in the cache of the connection.
    let padding = ids.len().next_power_of_two() - ids.len();
    let ids: Vec<_> = ids.iter().chain(std::iter::repeat_n(last, padding)).cloned().collect();
    let ids = &*ids;
    let users: Vec<User> = tx.dynamic(&ids_query(company_id, ids)).all().await?;
    let mut users: HashMap<UserKey, User> =
        users.into_iter().map(|user| (user.id.clone(), user)).collect();
    Ok(ids.iter().filter_map(|id| users.remove(id)).collect())
}

/// Unordered: otherwise an engine with an index in that order would scan all of it.
fn ids_query(company_id: &CompanyId, ids: &[UserKey]) -> DynamicStatement {
    DynamicStatement::from("SELECT * FROM users WHERE company_id = ")
        .bind(company_id)
        .append(" AND id")
        .append_in(ids)
}

fn count_query(company_id: &CompanyId, filter: &UserFilter) -> DynamicStatement {
    with_filter("SELECT COUNT(*)", company_id, filter)
}

/// Selects ids first, by an index alone, whose rows are short.
fn page_query(company_id: &CompanyId, filter: &UserFilter, page: PageRequest) -> DynamicStatement {
    let sort = filter.sort();
    let sql = with_filter("SELECT listed.* FROM (SELECT id AS found", company_id, filter);
    let sql = sort.append_order(sql).append(" LIMIT ").bind(page.limit);
    let sql = sql.append(" OFFSET ").bind(page.offset());
    let sql = sql.append(") page CROSS JOIN users listed WHERE id = found AND company_id = ");
    sort.append_order(sql.bind(company_id))
}

/// Completes a `SELECT` with the conditions of the filter.
fn with_filter(
    select: &'static str,
    company_id: &CompanyId,
    filter: &UserFilter,
) -> DynamicStatement {
    let (born, employed) = (filter.birth_dates.as_ref(), filter.years_of_employment);
    let has_no_role = filter.role.as_ref().is_some_and(|role| role != ROLE);
    let created = filter.date_by.or(filter.created_at);
    let mut sql = DynamicStatement::from(select)
        .append(" FROM users WHERE company_id = ")
        .bind(company_id)
        .append(if has_no_role { " AND FALSE" } else { "" })
        .append_if(" AND id = ", filter.id.as_ref())
        .append_if(" AND user_id = ", filter.user_id.as_ref())
        .append_if(" AND country = ", filter.country.as_ref())
        .append_if(" AND active = ", filter.active)
        .append_if(" AND email_verified = ", filter.email_verified)
        .append_if(" AND phone_verified = ", filter.phone_verified)
        .append_if(" AND date_of_birth >= ", born.map(|[first, _]| first))
        .append_if(" AND date_of_birth <= ", born.map(|[_, last]| last))
        .append_if(" AND years_of_employment >= ", employed.map(|[least, _]| least))
        .append_if(" AND years_of_employment <= ", employed.map(|[_, most]| most))
        .append_period([" AND created_at >= ", " AND created_at < "], created);
    for digests in &filter.metadata {
        sql = sql
            .append(" AND id IN (SELECT id FROM user_metadata WHERE company_id = ")
            .bind(company_id)
            .append(" AND digest")
            .append_in(digests)
            .append(")");
    }
    with_words(sql, company_id, &filter.search)
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
        let found = sql.append(found_in).bind(company_id);
        sql = words.into_iter().fold(found, |sql, word| with_word(sql, word)).append(")");
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
