//! Reads query strings.

use std::{borrow::Cow, collections::HashMap, num::IntErrorKind, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request, State, rejection::QueryRejection},
    http::request::Parts,
    middleware::Next,
    response::{IntoResponse, Response},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use url::form_urlencoded;

use super::{
    fields::{Field, Unread, fields},
    kinds::{PLAIN, inline_schema, kinds},
};
use crate::openapi::{Describe, Operation, parameter};
use tollhouse_platform::{
    clock::parse_date,
    error::{Error, Result},
    values::listing::{PageRequest, Period, SortOrder},
};

/// A query string, whose parameters are all optional.
pub type Query<T> = Unread<Parameters, T>;

impl<S: Send + Sync, T> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>> {
        type Pairs = axum::extract::Query<Vec<(String, String)>>;
        let pairs: Result<Pairs, QueryRejection> = Pairs::from_request_parts(parts, state).await;
        let pairs = pairs.map_err(|_| Error::invalid("the query string cannot be read"))?;
        if let Some((name, _)) = pairs.0.iter().find(|(_, value)| value.contains(char::is_control))
        {
            return Err(must_be(name, "free of control characters"));
        }
        Ok(Parameters(pairs.0.into_iter().collect()).into())
    }
}

/// Maximum length of an unknown parameter's name in an error, in characters.
const MAX_ECHOED_CHARACTERS: usize = 100;

/// Refuses query parameters that are not `known`: a list with a misspelt filter would return
/// everything. A known name that ends with a dot is a prefix.
pub async fn reject_unknown_parameters(
    State(known): State<Arc<[String]>>,
    request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    let is_known = |name: &str| {
        known.iter().any(|known| name == known || known.ends_with('.') && name.starts_with(known))
    };
    if let Some(unknown) = names.find(|name| !is_known(name)) {
        let name: String = unknown.chars().take(MAX_ECHOED_CHARACTERS).collect();
        return Error::invalid(format!("unknown query parameter: {name}")).into_response();
    }
    next.run(request).await
}

impl<T: JsonSchema> Describe for Query<T> {
    fn describe(operation: &mut Operation<'_>) {
        let declared = operation.inline_request_schema::<T>();
        for (name, schema) in declared["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let fields = schema.as_object_mut().expect("every kind writes its schema as an object");
            let description = fields.shift_remove("description").unwrap_or("".into());
            operation.parameters.push(parameter("query", name, false, description, &schema));
        }
    }
}

/// The parameters of a query string. If a name is repeated, its last value counts.
#[derive(Clone, Debug, Default)]
pub struct Parameters(HashMap<String, String>);

fn must_be(name: &str, what: &str) -> Error {
    Error::invalid(format!("the {name} field must be {what}"))
}

impl Parameters {
    /// Returns a parameter that is present and not empty.
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Parses a parameter. If `parse` returns `None`, the error says it must be `what`.
    fn parsed<'p, V>(
        &'p self,
        name: &str,
        what: &str,
        parse: impl FnOnce(&'p str) -> Option<V>,
    ) -> Result<Option<V>> {
        self.text(name).map(|text| parse(text).ok_or_else(|| must_be(name, what))).transpose()
    }

    pub fn one_of(&self, name: &str, allowed: &[&str]) -> Result<Option<String>> {
        self.parsed(name, &format!("one of {}", allowed.join(", ")), |text| {
            allowed.contains(&text).then(|| text.to_owned())
        })
    }

    /// Returns the values of the parameters `NAME.KEY`, by key.
    fn by_key(&self, name: &str) -> Result<Vec<(String, String)>> {
        let given = self.0.iter().filter_map(|(parameter, value)| {
            let key = parameter.strip_prefix(name)?.strip_prefix('.')?;
            Some((key.to_owned(), value.clone()))
        });
        let mut all: Vec<_> = given.collect();
        all.sort();
        match all.len() <= MAX_KEYS {
            true => Ok(all),
            false => Err(must_be(name, &format!("at most {MAX_KEYS} parameters"))),
        }
    }

    /// Reads a whole number from 1 to `most`.
    fn whole(&self, name: &str, most: i64) -> Result<Option<i64>> {
        self.parsed(name, &format!("a whole number from 1 to {most}"), |text| {
            text.parse().ok().filter(|number| (1..=most).contains(number))
        })
    }
}

fn is_cursor(text: &str) -> bool {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_hex && [8, 24].contains(&text.len())
}

/// Parses a whole number of at least 1. One above `most` counts as `most`.
fn parse_capped(text: &str, most: i64) -> Option<i64> {
    let number = match text.parse::<i64>() {
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(most),
        number => number.ok(),
    };
    number.filter(|number| *number >= 1).map(|number| number.min(most))
}

/// Parses a whole number of at least 0. One that overflows counts as the largest one.
fn parse_position(text: &str) -> Option<i64> {
    match text.parse::<i64>() {
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(i64::MAX),
        number => number.ok().filter(|number| *number >= 0),
    }
}

/// Parses `DD-MM-YYYY` or `DD-MM-YYYY/DD-MM-YYYY`: whole days in UTC, including the last one.
fn parse_days(text: &str) -> Option<Period> {
    let day = |text: &str| parse_date(text, "%d-%m-%Y");
    let (first, last) = text.split_once('/').unwrap_or((text, text));
    let (first, last) = day(first).zip(day(last)).filter(|(first, last)| first <= last)?;
    Period::of_days(first, last)
}

fn parse_signature(text: &str) -> Option<[u8; 64]> {
    let mut bytes = [0; 64];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Parses `18`, or `18/30` including both ends.
fn parse_range(text: &str) -> Option<[i64; 2]> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number that overflows counts as the largest one.
        is_plain.then(|| text.parse().unwrap_or(i64::MAX))
    };
    let (least, last) = text.split_once('/').unwrap_or((text, text));
    let range = [number(least)?, number(last)?];
    Some(range).filter(|[least, last]| least <= last)
}

/// One or two dates, or nothing.
const DAYS: &str = r"^(\d{2}-\d{2}-\d{4}(/\d{2}-\d{2}-\d{4})?)?$";
/// An id, the second with which ids begin, or nothing.
const CURSOR: &str = "^([0-9a-f]{8}([0-9a-f]{16})?)?$";
const MAX_PAGES: i64 = 1_000_000_000;
/// Maximum length of a search: longer than any searched field, with few enough words.
const MAX_SEARCH_CHARACTERS: usize = 500;
const MAX_KEYS: usize = 20;

kinds! {
    Field<Parameters>, Parameters -> Result;
    /// A text that is compared exactly.
    Exactly -> Option<String> = |parameters, name| Ok(parameters.text(name).map(str::to_owned)),
        { "type": "string", "pattern": PLAIN };
    /// The `next` of the previous response; empty for the first page.
    Cursor -> String = |parameters, name| {
            let parse = |text: &str| is_cursor(text).then(|| text.to_owned());
            let cursor = parameters.parsed(name, "the `next` of an earlier response", parse);
            Ok(cursor?.unwrap_or_default())
        },
        { "type": "string", "pattern": CURSOR };
    PageNumber -> i64 = |parameters, name| Ok(parameters.whole(name, MAX_PAGES)?.unwrap_or(1)),
        { "type": "integer", "minimum": 1, "maximum": MAX_PAGES, "default": 1 };
    /// A limit; a number above `MOST` counts as `MOST`.
    Limit<const DEFAULT: i64, const MOST: i64> -> i64 = |parameters, name| {
            let parse = |text: &str| parse_capped(text, MOST);
            let limit = parameters.parsed(name, "a whole number of at least 1", parse);
            Ok(limit?.unwrap_or(DEFAULT))
        },
        { "type": "integer", "minimum": 1, "default": DEFAULT };
    /// A limit; a number above `MOST` is refused.
    StrictLimit<const DEFAULT: i64, const MOST: i64> -> i64 = |parameters, name|
            Ok(parameters.whole(name, MOST)?.unwrap_or(DEFAULT)),
        { "type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT };
    /// An optional limit.
    AtMost -> Option<i64> = |parameters, name| parameters.whole(name, MAX_PAGES),
        { "type": "integer", "minimum": 1, "maximum": MAX_PAGES };
    /// The number of the last entry of an earlier response; 0 before the first entry.
    Position -> i64 = |parameters, name| {
            let position = parameters.parsed(name, "a whole number of at least 0", parse_position);
            Ok(position?.unwrap_or(0))
        },
        { "type": "integer", "minimum": 0, "default": 0 };
    Days -> Option<Period> = |parameters, name|
            parameters.parsed(name, "DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY", parse_days),
        { "type": "string", "pattern": DAYS, "examples": ["01-11-2026/30-11-2026"] };
    Truth -> Option<bool> = |parameters, name|
            Ok(parameters.one_of(name, &["true", "false"])?.map(|text| text == "true")),
        { "type": "boolean" };
    /// 64 bytes in hexadecimal.
    Signature -> Option<[u8; 64]> = |parameters, name|
            parameters.parsed(name, "128 hexadecimal digits", parse_signature),
        { "type": "string", "pattern": "^([0-9A-Fa-f]{128})?$" };
    /// One number, or the two ends of a range.
    Range -> Option<[i64; 2]> = |parameters, name|
            parameters.parsed(name, "a whole number, or two as min/max", parse_range),
        { "type": "string", "pattern": r"^(\d+(/\d+)?)?$", "examples": ["18/30"] };
    /// Words that must all be found.
    Words -> Vec<String> = |parameters, name| {
            let most = format!("at most {MAX_SEARCH_CHARACTERS} characters");
            let words = parameters.parsed(name, &most, |text| {
                let is_short = text.chars().count() <= MAX_SEARCH_CHARACTERS;
                is_short.then(|| text.split_whitespace().map(str::to_owned).collect())
            });
            Ok(words?.unwrap_or_default())
        },
        { "type": "string", "maxLength": MAX_SEARCH_CHARACTERS, "pattern": PLAIN };
    /// `asc` is ascending, any other text descending.
    AscElseDesc -> Option<SortOrder> = |parameters, name| Ok(parameters.text(name).map(sort_order)),
        { "type": "string", "examples": ["asc", "desc"], "pattern": PLAIN };
    Direction -> Option<SortOrder> = |parameters, name|
            Ok(parameters.one_of(name, &["asc", "desc"])?.as_deref().map(sort_order)),
        { "type": "string", "enum": ["asc", "desc"] };
    /// Parameters `NAME.KEY`, one for each key.
    ByKey -> Vec<(String, String)> = |parameters, name| parameters.by_key(name),
        {
            "type": "object",
            "additionalProperties": { "type": "string", "pattern": PLAIN },
            "maxProperties": MAX_KEYS
        };
}

fn sort_order(text: &str) -> SortOrder {
    if text == "asc" { SortOrder::Ascending } else { SortOrder::Descending }
}

fields! {
    /// Selection of a page.
    Query Pages {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Maximum number of items per page; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
    }
}

impl From<Pages> for PageRequest {
    fn from(Pages { page, limit }: Pages) -> PageRequest {
        PageRequest { number: page, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_platform::clock::Timestamp;

    fn query(pairs: &[(&str, &str)]) -> Query<Pages> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Parameters(pairs.collect()).into()
    }

    #[test]
    fn pages_and_limits_out_of_range_are_named() {
        let read = |pairs: &[(&str, &str)]| query(pairs).read().map(PageRequest::from);
        for (name, value) in
            [("page", "0"), ("limit", "0"), ("limit", "1.5"), ("page", "x"), ("limit", "-1")]
        {
            let refused = read(&[(name, value)]).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("the {name} field must be")), "{refused}");
        }
        assert_eq!(read(&[]).unwrap(), PageRequest { number: 1, limit: 50 });
        for (limit, counts_as) in
            [("1000", 1_000), ("1001", 1_000), ("99999999999999999999", 1_000)]
        {
            let page = read(&[("limit", limit)]).unwrap();
            assert_eq!(page, PageRequest { number: 1, limit: counts_as });
        }
    }

    #[test]
    fn day_ranges_include_the_last_day() {
        let day = 86_400_000;
        let one = parse_days("02-01-1970");
        assert_eq!(one, Some(Period { from: Timestamp(day), before: Timestamp(2 * day) }));
        let two = parse_days("02-01-1970/03-01-1970");
        assert_eq!(two, Some(Period { from: Timestamp(day), before: Timestamp(3 * day) }));
        for bad in
            ["1970-01-02", "31-02-2026", "03-01-1970/02-01-1970", "x", "02-01-1970/", " 2- 1-1970"]
        {
            assert!(Days::read(&query(&[("d", bad)]), "d").is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_have_both_ends() {
        let range = |text| Range::read(&query(&[("age", text)]), "age");
        for (text, expected) in [
            ("", None),
            ("18", Some([18, 18])),
            ("18/30", Some([18, 30])),
            ("0/200", Some([0, 200])),
            ("18/99999999999999999999", Some([18, i64::MAX])),
        ] {
            assert_eq!(range(text).unwrap(), expected, "{text}");
        }
        for bad in
            ["30/18", "18/", "/30", "-1", "+1", "1.5", "x", "1/2/3", "99999999999999999999/1"]
        {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_follow_the_name_and_a_dot() {
        let query = query(&[
            ("metadata.tier", "1"),
            ("metadata.a.b", ""),
            ("metadata", "x"),
            ("metadatax.y", "z"),
        ]);
        let expected =
            [("a.b", ""), ("tier", "1")].map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(query.by_key("metadata").unwrap(), expected);
    }
}
