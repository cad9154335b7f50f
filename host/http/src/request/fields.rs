//! Kinds of request fields. Each reads and describes itself, so that code and document agree.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{
    body::{Body, Fields},
    query::Parameters,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::Result,
    values::money::{MAX_MINOR, Minor},
};

/// Declares the fields of a body or a query string: `fields! { Body Name { field: Kind, … } }`.
///
/// Each field becomes a private method of `Name` that reads it. The compiler warns about unused
/// methods, so every described field is read.
#[macro_export]
#[doc(hidden)]
macro_rules! __fields {
    (
        $(#[doc = $about:literal])*
        $(#[schemars $schema:tt])*
        $source:ident $name:ident {
            $($(#[$meta:meta])* $field:ident $(as $wire:literal)?: $kind:ty,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone)]
        pub struct $name($crate::request::fields::source::$source);

        impl From<$crate::request::fields::source::$source> for $name {
            fn from(source: $crate::request::fields::source::$source) -> $name {
                $name(source)
            }
        }

        impl std::ops::Deref for $name {
            type Target = $crate::request::fields::source::$source;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl $crate::request::fields::Declared for $name {
            fn has(name: &str) -> bool {
                $(<$kind as $crate::request::fields::Field<
                    $crate::request::fields::source::$source,
                >>::is_named([$($wire,)? stringify!($field)][0], name))||*
            }
        }

        // The inner type of the same name has the schema of the fields.
        const _: () = {
            #[derive(schemars::JsonSchema)]
            $(#[doc = $about])*
            $(#[schemars $schema])*
            #[expect(dead_code, reason = "only its schema is used")]
            struct $name {
                $($(#[$meta])* $(#[schemars(rename = $wire)])? $field: $kind,)*
            }

            impl schemars::JsonSchema for self::$name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    <$name as schemars::JsonSchema>::schema_name()
                }

                fn schema_id() -> std::borrow::Cow<'static, str> {
                    <$name as schemars::JsonSchema>::schema_id()
                }

                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    <$name as schemars::JsonSchema>::json_schema(generator)
                }
            }
        };

        impl $name {
            $(fn $field(
                &self,
            ) -> $crate::request::fields::ReadResult<$kind, $name> {
                let name = [$($wire,)? stringify!($field)][0];
                <$kind as $crate::request::fields::Field<_>>::read(&self.0, name)
            })*
        }
    };
}

pub use __fields as fields;

pub mod source {
    pub use super::super::{object::Fields as Body, query::Parameters as Query};
}

/// The result of reading a field.
pub type ReadResult<Kind, From> = Result<Read<Kind, From>>;

/// The value of a field of a request.
pub type Read<Kind, From> = <Kind as Field<<From as std::ops::Deref>::Target>>::Value;

/// A field of a body (`Source` = [`Fields`]) or of a query string.
pub trait Field<Source> {
    type Value;

    fn read(source: &Source, name: &str) -> Result<Self::Value>;

    /// Returns whether the field `declared` is read from the name `name`.
    #[must_use]
    fn is_named(declared: &str, name: &str) -> bool {
        declared == name
    }
}

/// The fields that a type declares by `fields!`.
pub trait Declared {
    /// Returns whether a field is read from the name `name`.
    fn has(name: &str) -> bool;
}

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
impl<T: From<Fields>> Field<Fields> for Body<T> {
    type Value = Body<T>;

    fn read(fields: &Fields, name: &str) -> Result<Body<T>> {
        fields.nested(name).map(Body::from)
    }
}

/// A nested object that may be omitted entirely.
impl<T: From<Fields>> Field<Fields> for Option<Body<T>> {
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

/// A list of objects; errors name the row. An empty list counts as absent.
pub struct Rows<T, const MOST: usize>(PhantomData<T>);

impl<T: From<Fields>, const MOST: usize> Kind for Rows<T, MOST> {
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

/// Describes a kind of field inline.
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

/// Pattern without control characters.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
/// Pattern without control characters, except tabs and line breaks.
const LINES: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$";
/// Pattern without control characters and whitespace.
const VISIBLE: &str = r"^[^\s\u0000-\u001F\u007F-\u009F]*$";

kinds! {
    /// At most `MOST` characters, without control characters.
    Text<const MOST: usize> -> String = |fields, name| fields.text(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": PLAIN };
    /// Like `Text`, but tabs and line breaks are allowed.
    Prose<const MOST: usize> -> String = |fields, name| fields.prose(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": LINES };
    /// Like `Text`, without whitespace.
    Visible<const MOST: usize> -> String = |fields, name| fields.visible(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE };
    /// Like `Visible`, but not `.` or `..`, which clients remove from URL paths.
    PathSegment<const MOST: usize> -> String = |fields, name| fields.path_segment(name, MOST),
        { "type": "string", "maxLength": MOST, "pattern": VISIBLE, "not": { "enum": [".", ".."] } };
    Email -> String = |fields, name| fields.email(name),
        { "type": "string", "format": "email", "maxLength": 254, "examples": ["ada@example.com"] };
    Phone -> String = |fields, name| fields.phone(name),
        { "type": "string", "pattern": r"^\+[1-9]\d{7,14}$", "examples": ["+2348012345678"] };
    /// An absolute http or https URL without credentials.
    HttpUrl -> String = |fields, name| fields.url(name),
        { "type": "string", "format": "iri", "maxLength": 2048, "pattern": "^https?://" };
    /// URL to which checkout returns a payer: http, https or an app link.
    ReturnUrl -> String = |fields, name| fields.return_url(name),
        { "type": "string", "format": "iri", "maxLength": 2048, "pattern": "^[A-Za-z][A-Za-z0-9+.-]+:/", "examples": ["https://lender.example/paid", "myapp://paid"] };
    Flag -> bool = |fields, name| fields.boolean(name),
        { "type": "boolean" };
    Whole<const LEAST: i64, const MOST: i64> -> i64 = |fields, name| fields.integer(name, LEAST, MOST),
        { "type": "integer", "minimum": LEAST, "maximum": MOST };
    /// A number in the major unit with at most 2 decimals.
    Decimal -> Minor = |fields, name| fields.number(name),
        { "type": "number", "multipleOf": 0.01 };
    /// Like `Decimal`, at least 0.
    NonNegative -> Minor = |fields, name| fields.non_negative(name),
        { "type": "number", "minimum": 0, "maximum": Minor(MAX_MINOR), "multipleOf": 0.01 };
    /// Like `Decimal`, greater than 0.
    Amount -> Minor = |fields, name| fields.amount(name).map(Some),
        { "type": "number", "exclusiveMinimum": 0, "maximum": Minor(MAX_MINOR), "multipleOf": 0.01, "examples": [2500.5] };
    Time -> Timestamp = |fields, name| fields.timestamp(name),
        { "type": "string", "format": "date-time", "maxLength": 40 };
    /// A list of texts without duplicates.
    Texts -> Vec<String> = |fields, name| fields.list(name),
        { "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 100, "pattern": PLAIN }, "maxItems": 100 };
    Object -> Map<String, Value> = |fields, name| fields.object(name),
        { "type": "object", "description": "At most 16 KiB of JSON." };
    /// Texts by name. An empty or `null` one counts as absent.
    TextsByName -> Vec<(String, String)> = |fields, name| fields.texts(name),
        { "type": "object", "additionalProperties": { "type": ["string", "null"], "maxLength": 4096, "pattern": PLAIN } };
}

/// A set of allowed texts.
pub trait Choice {
    const ALL: &'static [&'static str];
}

/// One of the allowed texts.
pub struct OneOf<C>(PhantomData<C>);

/// A list of allowed texts. An empty list counts as absent.
pub struct SomeOf<C>(PhantomData<C>);

/// A list of allowed texts, which may be empty.
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
