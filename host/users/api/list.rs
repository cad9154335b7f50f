//! Listing users: what the query string narrows the list to.

use axum::extract::State;
use chrono::{Datelike, NaiveDate};

use super::super::{
    View,
    store::{
        list::{self, Filter, Sort},
        search,
    },
};
use crate::{
    app::App,
    email::one_line,
    error::Result,
    http::{
        Caller,
        answer::Answer,
        fields::{Choice, OneOf, fields},
        query::{
            AscElseDesc, ByKey, Days, Exactly, PageNumber, Query, Range, StrictLimit, Truth, Words,
        },
    },
    listing::{Listed, Order, PERIODS, Page, Period},
};

/// What `date_by` may be.
pub struct Named;

impl Choice for Named {
    const ALL: &'static [&'static str] = &PERIODS;
}

fields! {
    /// Which page of the users.
    Query UserPages {
        /// Which page, counted from 1.
        page: PageNumber,
        /// How many a page holds.
        limit: StrictLimit<50, 1_000>,
    }
}

fields! {
    /// Which users, in which order.
    Query UserFilter {
        /// Words, whatever their case: each must stand in `user_id`, a name, `email` or `phone`.
        search: Words,
        id: Exactly,
        user_id: Exactly,
        active: Truth,
        email_verified: Truth,
        phone_verified: Truth,
        role: Exactly,
        country: Exactly,
        /// In whole years, today in UTC.
        age: Range,
        years_of_employment: Range,
        /// `metadata.KEY`: a text that is this, or a number or boolean that is written like this.
        #[schemars(extend("propertyNames" = { "pattern": r"^metadata\." }))]
        metadata: ByKey,
        /// A day in UTC, or the first and the last of some.
        created_at: Days,
        /// Takes the place of `created_at`; weeks begin on Monday.
        date_by: OneOf<Named>,
        sort_created_at as "sort-created_at": AscElseDesc,
        sort_updated_at as "sort-updated_at": AscElseDesc,
        sort_first_name as "sort-first_name": AscElseDesc,
        sort_last_name as "sort-last_name": AscElseDesc,
    }
}

pub async fn list(
    State(app): State<App>,
    Caller(company): Caller,
    pages: Query<UserPages>,
    query: Query<UserFilter>,
) -> Result<Answer<Listed<View>>> {
    let now = app.clock.now();
    let page = Page { number: pages.page()?, limit: pages.limit()? };
    let (filter, sort) = narrow(&query, now.to_datetime().date_naive())?;
    let (total, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let total = list::count(tx, &company.id, &filter).await?;
            Ok((total, list::page(tx, &company.id, &filter, sort, page).await?))
        })
        .await?;
    let docs = users.into_iter().map(|user| user.view(now)).collect();
    Answer::data(page.of(total, docs), "Users fetched successfully")
}

/// In the order of the specification's table, so that the first offending parameter is named.
pub fn narrow(query: &Query<UserFilter>, today: NaiveDate) -> Result<(Filter, Sort)> {
    let words = sought(query.search()?);
    let (id, user_id) = (query.id()?, query.user_id()?);
    let (active, email_verified) = (query.active()?, query.email_verified()?);
    let phone_verified = query.phone_verified()?;
    let nobody = query.role()?.is_some_and(|role| role != "customer");
    let country = query.country()?.map(|country| one_line(&country).to_lowercase());
    let born = query.age()?.map(|ages| born_between(ages, today));
    let years_of_employment = query.years_of_employment()?;
    let metadata = query.metadata()?;
    let metadata = metadata.iter().map(|(key, text)| search::digests(key, text)).collect();
    let date_by = query.date_by();
    // Not read where it is overridden.
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
        born,
        years_of_employment,
        metadata,
        created: named.or(created),
        nobody,
    };
    Ok((filter, sort(query)?))
}

/// Lower-cases the words and drops each substring of another: a match of the longer implies it.
fn sought(words: Vec<String>) -> Vec<String> {
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

/// The first that is named, else the newest first.
fn sort(query: &Query<UserFilter>) -> Result<Sort> {
    let created = query.sort_created_at()?.map(Sort::Created);
    let updated = query.sort_updated_at()?.map(Sort::Updated);
    let first_name = query.sort_first_name()?.map(Sort::FirstName);
    let last_name = query.sort_last_name()?.map(Sort::LastName);
    let named = created.or(updated).or(first_name).or(last_name);
    Ok(named.unwrap_or(Sort::Created(Order::Descending)))
}

/// The days on which somebody was born who is of these ages today. The first need not be a date: it is after the last day on which
/// somebody one year older was born. A day before all dates is empty, which sorts first.
fn born_between([least, most]: [i64; 2], today: NaiveDate) -> [String; 2] {
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
    fn who_is_of_an_age_was_born_between_two_days() {
        let today = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap();
        let [first, last] = born_between([18, 30], today);
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
            let [first, last] = born_between(ages, today);
            assert_eq!((&*first..=&*last).contains(&born), fits, "{ages:?} {born}");
        }
    }

    #[test]
    fn words_that_stand_in_others_are_not_sought() {
        let words = ["Ada", "ad", "obi", "ADA", "a", "x"].map(str::to_owned).to_vec();
        assert_eq!(sought(words), ["ada", "obi", "x"]);
    }
}
