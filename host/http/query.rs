//! Reading query strings.

use std::{borrow::Cow, collections::HashMap, marker::PhantomData, ops::Deref};

use axum::{
    extract::{FromRequestParts, rejection::QueryRejection},
    http::request::Parts,
};
use chrono::{NaiveDate, NaiveTime};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::{
    fields::{Field, PLAIN, fields, inline_schema},
    openapi::{Describe, Operation},
};
use crate::{
    clock::{Timestamp, date},
    error::{Error, Result},
    listing::{Order, Page, Period},
};

/// A query string of the parameters that `T` declares, by [`fields!`](super::fields). None of them is required.
pub struct Query<T> {
    parameters: Parameters,
    declared: PhantomData<fn() -> T>,
}

impl<T> Deref for Query<T> {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.parameters
    }
}

impl<S: Send + Sync, T> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>> {
        type Pairs = axum::extract::Query<Vec<(String, String)>>;
        let pairs: Result<Pairs, QueryRejection> = Pairs::from_request_parts(parts, state).await;
        let pairs = pairs.map_err(|_| Error::invalid("the query string cannot be read"))?;
        if let Some((name, _)) =
            pairs.0.iter().find(|(_, value)| value.chars().any(char::is_control))
        {
            return Err(must_be(name, "free of control characters"));
        }
        let parameters = Parameters(pairs.0.into_iter().collect());
        Ok(Query { parameters, declared: PhantomData })
    }
}

impl<T: JsonSchema> Describe for Query<T> {
    fn describe(operation: &mut Operation<'_>) {
        let declared = operation.taken_in_full::<T>();
        for (name, schema) in declared["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let fields = schema.as_object_mut().expect("every kind writes its schema as an object");
            let description = fields.remove("description").unwrap_or("".into());
            operation.takes_parameter(json!({
                "name": name,
                "in": "query",
                "required": false,
                "description": description,
                "schema": schema,
            }));
        }
        operation.fails(&[400]);
    }
}

/// The parameters of a query string; of a repeated one, the last.
#[derive(Clone, Debug, Default)]
pub struct Parameters(HashMap<String, String>);

fn must_be(name: &str, what: &str) -> Error {
    Error::invalid(format!("the {name} field must be {what}"))
}

impl Parameters {
    /// A parameter that is there and not empty.
    fn text(&self, name: &str) -> Option<&str> {
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

    fn cursor(&self, name: &str) -> Result<String> {
        let text = self.text(name).unwrap_or_default();
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match is_hex && [0, 8, 24].contains(&text.len()) {
            true => Ok(text.to_owned()),
            false => Err(must_be(name, "the `next` of an answer before")),
        }
    }

    /// `DD-MM-YYYY`, or two of them with a slash between: whole days in UTC, the last one included.
    fn days(&self, name: &str) -> Result<Option<Period>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let day = |text: &str| date(text, "%d-%m-%Y");
        let (first, last) = text.split_once('/').unwrap_or((text, text));
        let period = day(first).zip(day(last)).filter(|(first, last)| first <= last);
        let starts =
            |day: NaiveDate| Timestamp(day.and_time(NaiveTime::MIN).and_utc().timestamp_millis());
        match period.and_then(|(first, last)| Some((first, last.succ_opt()?))) {
            Some((first, after)) => Ok(Some(Period { from: starts(first), before: starts(after) })),
            None => Err(must_be(name, "DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY")),
        }
    }

    fn order(&self, name: &str) -> Result<Option<Order>> {
        Ok(self.one_of(name, &["asc", "desc"])?.map(|text| match &*text {
            "asc" => Order::Ascending,
            _ => Order::Descending,
        }))
    }

    fn whole(&self, name: &str, default: i64, most: i64) -> Result<i64> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(must_be(name, &format!("a whole number from 1 to {most}"))),
            },
        }
    }
}

macro_rules! kinds {
    ($(
        $(#[$about:meta])*
        $kind:ident $(<$(const $bound:ident),*>)? -> $value:ty = $read:expr, $schema:tt;
    )*) => {$(
        $(#[$about])*
        pub struct $kind $(<$(const $bound: i64),*>)?;

        impl $(<$(const $bound: i64),*>)? Field<Parameters> for $kind $(<$($bound),*>)? {
            type Value = $value;

            fn read(parameters: &Parameters, name: &str) -> Result<$value> {
                let read: fn(&Parameters, &str) -> Result<$value> = $read;
                read(parameters, name)
            }
        }

        inline_schema! { $kind [$($($bound: i64),*)?] $schema }
    )*};
}

/// One date, two of them, or nothing.
const DAYS: &str = r"^(\d{2}-\d{2}-\d{4}(/\d{2}-\d{2}-\d{4})?)?$";
/// An id, or the second that ids begin with.
const CURSOR: &str = "^([0-9a-f]{8}([0-9a-f]{16})?)?$";
const MOST_PAGES: i64 = 1_000_000_000;

kinds! {
    /// Compared as it is.
    Exactly -> Option<String> = |parameters, name| Ok(parameters.text(name).map(str::to_owned)),
        { "type": "string", "pattern": PLAIN };
    /// Where the answer before ended; empty, where all begins.
    Cursor -> String = |parameters, name| parameters.cursor(name),
        { "type": "string", "pattern": CURSOR };
    PageNumber -> i64 = |parameters, name| parameters.whole(name, 1, MOST_PAGES),
        { "type": "integer", "minimum": 1, "maximum": MOST_PAGES, "default": 1 };
    Limit<const DEFAULT, const MOST> -> i64 = |parameters, name| parameters.whole(name, DEFAULT, MOST),
        { "type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT };
    Days -> Option<Period> = |parameters, name| parameters.days(name),
        { "type": "string", "pattern": DAYS, "examples": ["01-11-2026/30-11-2026"] };
    Direction -> Option<Order> = |parameters, name| parameters.order(name),
        { "type": "string", "enum": ["asc", "desc"] };
}

fields! {
    /// Which page of a list.
    Query Pages {
        /// Which page, counted from 1.
        page: PageNumber,
        /// How many a page holds.
        limit: Limit<50, 1_000>,
    }
}

impl Query<Pages> {
    pub fn read(&self) -> Result<Page> {
        Ok(Page { number: self.page()?, limit: self.limit()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query<Pages> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Query { parameters: Parameters(pairs.collect()), declared: PhantomData }
    }

    #[test]
    fn pages_and_limits_out_of_range_are_named() {
        for (name, value) in
            [("page", "0"), ("limit", "0"), ("limit", "1001"), ("page", "x"), ("limit", "-1")]
        {
            let refused = query(&[(name, value)]).read().unwrap_err().to_string();
            assert!(refused.starts_with(&format!("the {name} field must be")), "{refused}");
        }
        assert_eq!(query(&[]).read().unwrap(), Page { number: 1, limit: 50 });
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
}
