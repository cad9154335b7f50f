//! Reading query strings.

use std::collections::HashMap;

use axum::{
    extract::{FromRequestParts, rejection::QueryRejection},
    http::request::Parts,
};
use chrono::{Days, NaiveDate, NaiveTime};

use crate::{
    clock::{Timestamp, date},
    error::{Error, Result},
    listing::{Order, Page, Period},
};

/// The parameters of a query string; of a repeated one, the last.
#[derive(Clone, Debug, Default)]
pub struct Query(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query> {
        type Pairs = axum::extract::Query<Vec<(String, String)>>;
        let pairs: Result<Pairs, QueryRejection> = Pairs::from_request_parts(parts, state).await;
        let pairs = pairs.map_err(|_| Error::invalid("the query string cannot be read"))?;
        if let Some((name, _)) =
            pairs.0.iter().find(|(_, value)| value.chars().any(char::is_control))
        {
            return Err(must_be(name, "free of control characters"));
        }
        Ok(Query(pairs.0.into_iter().collect()))
    }
}

fn must_be(name: &str, what: &str) -> Error {
    Error::invalid(format!("the {name} field must be {what}"))
}

impl Query {
    /// A parameter that is there and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub fn one_of(&self, name: &str, allowed: &[&str]) -> Result<Option<String>> {
        match self.text(name) {
            Some(text) if !allowed.contains(&text) => {
                Err(must_be(name, &format!("one of {}", allowed.join(", "))))
            }
            text => Ok(text.map(str::to_owned)),
        }
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        match self.text(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(must_be(name, "true or false")),
        }
    }

    /// `DD-MM-YYYY`, or two of them with a slash between: whole days in UTC, the last one included.
    pub fn days(&self, name: &str) -> Result<Option<Period>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let day = |text: &str| date(text, "%d-%m-%Y");
        let (first, last) = text.split_once('/').unwrap_or((text, text));
        let period = day(first).zip(day(last)).filter(|(first, last)| first <= last);
        let starts =
            |day: NaiveDate| Timestamp(day.and_time(NaiveTime::MIN).and_utc().timestamp_millis());
        match period.and_then(|(first, last)| Some((first, last.checked_add_days(Days::new(1))?))) {
            Some((first, after)) => Ok(Some(Period { from: starts(first), before: starts(after) })),
            None => Err(must_be(name, "DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY")),
        }
    }

    pub fn order(&self, name: &str) -> Result<Option<Order>> {
        Ok(self.one_of(name, &["asc", "desc"])?.map(|text| match &*text {
            "asc" => Order::Ascending,
            _ => Order::Descending,
        }))
    }

    pub fn page(&self, default_limit: i64, most: i64) -> Result<Page> {
        let whole = |name: &str, default: i64, most: i64| match self.text(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(must_be(name, &format!("a whole number from 1 to {most}"))),
            },
        };
        Ok(Page {
            number: whole("page", 1, 1_000_000_000)?,
            limit: whole("limit", default_limit, most)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        Query(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    #[test]
    fn pages_and_limits_out_of_range_are_named() {
        for (name, value) in
            [("page", "0"), ("limit", "0"), ("limit", "1001"), ("page", "x"), ("limit", "-1")]
        {
            let refused = query(&[(name, value)]).page(20, 1000).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("the {name} field must be")), "{refused}");
        }
        assert_eq!(query(&[]).page(20, 1000).unwrap(), Page { number: 1, limit: 20 });
    }

    #[test]
    fn days_include_their_last() {
        let day = 86_400_000;
        let one = query(&[("d", "02-01-1970")]).days("d").unwrap();
        assert_eq!(one, Some(Period { from: Timestamp(day), before: Timestamp(2 * day) }));
        let two = query(&[("d", "02-01-1970/03-01-1970")]).days("d").unwrap();
        assert_eq!(two, Some(Period { from: Timestamp(day), before: Timestamp(3 * day) }));
        for bad in
            ["1970-01-02", "31-02-2026", "03-01-1970/02-01-1970", "x", "02-01-1970/", " 2- 1-1970"]
        {
            assert!(query(&[("d", bad)]).days("d").is_err(), "{bad}");
        }
    }

    #[test]
    fn booleans_are_true_or_false() {
        assert_eq!(query(&[("b", "true")]).boolean("b").unwrap(), Some(true));
        assert!(query(&[("b", "1")]).boolean("b").is_err());
    }
}
