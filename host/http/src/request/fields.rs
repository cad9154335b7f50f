//! Declares requests: each field reads and describes itself, so that code and document agree.

use std::{marker::PhantomData, ops::Deref};

use tollhouse_platform::error::Result;

/// Declares a request: `fields! { Body Name { field: Kind, … } }`, or with `Query` for `Body`.
///
/// It yields the struct `Name` of the values and `Name::read`, which reads the fields in order, so
/// that an error names the first invalid one. `field as "name": Kind` has another name in the
/// request. After its kind, a field may have, in this order:
///
/// - `as Type`: the type of the value, if a check changes it.
/// - `where condition`: reads the field only if it holds; else the value is the default.
/// - `=> check`: the `Result` of this expression is the value. It may use the values of this field
///   and of those before it.
///
/// Conditions and checks may need more: `Body Name(body, app: &App)` names the source and adds
/// parameters to `read`. A request without parameters is read by `Body::read` or `Query::read`, and
/// may be nested.
#[macro_export]
#[doc(hidden)]
macro_rules! __fields {
    (
        $(#[doc = $about:literal])*
        $(#[schemars $schema:tt])*
        $source:ident $name:ident $(($from:ident $(, $context:ident: $given:ty)*))? {
            $(
                $(#[$meta:meta])*
                $field:ident $(as $wire:literal)?: $kind:ty $(as $value:ty)?
                    $(where $when:expr)? $(=> $checked:expr)?,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone)]
        pub struct $name {
            $(pub $field: $crate::__fields!(@value $source $kind $(, $value)?),)*
        }

        impl $name {
            /// Reads the fields in order.
            pub fn read(
                source: &$crate::request::fields::source::$source
                $($(, $context: $given)*)?
            ) -> $crate::request::fields::ReadResult<$name> {
                $(let $from = source;)?
                $(
                    let name = [$($wire,)? stringify!($field)][0];
                    let $field = $(if !($when) { Default::default() } else)? {
                        <$kind as $crate::request::fields::Field<_>>::read(source, name)?
                    };
                    $(
                        let checked: $crate::request::fields::ReadResult<_> = $checked;
                        let $field = checked?;
                    )?
                )*
                Ok($name { $($field),* })
            }
        }

        $crate::__fields!(@declared $source $name $($($context)*)?);

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
    };
    (@value $source:ident $kind:ty, $value:ty) => { $value };
    (@value $source:ident $kind:ty) => {
        <$kind as $crate::request::fields::Field<
            $crate::request::fields::source::$source,
        >>::Value
    };
    (@declared $source:ident $name:ident $($context:ident)+) => {};
    (@declared $source:ident $name:ident) => {
        impl $crate::request::fields::ReadFrom<$crate::request::fields::source::$source>
            for $name
        {
            fn read_from(
                source: &$crate::request::fields::source::$source,
            ) -> $crate::request::fields::ReadResult<$name> {
                $name::read(source)
            }
        }
    };
}

pub use __fields as fields;

pub mod source {
    pub use super::super::{object::Fields as Body, query::Parameters as Query};
}

/// A body or query string of the fields that `T` declares by [`fields!`].
pub struct Unread<Source, T> {
    source: Source,
    declared: PhantomData<fn() -> T>,
}

impl<Source, T> From<Source> for Unread<Source, T> {
    fn from(source: Source) -> Unread<Source, T> {
        Unread { source, declared: PhantomData }
    }
}

impl<Source: Clone, T> Clone for Unread<Source, T> {
    fn clone(&self) -> Unread<Source, T> {
        self.source.clone().into()
    }
}

impl<Source, T: ReadFrom<Source>> Unread<Source, T> {
    /// Reads the fields in order.
    pub fn read(&self) -> Result<T> {
        T::read_from(&self.source)
    }
}

impl<Source, T> Deref for Unread<Source, T> {
    type Target = Source;

    fn deref(&self) -> &Source {
        &self.source
    }
}

/// The result of reading a request.
pub type ReadResult<T> = Result<T>;

/// A request that `fields!` declares without context.
pub trait ReadFrom<Source>: Sized {
    fn read_from(source: &Source) -> Result<Self>;
}

/// A field of a body (`Source` = `source::Body`) or of a query string.
pub trait Field<Source> {
    type Value;

    fn read(source: &Source, name: &str) -> Result<Self::Value>;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::kinds::*, *};
    use crate::request::object::Fields;
    use tollhouse_platform::values::money::Minor;

    fields! {
        /// A transfer of at most `most`.
        Body Transfer(body, most: Minor) {
            amount: Amount => match amount <= most {
                true => Ok(amount),
                false => Err(body.must_be("amount", "covered")),
            },
            by_card: Flag,
            card: Option<Text<4>> where by_card,
            r#type as "type": Option<Text<9>> as usize => Ok(r#type.map_or(0, |text| text.len())),
        }
    }

    fields! {
        /// A partial update.
        Body Update {
            name: Changeable<Text<9>>,
            logo: Clearable<Text<9>>,
        }
    }

    fn fields_of(value: Value) -> Fields {
        let Value::Object(values) = value else { panic!("an object") };
        values.into()
    }

    #[test]
    fn fields_are_read_and_checked_in_order() {
        let read = |value| Transfer::read(&fields_of(value), Minor(500));
        for (value, expected) in [
            (json!({ "amount": 6, "by_card": 1 }), "the amount field must be covered"),
            (json!({ "amount": 5, "type": 1 }), "the by_card field is required"),
            (json!({ "amount": 5, "by_card": true, "card": 1 }), "the card field must be a string"),
            (
                json!({ "amount": 5, "by_card": false, "type": 1 }),
                "the type field must be a string",
            ),
        ] {
            assert_eq!(read(value).err().map(|e| e.to_string()).as_deref(), Some(expected));
        }
        let read =
            read(json!({ "amount": 5, "by_card": false, "card": 1, "type": "abc" })).unwrap();
        assert_eq!(read.card, None);
        assert_eq!((read.amount, read.by_card, read.r#type), (Minor(500), false, 3));
    }

    #[test]
    fn partial_updates_distinguish_omitted_from_null() {
        let read = |value| Update::read(&fields_of(value));
        for (value, logo) in [
            (json!({}), Some("old")),
            (json!({ "logo": null }), None),
            (json!({ "logo": "" }), None),
            (json!({ "logo": "new" }), Some("new")),
        ] {
            let (update, mut changed) = (read(value).unwrap(), Some("old".to_owned()));
            update.logo.apply(&mut changed);
            assert_eq!((update.name, changed.as_deref()), (None, logo));
        }
        let refused = read(json!({ "name": null })).err().map(|e| e.to_string());
        assert_eq!(refused.as_deref(), Some("the name field is required"));
    }
}
