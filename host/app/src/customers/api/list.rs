//! List of users, with the filters of the query string.

use chrono::{Datelike, NaiveDate};

use super::super::{
    View,
    store::{
        UserKey,
        list::{self, Sort, find_by_ids},
        search::metadata_digests,
    },
};
use crate::tenants::prelude::*;
use tollhouse_platform::values::{
    email::one_line,
    listing::{PERIODS, Period, unknown_after, unstable_order},
};

choices! {
    Named = &PERIODS;
}

fields! {
    /// Page of users.
    Query UserPages {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Users per page.
        limit: StrictLimit<50, 1_000>,
        /// Returns up to `limit` records that follow the record with this id, in the order of
        /// `created_at`. No record is skipped or repeated if others are created meanwhile. Cannot
        /// be combined with `page` or with another order.
        after: Exactly,
    }
}

fields! {
    /// Filters and order of users.
    Query UserFilter(query, today: NaiveDate) {
        /// Words, ignoring case: each must occur in `user_id`, a name, `email` or `phone`.
        search: Words => Ok(search_words(search)),
        id: Exactly,
        user_id: Exactly,
        active: Truth,
        email_verified: Truth,
        phone_verified: Truth,
        role: Exactly,
        country: Exactly => Ok(country.map(|country| one_line(&country).to_lowercase())),
        /// Age in whole years, today in UTC.
        birth_dates as "age": Range as Option<[String; 2]>
            => Ok(birth_dates.map(|ages| birth_dates_of_ages(ages, today))),
        years_of_employment: Range,
        /// `metadata.KEY`: a text with this value, or a number or boolean written like this.
        #[schemars(extend("propertyNames" = { "pattern": r"^metadata\." }))]
        metadata: ByKey as Vec<Vec<String>>
            => Ok(metadata.iter().map(|(key, text)| metadata_digests(key, text)).collect()),
        /// One day in UTC, or the first and last day of a range.
        created_at: Days where !matches!(query.one_of("date_by", &PERIODS), Ok(Some(_))),
        /// Overrides `created_at`; weeks begin on Monday.
        date_by: OneOf<Named> as Option<Period>
            => Ok(date_by.and_then(|name| Period::named(&name, today))),
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
    let UserPages { page, limit, after } = pages.read()?;
    let page = PageRequest::new(page, limit, after.as_deref())?;
    let filter = UserFilter::read(&query, now.to_datetime().date_naive())?;
    if after.is_some() && !matches!(filter.sort(), Sort::Created(_)) {
        return Err(unstable_order());
    }
    let list = async |tx: &mut Tx| -> Result<_> {
        let after = match after.as_deref().map(UserKey::from) {
            None => None,
            Some(id) => {
                Some(find_by_ids(tx, &company.id, &[id]).await?.pop().ok_or_else(unknown_after)?)
            }
        };
        Ok(list::list(tx, &company.id, &filter, page, after.as_ref()).await?)
    };
    let users = app.store.read(list).await?.map(|user| user.view(now));
    DataResponse::data(users, "Users fetched successfully")
}

impl UserFilter {
    /// Returns the period of creation.
    pub fn created(&self) -> Option<Period> {
        self.date_by.or(self.created_at)
    }

    /// Returns whether the filter has conditions besides words and metadata.
    pub fn has_columns(&self) -> bool {
        let flags = [self.active, self.email_verified, self.phone_verified];
        let has_counted = flags.iter().any(Option::is_some)
            || self.role.is_some()
            || self.country.is_some()
            || self.created().is_some();
        has_counted || self.has_uncounted_columns()
    }

    /// Returns whether the filter has conditions on columns that `list_totals` lacks.
    pub fn has_uncounted_columns(&self) -> bool {
        self.is_selective() || self.years_of_employment.is_some()
    }

    /// Returns whether an index finds the matches of one of the conditions directly.
    pub fn is_selective(&self) -> bool {
        self.id.is_some() || self.user_id.is_some() || self.birth_dates.is_some()
    }

    /// Returns the first sort parameter in this order; default: newest first.
    pub fn sort(&self) -> Sort {
        let created = self.sort_created_at.map(Sort::Created);
        let updated = self.sort_updated_at.map(Sort::Updated);
        let first_name = self.sort_first_name.map(Sort::FirstName);
        let last_name = self.sort_last_name.map(Sort::LastName);
        let sort = created.or(updated).or(first_name).or(last_name);
        sort.unwrap_or(Sort::Created(SortOrder::Descending))
    }
}

/// Lower-cases the words and drops each substring of another: a match of the longer implies it.
fn search_words(words: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = words.into_iter().map(|word| word.to_lowercase()).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    let mut sought: Vec<String> = Vec::new();
    for word in words {
        if !sought.iter().any(|longer| longer.contains(&word)) {
            sought.push(word);
        }
    }
    sought
}

/// Returns the first and last birth date of people of these ages. The first is not a date: it sorts
/// just after the last birth date of people one year older. A date before year 0 is empty and sorts
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
