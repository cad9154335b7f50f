//! Kinds of request fields, each with its reader and its schema.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{
    body::{Body, Fields},
    fields::{Field, ReadFrom},
    query::Parameters,
    urls,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::Result,
    values::{
        email,
        money::{MAX_MINOR, Minor},
        phone,
    },
};

/// A kind of field in a body. It is required, unless it is in an `Option`.
pub trait Kind {
    type Value;

    fn read(fields: &Fields, name: &str) -> Result<Option<Self::Value>>;
}

impl<K: Kind> Field<Fields> for K {
    type Value = K::Value;

    fn read(fields: &Fields, name: &str) -> Result<K::Value> {
        K::read(fields, name)?.ok_or_else(|| fields.required(name))
    }
}

impl<K: Kind> Field<Fields> for Option<K> {
    type Value = Option<K::Value>;

    fn read(fields: &Fields, name: &str) -> Result<Option<K::Value>> {
        K::read(fields, name)
    }
}

/// A nested object. The object may be omitted; its required fields may not.
impl<T: ReadFrom<Fields>> Field<Fields> for Body<T> {
    type Value = T;

    fn read(fields: &Fields, name: &str) -> Result<T> {
        T::read_from(&fields.nested(name)?)
    }
}

/// A nested object that may be omitted entirely.
impl<T: ReadFrom<Fields>> Field<Fields> for Option<Body<T>> {
    type Value = Option<T>;

    fn read(fields: &Fields, name: &str) -> Result<Option<T>> {
        fields.is_given(name).then(|| <Body<T> as Field<_>>::read(fields, name)).transpose()
    }
}

impl<T: JsonSchema> JsonSchema for Body<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The value of an optional field in a partial update.
#[derive(Clone)]
pub enum Change<V> {
    /// The field was omitted.
    Unchanged,
    /// `None`: the field was `null` or empty.
    To(Option<V>),
}

impl<V> Change<V> {
    /// Changes a value, unless the field was omitted.
    pub fn apply(self, value: &mut Option<V>) {
        if let Change::To(new) = self {
            *value = new;
        }
    }

    /// Converts or checks the new value.
    pub fn try_map<W>(self, map: impl FnOnce(Option<V>) -> Result<Option<W>>) -> Result<Change<W>> {
        match self {
            Change::Unchanged => Ok(Change::Unchanged),
            Change::To(new) => map(new).map(Change::To),
        }
    }
}

// An optional field in a partial update: `null` clears it. A doc comment would be its description
// in the schema, which is that of the option.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub struct Clearable<K>(Option<K>);

impl<K: Kind> Field<Fields> for Clearable<K> {
    type Value = Change<K::Value>;

    fn read(fields: &Fields, name: &str) -> Result<Change<K::Value>> {
        let new = K::read(fields, name)?;
        Ok(if fields.has(name) { Change::To(new) } else { Change::Unchanged })
    }
}

// A required field in a partial update: it may be omitted, but not cleared.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub struct Changeable<K>(Option<K>);

impl<K: Kind> Field<Fields> for Changeable<K> {
    type Value = Option<K::Value>;

    fn read(fields: &Fields, name: &str) -> Result<Option<K::Value>> {
        match K::read(fields, name)? {
            None if fields.has(name) => Err(fields.required(name)),
            new => Ok(new),
        }
    }
}

/// A list of objects, unread; errors name the row. An empty list counts as absent.
pub struct Rows<T, const MOST: usize>(PhantomData<T>);

impl<T, const MOST: usize> Kind for Rows<T, MOST> {
    type Value = Vec<Fields>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<Fields>>> {
        fields.rows(name, MOST)
    }
}

/// Describes kinds of fields inline.
macro_rules! inline_schema {
    ($([$($parameter:tt)*] $kind:ty = |$generator:ident| $schema:expr;)*) => {$(
        impl<$($parameter)*> JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}
pub(super) use inline_schema;

/// Declares kinds of fields: `kinds! { Trait, Source -> Read; … }`. Each row: name, type of the
/// value, reader, and schema. `Read` is the type that the reader returns.
macro_rules! kinds {
    (
        $trait:path, $source:ident -> $result:ident;
        $(
            $(#[$about:meta])*
            $kind:ident $(<$(const $bound:ident: $of:ty),*>)? -> $value:ty =
                |$from:ident, $name:ident| $read:expr, $schema:tt;
        )*
    ) => {$(
        $(#[$about])*
        pub struct $kind $(<$(const $bound: $of),*>)?;

        impl $(<$(const $bound: $of),*>)? $trait for $kind $(<$($bound),*>)? {
            type Value = $value;

            fn read($from: &$source, $name: &str) -> $result<$value> {
                $read
            }
        }

        inline_schema! {
            [$($(const $bound: $of),*)?] $kind $(<$($bound),*>)? =
                |_generator| json_schema!($schema);
        }
    )*};
}
pub(super) use kinds;

/// A field that may be absent.
type Optional<T> = Result<Option<T>>;

const MAX_URL_BYTES: usize = 2_048;
/// Pattern without control characters.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// Pattern without control characters, except tabs and line breaks.
const LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$";
/// Pattern without control characters, except line breaks in PEM.
const PLAIN_OR_PEM: &str = r"^([^\u0000-\u001F\u007F-\u009F]*|-----BEGIN [^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*)$";
/// Pattern without control characters and whitespace.
const VISIBLE: &str = r"^[^\s\u0000-\u001F\u007F-\u009F]*$";

kinds! {
    Kind, Fields -> Optional;
    /// At most `MOST` characters, without control characters.
    Text<const MOST: usize> -> String = |fields, name| fields.text(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": PLAIN };
    /// A text of any length and characters, which is compared and never stored.
    ComparedText -> String = |fields, name| fields.any_text(name),
        { "type": "string" };
    /// Like `Text`, but tabs and line breaks are allowed.
    Prose<const MOST: usize> -> String = |fields, name| fields.prose(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": LINES };
    /// Like `Text`, without whitespace.
    Visible<const MOST: usize> -> String = |fields, name| fields.checked::<Text<MOST>>(
            name, "visible characters only", |text| !text.contains(char::is_whitespace)),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE };
    /// Like `Visible`, but not `.` or `..`, which clients remove from URL paths.
    PathSegment<const MOST: usize> -> String = |fields, name| fields.checked::<Visible<MOST>>(
            name, "neither . nor ..", |text| ![".", ".."].contains(&text.as_str())),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE, "not": { "enum": [".", ".."] } };
    Email -> String = |fields, name| fields.checked::<Text<254>>(
            name, "a valid email address", |text| email::is_valid(text)),
        { "type": "string", "format": "email", "maxLength": 254, "examples": ["ada@example.com"] };
    Phone -> String = |fields, name| fields.checked::<Text<100>>(
            name, "a phone number in E.164 format", |text| phone::is_e164(text)),
        { "type": "string", "pattern": r"^\+[1-9]\d{7,14}$", "examples": ["+2348012345678"] };
    /// An absolute http or https URL without credentials.
    HttpUrl -> String = |fields, name| fields.checked::<Text<MAX_URL_BYTES>>(
            name, "a valid http or https URL", |text| urls::is_http(text)),
        { "type": "string", "format": "iri", "maxLength": MAX_URL_BYTES, "pattern": "^https?://" };
    /// URL to which checkout returns a payer: http, https or an app link.
    ReturnUrl -> String = |fields, name| fields.checked::<Text<MAX_URL_BYTES>>(
            name, "a valid http or https URL, or an app link",
            |text| urls::is_http(text) || urls::is_app_link(text)),
        {
            "type": "string", "format": "iri", "maxLength": MAX_URL_BYTES,
            "pattern": "^[A-Za-z][A-Za-z0-9+.-]+:/",
            "examples": ["https://lender.example/paid", "myapp://paid"]
        };
    Flag -> bool = |fields, name| fields.boolean(name),
        { "type": "boolean" };
    Whole<const LEAST: i64, const MOST: i64> -> i64 = |fields, name|
            fields.integer(name, LEAST, MOST),
        { "type": "integer", "minimum": LEAST, "maximum": MOST };
    /// A list of 1 to 100 whole numbers.
    Wholes<const LEAST: i64, const MOST: i64> -> Vec<i64> = |fields, name|
            fields.integers(name, LEAST, MOST),
        {
            "type": "array",
            "items": { "type": "integer", "minimum": LEAST, "maximum": MOST },
            "minItems": 1,
            "maxItems": 100
        };
    /// A number in the major unit with at most 2 decimals.
    Decimal -> Minor = |fields, name| fields.number(name),
        { "type": "number", "multipleOf": 0.01 };
    /// Like `Decimal`, at least 0.
    NonNegative -> Minor = |fields, name| fields.checked::<Decimal>(
            name, "0 or more", |number| *number >= Minor(0)),
        { "type": "number", "minimum": 0, "maximum": Minor(MAX_MINOR), "multipleOf": 0.01 };
    /// Like `Decimal`, greater than 0.
    Amount -> Minor = |fields, name| fields.checked::<Decimal>(
            name, "greater than 0", |amount| *amount > Minor(0)),
        {
            "type": "number", "exclusiveMinimum": 0, "maximum": Minor(MAX_MINOR),
            "multipleOf": 0.01, "examples": [2500.5]
        };
    Time -> Timestamp = |fields, name| {
            let text = fields.text(name, 40)?;
            let at = text.map(|text| Timestamp::parse(&text).ok_or(()));
            at.transpose().map_err(|()| fields.must_be(name, "an RFC 3339 timestamp"))
        },
        { "type": "string", "format": "date-time", "maxLength": 40 };
    /// A list of texts without duplicates.
    Texts -> Vec<String> = |fields, name| fields.list(name),
        {
            "type": "array",
            "items": { "type": "string", "minLength": 1, "maxLength": 100, "pattern": PLAIN },
            "maxItems": 100
        };
    Object -> Map<String, Value> = |fields, name| fields.object(name),
        { "type": "object", "description": "At most 16 KiB of JSON." };
    /// Texts by name. An empty or `null` one counts as absent.
    TextsByName -> Vec<(String, String)> = |fields, name| fields.texts(name),
        {
            "type": "object",
            "additionalProperties": {
                "type": ["string", "null"], "maxLength": 16384, "pattern": PLAIN_OR_PEM,
                "description": "At most 4,096 characters, unless it is in PEM."
            }
        };
}

/// A set of allowed texts.
pub trait Choice {
    const ALL: &'static [&'static str];
}

/// Declares sets of allowed texts: `choices! { Name = &["one", "other"]; … }`.
#[macro_export]
#[doc(hidden)]
macro_rules! __choices {
    ($($name:ident = $texts:expr;)*) => {$(
        pub struct $name;

        impl $crate::request::kinds::Choice for $name {
            const ALL: &'static [&'static str] = $texts;
        }
    )*};
}

pub use __choices as choices;

/// One of the allowed texts.
pub struct OneOf<C>(PhantomData<C>);

/// A list of allowed texts. An empty list counts as absent.
pub struct SomeOf<C>(PhantomData<C>);

/// A list of allowed texts, which may be empty.
pub struct ListOf<C>(PhantomData<C>);

impl<C: Choice> Kind for OneOf<C> {
    type Value = String;

    fn read(fields: &Fields, name: &str) -> Result<Option<String>> {
        let text = fields.text(name, 100)?;
        text.iter().try_for_each(|text| fields.require_one_of(name, text, C::ALL))?;
        Ok(text)
    }
}

impl<C: Choice> Field<Parameters> for OneOf<C> {
    type Value = Option<String>;

    fn read(parameters: &Parameters, name: &str) -> Result<Option<String>> {
        parameters.one_of(name, C::ALL)
    }
}

impl<C: Choice> Kind for SomeOf<C> {
    type Value = Vec<String>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<String>>> {
        Ok(<ListOf<C> as Kind>::read(fields, name)?.filter(|set| !set.is_empty()))
    }
}

impl<C: Choice> Kind for ListOf<C> {
    type Value = Vec<String>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<String>>> {
        fields.checked::<Texts>(name, &format!("any of {}", C::ALL.join(", ")), |set| {
            set.iter().all(|item| C::ALL.contains(&item.as_str()))
        })
    }
}

inline_schema! {
    [T: JsonSchema, const MOST: usize] Rows<T, MOST> = |generator| {
        let one = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": one, "minItems": 1, "maxItems": MOST })
    };
    [C: Choice] OneOf<C> = |_generator| json_schema!({ "type": "string", "enum": C::ALL });
    [C: Choice] SomeOf<C> = |generator| {
        let one = generator.subschema_for::<OneOf<C>>();
        json_schema!({ "type": "array", "items": one, "maxItems": 100 })
    };
    [C: Choice] ListOf<C> = |generator| SomeOf::<C>::json_schema(generator);
}
