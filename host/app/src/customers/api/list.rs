//! List of users, with the filters of the query string.

use axum::extract::State;
use chrono::{Datelike, NaiveDate};

use super::super::{
    View,
    store::{
        list::{self, Filter, Sort},
        search,
    },
};
use crate::{state::App, tenants::companies::AuthenticatedCompany};
use tollhouse_http::{
    request::{
        fields::{Choice, OneOf, fields},
        query::{
            AscElseDesc, ByKey, Days, Exactly, PageNumber, Query, Range, StrictLimit, Truth, Words,
        },
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::Result,
    values::{
        email::one_line,
        listing::{ListPage, PERIODS, PageRequest, Period, SortOrder},
    },
};

pub struct Named;

impl Choice for Named {
    const ALL: &'static [&'static str] = &PERIODS;
}

fields! {
    /// Page of users.
    Query UserPages {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Users per page.
        limit: StrictLimit<50, 1_000>,
    }
}

fields! {
    /// Filters and order of users.
    Query UserFilter {
        /// Words, ignoring case: each must occur in `user_id`, a name, `email` or `phone`.
        search: Words,
        id: Exactly,
        user_id: Exactly,
        active: Truth,
        email_verified: Truth,
        phone_verified: Truth,
        role: Exactly,
        country: Exactly,
        /// Age in whole years, today in UTC.
        age: Range,
        years_of_employment: Range,
        /// `metadata.KEY`: a text with this value, or a number or boolean written like this.
        #[schemars(extend("propertyNames" = { "pattern": r"^metadata\." }))]
        metadata: ByKey,
        /// One day in UTC, or the first and last day of a range.
        created_at: Days,
        /// Overrides `created_at`; weeks begin on Monday.
        date_by: OneOf<Named>,
        sort_created_at as "sort-created_at": AscElseDesc,
        sort_updated_at as "sort-updated_at": AscElseDesc,
        sort_first_name as "sort-first_name": AscElseDesc,
        sort_last_name as "sort-last_name": AscElseDesc,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    pages: Query<UserPages>,
    query: Query<UserFilter>,
) -> Result<DataResponse<ListPage<View>>> {
    let now = app.clock.now();
    let page = PageRequest { number: pages.page()?, limit: pages.limit()? };
    let (filter, sort) = read_filter(&query, now.to_datetime().date_naive())?;
    let (total, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let total = list::count(tx, &company.id, &filter).await?;
            Ok((total, list::list_page(tx, &company.id, &filter, sort, page).await?))
        })
        .await?;
    let docs = users.into_iter().map(|user| user.view(now)).collect();
    DataResponse::data(page.to_list_page(total, docs), "Users fetched successfully")
}

/// Reads parameters in the order of the specification, so that errors name the first invalid one.
pub fn read_filter(query: &Query<UserFilter>, today: NaiveDate) -> Result<(Filter, Sort)> {
    let words = search_words(query.search()?);
    let (id, user_id) = (query.id()?, query.user_id()?);
    let (active, email_verified) = (query.active()?, query.email_verified()?);
    let phone_verified = query.phone_verified()?;
    let nobody = query.role()?.is_some_and(|role| role != "customer");
    let country = query.country()?.map(|country| one_line(&country).to_lowercase());
    let born = query.age()?.map(|ages| birth_dates_of_ages(ages, today));
    let years_of_employment = query.years_of_employment()?;
    let metadata = query.metadata()?;
    let metadata = metadata.iter().map(|(key, text)| search::metadata_digests(key, text)).collect();
    let date_by = query.date_by();
    // Not validated if `date_by` overrides it.
    let created = if let Ok(Some(_)) = date_by { None } else { query.created_at()? };
    let named = date_by?.and_then(|name| Period::named(&name, today));
    let filter = Filter {
        words,
        id,
        user_id,
        active,
        email_verified,
        phone_verified,
        country,
        birth_dates: born,
        years_of_employment,
        metadata,
        created: named.or(created),
        matches_none: nobody,
    };
    Ok((filter, read_sort(query)?))
}

/// Lower-cases the words and drops each substring of another: a match of the longer implies it.
fn search_words(words: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = words.into_iter().map(|word| word.to_lowercase()).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let mut sought: Vec<String> = Vec::new();
    for word in words {
        if !sought.iter().any(|longer| longer.contains(&word)) {
            sought.push(word);
        }
    }
    sought
}

/// Returns the first sort parameter in this order; default: newest first.
fn read_sort(query: &Query<UserFilter>) -> Result<Sort> {
    let created = query.sort_created_at()?.map(Sort::Created);
    let updated = query.sort_updated_at()?.map(Sort::Updated);
    let first_name = query.sort_first_name()?.map(Sort::FirstName);
    let last_name = query.sort_last_name()?.map(Sort::LastName);
    let named = created.or(updated).or(first_name).or(last_name);
    Ok(named.unwrap_or(Sort::Created(SortOrder::Descending)))
}

/// Returns the first and last birth date of people of these ages. The first need not be a date: it
/// is after the last birth date of people one year older. Before year 0, it is empty and sorts
/// first.
fn birth_dates_of_ages([least, most]: [i64; 2], today: NaiveDate) -> [String; 2] {
    let years_ago = |years: i64, after: &str| match i64::from(today.year()).saturating_sub(years) {
        year if year < 0 => String::new(),
        year => format!("{year:04}-{:02}-{:02}{after}", today.month(), today.day()),
    };
    [years_ago(most.saturating_add(1), "~"), years_ago(least, "")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_ranges_of_birth_dates() {
        let today = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap();
        let [first, last] = birth_dates_of_ages([18, 30], today);
        for (born, fits) in [
            ("2006-02-28", true),
            ("2006-03-01", false),
            ("1993-03-01", true),
            ("1993-02-28", false),
        ] {
            assert_eq!((&*first..=&*last).contains(&born), fits, "{born}");
        }
        for (ages, born, fits) in [
            ([0, i64::MAX], "0001-01-01", true),
            ([2_023, 9_999], "0001-02-01", true),
            ([2_025, i64::MAX], "0001-01-01", false),
        ] {
            let [first, last] = birth_dates_of_ages(ages, today);
            assert_eq!((&*first..=&*last).contains(&born), fits, "{ages:?} {born}");
        }
    }

    #[test]
    fn words_contained_in_others_are_dropped() {
        let words = ["Ada", "ad", "obi", "ADA", "a", "x"].map(str::to_owned).to_vec();
        assert_eq!(search_words(words), ["ada", "obi", "x"]);
    }
}
