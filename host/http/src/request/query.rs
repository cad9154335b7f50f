//! Reads query strings.

use std::{borrow::Cow, collections::HashMap, marker::PhantomData, num::IntErrorKind, ops::Deref};

use axum::{
    extract::{FromRequestParts, Request, State, rejection::QueryRejection},
    http::request::Parts,
    middleware::Next,
    response::{IntoResponse, Response},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use url::form_urlencoded;

use super::{
    fields::{Declared, Field, ReadFrom, fields},
    kinds::{PLAIN, inline_schema},
};
use crate::openapi::{Describe, Operation};
use tollhouse_platform::{
    clock::parse_date,
    error::{Error, Result},
    values::listing::{PageRequest, Period, SortOrder},
};

/// A query string of the parameters that `T` declares by [`fields!`](super::fields), all optional.
pub struct Query<T> {
    parameters: Parameters,
    declared: PhantomData<fn() -> T>,
}

impl<T: ReadFrom<Parameters>> Query<T> {
    /// Reads the parameters in order.
    pub fn read(&self) -> Result<T> {
        T::read_from(&self.parameters)
    }
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

/// Returns whether a route takes a query parameter with this name.
pub type Takes = fn(&str) -> bool;

/// Maximum length of an unknown parameter's name in an error, in characters.
const MAX_ECHOED_CHARACTERS: usize = 100;

/// Refuses unknown query parameters: a list with a misspelt filter would return everything.
pub async fn reject_unknown_parameters(
    State(takes): State<Takes>,
    request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    if let Some(unknown) = names.find(|name| !takes(name)) {
        let name: String = unknown.chars().take(MAX_ECHOED_CHARACTERS).collect();
        return Error::invalid(format!("unknown query parameter: {name}")).into_response();
    }
    next.run(request).await
}

impl<T: JsonSchema + Declared> Describe for Query<T> {
    fn takes(parameter: &str) -> bool {
        T::has(parameter)
    }

    fn describe(operation: &mut Operation<'_>) {
        let declared = operation.inline_request_schema::<T>();
        for (name, schema) in declared["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let fields = schema.as_object_mut().expect("every kind writes its schema as an object");
            let description = fields.shift_remove("description").unwrap_or("".into());
            operation.add_parameter(json!({
                "name": name,
                "in": "query",
                "required": false,
                "description": description,
                "schema": schema,
            }));
        }
    }
}

/// The parameters of a query string. The last one of a name counts.
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
            false => Err(must_be(name, "the `next` of an earlier response")),
        }
    }

    /// Reads `DD-MM-YYYY` or `DD-MM-YYYY/DD-MM-YYYY`: whole days in UTC, including the last one.
    fn days(&self, name: &str) -> Result<Option<Period>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let day = |text: &str| parse_date(text, "%d-%m-%Y");
        let (first, last) = text.split_once('/').unwrap_or((text, text));
        let period = day(first).zip(day(last)).filter(|(first, last)| first <= last);
        let period = period.and_then(|(first, last)| Period::of_days(first, last));
        let period = period.map(Some);
        period.ok_or_else(|| must_be(name, "DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY"))
    }

    fn truth(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.one_of(name, &["true", "false"])?.map(|text| text == "true"))
    }

    fn signature(&self, name: &str) -> Result<Option<[u8; 64]>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let mut bytes = [0; 64];
        hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| must_be(name, "128 hexadecimal digits"))?;
        Ok(Some(bytes))
    }

    /// Reads `18`, or `18/30` including both ends.
    fn range(&self, name: &str) -> Result<Option<[i64; 2]>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let (least, last) = text.split_once('/').unwrap_or((text, text));
        let is_plain = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number that overflows counts as the largest one.
        let number = |text: &str| text.parse().unwrap_or(i64::MAX);
        let number = |text| Some(text).filter(is_plain).map(number);
        let range = number(least).zip(number(last)).map(|(least, last)| [least, last]);
        let range = range.filter(|[least, last]| least <= last);
        range.map(Some).ok_or_else(|| must_be(name, "a whole number, or two as min/max"))
    }

    fn words(&self, name: &str) -> Result<Vec<String>> {
        let text = self.text(name).unwrap_or_default();
        if text.chars().count() > MAX_SEARCH_CHARACTERS {
            return Err(must_be(name, &format!("at most {MAX_SEARCH_CHARACTERS} characters")));
        }
        Ok(text.split_whitespace().map(str::to_owned).collect())
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

    fn order(&self, name: &str) -> Result<Option<SortOrder>> {
        Ok(self.one_of(name, &["asc", "desc"])?.map(|text| match &*text {
            "asc" => SortOrder::Ascending,
            _ => SortOrder::Descending,
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

    /// Reads a whole number of at least 1. One above `most` counts as `most`.
    fn capped(&self, name: &str, default: i64, most: i64) -> Result<i64> {
        let number = match self.text(name).map(str::parse::<i64>) {
            None => Some(default),
            Some(Ok(number)) => Some(number),
            Some(Err(error)) => (*error.kind() == IntErrorKind::PosOverflow).then_some(most),
        };
        match number {
            Some(number) if number >= 1 => Ok(number.min(most)),
            _ => Err(must_be(name, "a whole number of at least 1")),
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

        inline_schema! { [$($(const $bound: i64),*)?] $kind $(<$($bound),*>)? = |_generator| json_schema!($schema); }
    )*};
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
    /// A text that is compared exactly.
    Exactly -> Option<String> = |parameters, name| Ok(parameters.text(name).map(str::to_owned)),
        { "type": "string", "pattern": PLAIN };
    /// The `next` of the previous response; empty for the first page.
    Cursor -> String = |parameters, name| parameters.cursor(name),
        { "type": "string", "pattern": CURSOR };
    PageNumber -> i64 = |parameters, name| parameters.whole(name, 1, MAX_PAGES),
        { "type": "integer", "minimum": 1, "maximum": MAX_PAGES, "default": 1 };
    /// A limit; a number above `MOST` counts as `MOST`.
    Limit<const DEFAULT, const MOST> -> i64 = |parameters, name| parameters.capped(name, DEFAULT, MOST),
        { "type": "integer", "minimum": 1, "default": DEFAULT };
    /// A limit; a number above `MOST` is refused.
    StrictLimit<const DEFAULT, const MOST> -> i64 = |parameters, name| parameters.whole(name, DEFAULT, MOST),
        { "type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT };
    /// An optional limit.
    AtMost -> Option<i64> = |parameters, name| match parameters.text(name) {
            None => Ok(None),
            Some(_) => parameters.whole(name, 1, MAX_PAGES).map(Some),
        },
        { "type": "integer", "minimum": 1, "maximum": MAX_PAGES };
    Days -> Option<Period> = |parameters, name| parameters.days(name),
        { "type": "string", "pattern": DAYS, "examples": ["01-11-2026/30-11-2026"] };
    Truth -> Option<bool> = |parameters, name| parameters.truth(name),
        { "type": "boolean" };
    /// 64 bytes in hexadecimal.
    Signature -> Option<[u8; 64]> = |parameters, name| parameters.signature(name),
        { "type": "string", "pattern": "^([0-9A-Fa-f]{128})?$" };
    /// One number, or the two ends of a range.
    Range -> Option<[i64; 2]> = |parameters, name| parameters.range(name),
        { "type": "string", "pattern": r"^(\d+(/\d+)?)?$", "examples": ["18/30"] };
    /// Words that must all be found.
    Words -> Vec<String> = |parameters, name| parameters.words(name),
        { "type": "string", "maxLength": MAX_SEARCH_CHARACTERS, "pattern": PLAIN };
    /// `asc` is ascending, any other text descending.
    AscElseDesc -> Option<SortOrder> = |parameters, name| Ok(parameters.text(name).map(|text| match text {
            "asc" => SortOrder::Ascending,
            _ => SortOrder::Descending,
        })),
        { "type": "string", "examples": ["asc", "desc"], "pattern": PLAIN };
    Direction -> Option<SortOrder> = |parameters, name| parameters.order(name),
        { "type": "string", "enum": ["asc", "desc"] };
}

/// Parameters `NAME.KEY`, one for each key.
pub struct ByKey;

impl Field<Parameters> for ByKey {
    type Value = Vec<(String, String)>;

    fn read(parameters: &Parameters, name: &str) -> Result<Vec<(String, String)>> {
        parameters.by_key(name)
    }

    fn is_named(declared: &str, name: &str) -> bool {
        name.strip_prefix(declared).is_some_and(|key| key.starts_with('.'))
    }
}

inline_schema! {
    [] ByKey = |_generator| json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "pattern": PLAIN },
        "maxProperties": MAX_KEYS,
    });
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
        Query { parameters: Parameters(pairs.collect()), declared: PhantomData }
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
    fn ranges_have_both_ends() {
        let range = |text| query(&[("age", text)]).range("age");
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
