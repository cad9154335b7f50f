//! Ids as types, so that the id of one record cannot stand in for that of another.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::store::SqlValue;

/// Declares types of opaque texts, written like plain strings in JSON, in SQL and in OpenAPI.
#[macro_export]
#[doc(hidden)]
macro_rules! __text_types {
    ($($(#[doc = $about:literal])* $name:ident;)*) => {$(
        $(#[doc = $about])*
        #[derive(
            Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Deserialize, serde::Serialize, sqlx::Type, schemars::JsonSchema,
        )]
        #[schemars(inline, rename = "string", with = "String", description = "")]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $name {
            fn from(id: T) -> $name {
                $name(id.into())
            }
        }

        impl From<&$name> for $crate::store::SqlValue {
            fn from(id: &$name) -> $crate::store::SqlValue {
                id.0.clone().into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

pub use __text_types as text_types;

text_types! {
    /// The id of a company.
    CompanyId;
}

/// The owner of a row: a company, or the service, whose column `company_id` is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Service,
    Company(CompanyId),
}

impl Owner {
    /// Returns the value of the column `company_id`.
    pub fn column(&self) -> &str {
        match self {
            Owner::Service => "",
            Owner::Company(id) => id,
        }
    }
}

impl From<&Owner> for SqlValue {
    fn from(owner: &Owner) -> SqlValue {
        owner.column().into()
    }
}

/// `null` for the service.
impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Owner::Service => serializer.serialize_none(),
            Owner::Company(id) => id.serialize(serializer),
        }
    }
}

impl JsonSchema for Owner {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Owner".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<CompanyId>::json_schema(generator)
    }
}

impl From<&CompanyId> for Owner {
    fn from(id: &CompanyId) -> Owner {
        id.clone().into()
    }
}

impl From<CompanyId> for Owner {
    fn from(id: CompanyId) -> Owner {
        Owner::Company(id)
    }
}

impl From<String> for Owner {
    fn from(column: String) -> Owner {
        if column.is_empty() { Owner::Service } else { Owner::Company(column.into()) }
    }
}
