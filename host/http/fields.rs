//! What requests may hold: each kind of field reads itself and describes itself, so neither says more than the other.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{
    body::{Body, Fields},
    query::Parameters,
};
use crate::{
    clock::Timestamp,
    error::Result,
    money::{MOST_MINOR, Minor},
};

/// Declares what a body or a query string holds. Each field becomes a method of `Body<Name>` or `Query<Name>` that reads it, private
/// to the module: one that nobody calls is a warning, so nothing is described that is not read.
macro_rules! fields {
    (
        $(#[$about:meta])*
        $source:ident $name:ident {
            $($(#[$meta:meta])* $field:ident $(as $wire:literal)?: $kind:ty,)*
        }
    ) => {
        #[derive(schemars::JsonSchema)]
        $(#[$about])*
        pub struct $name {
            $($(#[$meta])* $(#[schemars(rename = $wire)])? pub $field: $kind,)*
        }

        impl $crate::http::fields::Declared for $name {
            fn has(name: &str) -> bool {
                $(<$kind as $crate::http::fields::Field<
                    <$source<$name> as std::ops::Deref>::Target,
                >>::is_named([$($wire,)? stringify!($field)][0], name))||*
            }
        }

        impl $source<$name> {
            $(fn $field(
                &self,
            ) -> $crate::error::Result<$crate::http::fields::Read<$kind, $source<$name>>> {
                let name = [$($wire,)? stringify!($field)][0];
                <$kind as $crate::http::fields::Field<_>>::read(&**self, name)
            })*
        }
    };
}

pub(crate) use fields;

/// What a field of a request is read as.
pub type Read<Kind, From> = <Kind as Field<<From as std::ops::Deref>::Target>>::Value;

/// A field of a body (`Source` = [`Fields`]) or of a query string.
pub trait Field<Source> {
    type Value;

    fn read(source: &Source, name: &str) -> Result<Self::Value>;

    /// Whether the field that is declared as `declared` is read from what is sent as `name`.
    #[must_use]
    fn is_named(declared: &str, name: &str) -> bool {
        declared == name
    }
}

/// The fields that a type declares by `fields!`.
pub trait Declared {
    /// Whether a field is read from what is sent as `name`.
    fn has(name: &str) -> bool;
}

/// A kind of field in a body. Itself it is required, in an `Option` it is not.
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

/// An object inside of a body. It is not missed itself: what is required inside of it is.
impl<T> Field<Fields> for Body<T> {
    type Value = Body<T>;

    fn read(fields: &Fields, name: &str) -> Result<Body<T>> {
        fields.nested(name).map(Body::from)
    }
}

/// One that may be missed.
impl<T> Field<Fields> for Option<Body<T>> {
    type Value = Option<Body<T>>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Body<T>>> {
        let given = fields.is_given(name);
        given.then(|| fields.nested(name).map(Body::from)).transpose()
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

/// Objects of a list, each of which is named by its row. An empty list counts as absent.
pub struct Rows<T, const MOST: usize>(PhantomData<T>);

impl<T, const MOST: usize> Kind for Rows<T, MOST> {
    type Value = Vec<Body<T>>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<Body<T>>>> {
        let rows = fields.rows(name, MOST)?;
        Ok(rows.map(|rows| rows.into_iter().map(Body::from).collect()))
    }
}

impl<T: JsonSchema, const MOST: usize> JsonSchema for Rows<T, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": one, "minItems": 1, "maxItems": MOST })
    }
}

/// A kind of field is described in place, wherever it stands.
macro_rules! inline_schema {
    ($kind:ident [$($bound:ident: $of:ty),*] $schema:tt) => {
        impl<$(const $bound: $of),*> JsonSchema for $kind<$($bound),*> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}
pub(super) use inline_schema;

macro_rules! kinds {
    ($(
        $(#[$about:meta])*
        $kind:ident $(<$(const $bound:ident: $of:ty),*>)? -> $value:ty = $read:expr, $schema:tt;
    )*) => {$(
        $(#[$about])*
        pub struct $kind $(<$(const $bound: $of),*>)?;

        impl $(<$(const $bound: $of),*>)? Kind for $kind $(<$($bound),*>)? {
            type Value = $value;

            fn read(fields: &Fields, name: &str) -> Result<Option<$value>> {
                let read: fn(&Fields, &str) -> Result<Option<$value>> = $read;
                read(fields, name)
            }
        }

        inline_schema! { $kind [$($($bound: $of),*)?] $schema }
    )*};
}

/// No control characters, as a pattern.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// No control characters but tabs and the ends of lines.
const LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$";
/// Neither control characters nor blanks.
const VISIBLE: &str = r"^[^\s\u0000-\u001F\u007F-\u009F]*$";

kinds! {
    /// At most so many characters, none of which is a control character.
    Text<const MOST: usize> -> String = |fields, name| fields.text(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": PLAIN };
    /// The same, of several lines.
    Prose<const MOST: usize> -> String = |fields, name| fields.prose(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": LINES };
    /// The same without blanks.
    Visible<const MOST: usize> -> String = |fields, name| fields.visible(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE };
    /// The same, and neither `.` nor `..`, which clients remove from the path of a URL.
    PathSegment<const MOST: usize> -> String = |fields, name| fields.path_segment(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE, "not": { "enum": [".", ".."] } };
    Email -> String = |fields, name| fields.email(name),
        { "type": "string", "format": "email", "maxLength": 254, "examples": ["ada@example.com"] };
    Phone -> String = |fields, name| fields.phone(name),
        { "type": "string", "pattern": r"^\+[1-9]\d{7,14}$", "examples": ["+2348012345678"] };
    /// An absolute http or https URL without credentials.
    HttpUrl -> String = |fields, name| fields.url(name),
        { "type": "string", "format": "iri", "maxLength": 2048, "pattern": "^https?://" };
    /// Where a payer's browser or app goes from a checkout page: an http or https URL, or the link
    /// of an app.
    ReturnUrl -> String = |fields, name| fields.return_url(name),
        { "type": "string", "format": "iri", "maxLength": 2048, "pattern": "^[A-Za-z][A-Za-z0-9+.-]+:/", "examples": ["https://lender.example/paid", "myapp://paid"] };
    Flag -> bool = |fields, name| fields.boolean(name),
        { "type": "boolean" };
    Whole<const LEAST: i64, const MOST: i64> -> i64 = |fields, name| fields.integer(name, LEAST, MOST),
        { "type": "integer", "minimum": LEAST, "maximum": MOST };
    /// A number in the major unit with at most 2 decimals.
    Decimal -> Minor = |fields, name| fields.number(name),
        { "type": "number", "multipleOf": 0.01 };
    /// The same, at least 0.
    NonNegative -> Minor = |fields, name| fields.non_negative(name),
        { "type": "number", "minimum": 0, "maximum": Minor(MOST_MINOR), "multipleOf": 0.01 };
    /// The same, more than nothing.
    Amount -> Minor = |fields, name| fields.amount(name).map(Some),
        { "type": "number", "exclusiveMinimum": 0, "maximum": Minor(MOST_MINOR), "multipleOf": 0.01, "examples": [2500.5] };
    Time -> Timestamp = |fields, name| fields.timestamp(name),
        { "type": "string", "format": "date-time", "maxLength": 40 };
    /// Texts, each of which counts once.
    Texts -> Vec<String> = |fields, name| fields.list(name),
        { "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 100, "pattern": PLAIN }, "maxItems": 100 };
    Object -> Map<String, Value> = |fields, name| fields.object(name),
        { "type": "object", "description": "At most 16 KiB of JSON." };
    /// Texts by name. One that is empty or null counts as absent.
    TextsByName -> Vec<(String, String)> = |fields, name| fields.texts(name),
        { "type": "object", "additionalProperties": { "type": ["string", "null"], "maxLength": 4096, "pattern": PLAIN } };
}

/// A text that is one of a few.
pub trait Choice {
    const ALL: &'static [&'static str];
}

/// One of the texts.
pub struct OneOf<C>(PhantomData<C>);

/// Some of the texts. An empty list counts as absent.
pub struct SomeOf<C>(PhantomData<C>);

/// Some of the texts, or none of them.
pub struct ListOf<C>(PhantomData<C>);

impl<C: Choice> Kind for OneOf<C> {
    type Value = String;

    fn read(fields: &Fields, name: &str) -> Result<Option<String>> {
        fields.one_of(name, C::ALL)
    }
}

impl<C: Choice> Field<Parameters> for OneOf<C> {
    type Value = Option<String>;

    fn read(parameters: &Parameters, name: &str) -> Result<Option<String>> {
        parameters.one_of(name, C::ALL)
    }
}

impl<C: Choice> JsonSchema for OneOf<C> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOf".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": C::ALL })
    }
}

impl<C: Choice> Kind for SomeOf<C> {
    type Value = Vec<String>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<String>>> {
        Ok(fields.set_of(name, C::ALL)?.filter(|set| !set.is_empty()))
    }
}

impl<C: Choice> Kind for ListOf<C> {
    type Value = Vec<String>;

    fn read(fields: &Fields, name: &str) -> Result<Option<Vec<String>>> {
        fields.set_of(name, C::ALL)
    }
}

impl<C: Choice> JsonSchema for ListOf<C> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ListOf".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SomeOf::<C>::json_schema(generator)
    }
}

impl<C: Choice> JsonSchema for SomeOf<C> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SomeOf".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<OneOf<C>>();
        json_schema!({ "type": "array", "items": one, "maxItems": 100 })
    }
}
