//! Common imports of storage modules: `use crate::state::storage::*`.

pub use schemars::JsonSchema;
pub use serde::Serialize;
pub use serde_json::{Map, Value};

pub use super::{
    App,
    totals::{SELECT_COUNT, select_total},
};
pub use tollhouse_platform::{
    clock::Timestamp,
    crypto::seal::{SealError, SealedColumn, Sealer, sealed_column},
    store::{
        DynamicStatement, EnumString, FromRow, IntoStaticStr, Json, ListTotal, Result, SqlValue,
        Tx, params, text_columns,
    },
    values::{
        id::{CompanyId, Owner, text_types},
        listing::{ListOrder, ListPage, PageRequest, SortOrder},
        money::{BILLING_CURRENCY, Currency, Minor, Money},
    },
};
