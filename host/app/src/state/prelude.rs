//! Common imports of request handlers and flows: `use crate::state::prelude::*`.

pub use std::time::Duration;

pub use axum::extract::State;
pub use futures::{FutureExt, future::BoxFuture};
pub use schemars::JsonSchema;
pub use serde::Serialize;
pub use serde_json::{Map, Value, json};
pub use tracing::instrument;

pub use super::App;
pub use tollhouse_http::{
    GetOnly, IdempotentRequest,
    request::{
        body::{Body, Fields},
        fields::fields,
        kinds::{
            Amount, Change, Changeable, Choice, Clearable, ComparedText, Decimal, Email, Flag,
            HttpUrl, ListOf, NonNegative, Object, OneOf, PathSegment, Phone, Prose, ReturnUrl,
            Rows, SomeOf, Text, Texts, TextsByName, Time, Visible, Whole, Wholes, choices,
        },
        path::{OwnedId, Path, RecordId},
        query::{
            AscElseDesc, AtMost, ByKey, Cursor, Days, Direction, Exactly, Limit, PageNumber, Pages,
            Position, Query, Range, Signature, StrictLimit, Truth, Words,
        },
    },
    response::{DataResponse, MessageResponse},
};
pub use tollhouse_platform::{
    background::jobs::{self, Job, JobResult},
    clock::{DAY_MS, DAY_SECONDS, Timestamp},
    error::{Error, Result},
    store::{Json, Tx},
    telemetry::spans::SPAN_TARGET,
    values::{
        id::{CompanyId, Owner},
        listing::{ListPage, PageRequest, SortOrder, next_cursor},
        money::{BILLING_CURRENCY, Currency, Minor, Money},
    },
};
