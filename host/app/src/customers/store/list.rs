//! Queries for lists of users.

use std::collections::HashMap;

use super::{User, UserKey};
use crate::{
    customers::{ROLE, api::UserFilter},
    state::storage::*,
};

/// Maximum number of matches that are sorted for a page.
const MAX_SORTED: i64 = 10_000;
/// Number of matches per item up to a page's end above which following the index of the order is
/// faster: if the matches are spread evenly, an early page reads at most 2% of the users.
const MATCHES_PER_ITEM: i64 = 50;

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
    after: Option<&User>,
) -> Result<ListPage<User>> {
    let total: ListTotal = tx.dynamic(&total_query(company_id, filter)).one().await?;
    tx.list_counted(total, page, |_| page_query(company_id, filter, page, after, total.number))
        .await
}

/// Returns the query plans for counting, paging and lookup by ids, for tests.
pub async fn explain(
    tx: &mut Tx,
    company_id: &CompanyId,
    filter: &UserFilter,
    page: PageRequest,
) -> Result<[Vec<String>; 3]> {
    let counting = total_query(company_id, filter);
    let total: ListTotal = tx.dynamic(&counting).one().await?;
    let counting = tx.explain(&counting).await?;
    let paging = tx.explain(&page_query(company_id, filter, page, None, total.number)).await?;
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
    let (mut sql, sort) = (select_in_order("SELECT id", company_id, filter), filter.sort());
    if let Some(last) = last {
        sql = sort.append_after(sql, last);
    }
    let sql = sort.append_order(sql).append(" LIMIT ").bind(most);
    tx.dynamic(&sql).values().await
}

/// Returns users in the order of `ids`. Missing users are omitted.
pub async fn find_by_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    ids: &[UserKey],
) -> Result<Vec<User>> {
    let Some(last) = ids.last() else { return Ok(Vec::new()) };
    // Pads to few lengths: each is a separate statement in the connection's cache.
    let padding = ids.len().next_power_of_two() - ids.len();
    let ids: Vec<_> = ids.iter().chain(std::iter::repeat_n(last, padding)).cloned().collect();
    let ids = &*ids;
    let users: Vec<User> = tx.dynamic(&ids_query(company_id, ids)).all().await?;
    let mut users: HashMap<UserKey, User> =
        users.into_iter().map(|user| (user.id.clone(), user)).collect();
    Ok(ids.iter().filter_map(|id| users.remove(id)).collect())
}

/// Unordered: for an order that an index has, an engine might scan the whole index.
fn ids_query(company_id: &CompanyId, ids: &[UserKey]) -> DynamicStatement {
    DynamicStatement::from("SELECT * FROM users WHERE company_id = ")
        .bind(company_id)
        .append(" AND id")
        .append_in(ids)
}

fn total_query(company_id: &CompanyId, filter: &UserFilter) -> DynamicStatement {
    match Search::of(filter) {
        None if !filter.has_uncounted_columns() => {
            with_counted_columns(select_total(company_id, "users"), filter)
                .append_period([" AND day >= ", " AND day < "], filter.created())
        }
        Some(Search { source, words: [], metadata: [] }) if !filter.has_columns() => {
            source.complete(SELECT_COUNT.into(), source.tables()[0], company_id)
        }
        _ => select_matching(SELECT_COUNT.into(), company_id, filter),
    }
}

/// Selects ids first, from an index alone, whose rows are short. Sorts the matches if they are few;
/// otherwise follows the index of the order until the page is full.
fn page_query(
    company_id: &CompanyId,
    filter: &UserFilter,
    page: PageRequest,
    after: Option<&User>,
    total: i64,
) -> DynamicStatement {
    let sort = filter.sort();
    let end = page.offset().saturating_add(page.limit);
    let is_selective = Search::of(filter).is_some() || filter.is_selective();
    let few = MAX_SORTED.min(end.saturating_mul(MATCHES_PER_ITEM));
    let sql = if is_selective && total <= few {
        let matching = "WITH matching AS MATERIALIZED (SELECT users.id, users.";
        let matching = DynamicStatement::from(matching).append(sort.column().0);
        select_matching(matching, company_id, filter)
            .append(") SELECT listed.* FROM (SELECT id AS found FROM matching WHERE TRUE")
    } else {
        select_in_order("SELECT listed.* FROM (SELECT id AS found", company_id, filter)
    };
    let sql = match after {
        Some(user) => sort.append_after(sql, user),
        None => sql,
    };
    let sql = sort.append_order(sql).append(" LIMIT ").bind(page.items_to_read());
    let sql = sql.append(" OFFSET ").bind(page.offset());
    let sql = sql.append(") page CROSS JOIN users listed WHERE id = found AND company_id = ");
    sort.append_order(sql.bind(company_id))
}

/// The words and metadata that a query looks for.
struct Search<'f> {
    source: Source<'f>,
    /// Words and metadata to look up for each row of the source.
    words: &'f [String],
    metadata: &'f [Vec<String>],
}

/// The index with which a query begins.
enum Source<'f> {
    /// Words in the index of trigrams.
    Phrases(&'f [String]),
    /// Digests of a metadata value.
    Metadata(&'f [String]),
    /// Words that are too short for trigrams: they are searched in all rows.
    Words(&'f [String]),
}

impl<'f> Search<'f> {
    /// Returns `None` if the filter has no words and no metadata.
    fn of(filter: &'f UserFilter) -> Option<Search<'f>> {
        // The longest words are first.
        let phrases = filter.search.partition_point(|word| word.chars().count() >= 3);
        let (phrases, words) = filter.search.split_at(phrases);
        let (source, words, metadata) = match (phrases, &*filter.metadata, words) {
            ([_, ..], metadata, _) => (Source::Phrases(phrases), words, metadata),
            ([], [first, metadata @ ..], _) => (Source::Metadata(first), words, metadata),
            ([], [], [_, ..]) => (Source::Words(words), &[][..], &[][..]),
            ([], [], []) => return None,
        };
        Some(Search { source, words, metadata })
    }
}

impl Source<'_> {
    /// Returns the tables of a query: the index alone, and with the users.
    fn tables(&self) -> [&'static str; 2] {
        match self {
            Source::Phrases(_) => [
                " FROM user_phrases source WHERE source.company_id = ",
                " FROM user_phrases source CROSS JOIN users WHERE source.company_id = ",
            ],
            Source::Metadata(_) => [
                " FROM user_metadata source WHERE source.company_id = ",
                " FROM user_metadata source CROSS JOIN users WHERE source.company_id = ",
            ],
            Source::Words(_) => [
                " FROM user_words source WHERE source.company_id = ",
                " FROM user_words source CROSS JOIN users WHERE source.company_id = ",
            ],
        }
    }

    /// Completes a `SELECT` with tables and the conditions for the index.
    fn complete(
        &self,
        select: DynamicStatement,
        tables: &'static str,
        company_id: &CompanyId,
    ) -> DynamicStatement {
        let sql = select.append(tables).bind(company_id);
        match self {
            Source::Phrases(words) | Source::Words(words) => with_words(sql, words),
            Source::Metadata(digests) => sql.append(" AND digest").append_in(digests),
        }
    }
}

/// Completes a `SELECT` with the matching users. SQLite keeps the order of a cross join.
fn select_matching(
    select: DynamicStatement,
    company_id: &CompanyId,
    filter: &UserFilter,
) -> DynamicStatement {
    let Some(Search { source, words, metadata }) = Search::of(filter) else {
        let sql = select.append(" FROM users WHERE users.company_id = ").bind(company_id);
        return with_columns(sql, filter);
    };
    let sql = source.complete(select, source.tables()[1], company_id);
    let sql = sql.append(" AND users.id = source.id AND users.company_id = ").bind(company_id);
    with_columns(with_entries(sql, words, metadata), filter)
}

/// Like [`select_matching`], but without an order of joins: words and metadata are looked up for
/// each user.
fn select_in_order(
    select: &'static str,
    company_id: &CompanyId,
    filter: &UserFilter,
) -> DynamicStatement {
    let sql = DynamicStatement::from(select).append(" FROM users WHERE users.company_id = ");
    with_columns(with_entries(sql.bind(company_id), &filter.search, &filter.metadata), filter)
}

/// Appends the conditions for words and metadata.
fn with_entries(
    mut sql: DynamicStatement,
    words: &[String],
    metadata: &[Vec<String>],
) -> DynamicStatement {
    if !words.is_empty() {
        sql = sql.append(
            " AND EXISTS (SELECT 1 FROM user_words w
                 WHERE w.company_id = users.company_id AND w.id = users.id",
        );
        sql = with_words(sql, words).append(")");
    }
    for digests in metadata {
        sql = sql.append(
            " AND EXISTS (SELECT 1 FROM user_metadata m
                 WHERE m.company_id = users.company_id AND m.id = users.id AND m.digest",
        );
        sql = sql.append_in(digests).append(")");
    }
    sql
}

/// Appends the conditions for columns of users.
fn with_columns(sql: DynamicStatement, filter: &UserFilter) -> DynamicStatement {
    let (born, employed) = (filter.birth_dates.as_ref(), filter.years_of_employment);
    with_counted_columns(sql, filter)
        .append_if(" AND users.id = ", filter.id.as_ref())
        .append_if(" AND user_id = ", filter.user_id.as_ref())
        .append_if(" AND date_of_birth >= ", born.map(|[first, _]| first))
        .append_if(" AND date_of_birth <= ", born.map(|[_, last]| last))
        .append_if(" AND years_of_employment >= ", employed.map(|[least, _]| least))
        .append_if(" AND years_of_employment <= ", employed.map(|[_, most]| most))
        .append_period([" AND created_at >= ", " AND created_at < "], filter.created())
}

/// Appends the conditions for columns that `users` and `list_totals` have.
fn with_counted_columns(sql: DynamicStatement, filter: &UserFilter) -> DynamicStatement {
    let has_no_role = filter.role.as_ref().is_some_and(|role| role != ROLE);
    sql.append(if has_no_role { " AND FALSE" } else { "" })
        .append_if(" AND country = ", filter.country.as_ref())
        .append_if(" AND active = ", filter.active)
        .append_if(" AND email_verified = ", filter.email_verified)
        .append_if(" AND phone_verified = ", filter.phone_verified)
}

fn with_words(sql: DynamicStatement, words: &[String]) -> DynamicStatement {
    words.iter().fold(sql, |sql, word| with_word(sql, word))
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
