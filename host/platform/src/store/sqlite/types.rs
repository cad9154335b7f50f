//! SQLite as a database of sqlx's traits, so that sqlx's derives read the rows of rusqlite.
//!
//! sqlx's own driver executes each statement on another thread. This one does so on the caller's.
//! sqlx never opens a connection to it: see [`Never`].

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use rusqlite::types::Value;
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{
    Arguments, Column, ColumnIndex, Database, Decode, Encode, Row, Type, TypeInfo, ValueRef,
    encode::IsNull, error::BoxDynError, types::Json,
};

use super::never::Never;

/// The database of [`LocalConnection`](super::local::LocalConnection).
#[derive(Debug)]
pub struct Local;

impl Database for Local {
    type Connection = Never;
    type TransactionManager = Never;
    type Row = LocalRow;
    type QueryResult = ();
    type Column = LocalColumn;
    type TypeInfo = Storage;
    type Value = LocalValue;
    type ValueRef<'r> = LocalValueRef<'r>;
    type Arguments = LocalArguments;
    type ArgumentBuffer = Vec<Value>;
    type Statement = Never;

    const NAME: &'static str = "SQLite";
    const URL_SCHEMES: &'static [&'static str] = &[];
}

/// How SQLite stores a value. <https://www.sqlite.org/datatype3.html>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Null,
    Integer,
    Real,
    Text,
    Blob,
}

impl Storage {
    fn of(value: &Value) -> Storage {
        match value {
            Value::Null => Storage::Null,
            Value::Integer(_) => Storage::Integer,
            Value::Real(_) => Storage::Real,
            Value::Text(_) => Storage::Text,
            Value::Blob(_) => Storage::Blob,
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TypeInfo for Storage {
    fn is_null(&self) -> bool {
        *self == Storage::Null
    }

    fn name(&self) -> &str {
        match self {
            Storage::Null => "NULL",
            Storage::Integer => "INTEGER",
            Storage::Real => "REAL",
            Storage::Text => "TEXT",
            Storage::Blob => "BLOB",
        }
    }
}

// ---- rows ---------------------------------------------------------------------------------------

#[derive(Debug)]
pub struct LocalColumn {
    ordinal: usize,
    name: String,
}

impl Column for LocalColumn {
    type Database = Local;

    fn ordinal(&self) -> usize {
        self.ordinal
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// SQLite has a type per value, not per column.
    fn type_info(&self) -> &Storage {
        &Storage::Null
    }
}

/// The columns of a statement's rows.
#[derive(Debug)]
pub struct Columns {
    list: Vec<LocalColumn>,
    places: HashMap<String, usize>,
}

impl Columns {
    pub fn new(names: &[&str]) -> Columns {
        let places = names.iter().enumerate().map(|(place, name)| ((*name).to_owned(), place));
        let columns = names.iter().enumerate();
        let columns =
            columns.map(|(ordinal, name)| LocalColumn { ordinal, name: (*name).to_owned() });
        Columns { list: columns.collect(), places: places.collect() }
    }
}

/// A row with its values.
pub struct LocalRow {
    pub values: Box<[Value]>,
    pub columns: Arc<Columns>,
}

impl Row for LocalRow {
    type Database = Local;

    fn columns(&self) -> &[LocalColumn] {
        &self.columns.list
    }

    fn try_get_raw<I: ColumnIndex<Self>>(&self, index: I) -> sqlx::Result<LocalValueRef<'_>> {
        Ok(LocalValueRef(&self.values[index.index(self)?]))
    }
}

impl ColumnIndex<LocalRow> for usize {
    fn index(&self, row: &LocalRow) -> sqlx::Result<usize> {
        let len = row.values.len();
        let error = sqlx::Error::ColumnIndexOutOfBounds { index: *self, len };
        if *self < len { Ok(*self) } else { Err(error) }
    }
}

impl ColumnIndex<LocalRow> for &str {
    fn index(&self, row: &LocalRow) -> sqlx::Result<usize> {
        let place = row.columns.places.get(*self).copied();
        place.ok_or_else(|| sqlx::Error::ColumnNotFound((*self).to_owned()))
    }
}

// ---- values -------------------------------------------------------------------------------------

pub struct LocalValue(Value);

impl sqlx::Value for LocalValue {
    type Database = Local;

    fn as_ref(&self) -> LocalValueRef<'_> {
        LocalValueRef(&self.0)
    }

    fn type_info(&self) -> Cow<'_, Storage> {
        Cow::Owned(Storage::of(&self.0))
    }

    fn is_null(&self) -> bool {
        self.0 == Value::Null
    }
}

pub struct LocalValueRef<'r>(&'r Value);

impl<'r> ValueRef<'r> for LocalValueRef<'r> {
    type Database = Local;

    fn to_owned(&self) -> LocalValue {
        LocalValue(self.0.clone())
    }

    fn type_info(&self) -> Cow<'_, Storage> {
        Cow::Owned(Storage::of(self.0))
    }

    fn is_null(&self) -> bool {
        *self.0 == Value::Null
    }
}

fn mismatched<T>(value: &Value) -> Result<T, BoxDynError> {
    let found = Storage::of(value);
    Err(format!("the value is {found}, not {}", std::any::type_name::<T>()).into())
}

/// Declares how a type is stored: as a parameter, and in a row.
macro_rules! stored {
    ($($type:ty as $storage:ident: |$own:ident| $store:expr, |$stored:pat_param| $read:expr;)*) => {$(
        impl Type<Local> for $type {
            fn type_info() -> Storage {
                Storage::$storage
            }
        }

        impl Encode<'_, Local> for $type {
            fn encode_by_ref(&self, values: &mut Vec<Value>) -> Result<IsNull, BoxDynError> {
                let $own = self;
                values.push(Value::$storage($store));
                Ok(IsNull::No)
            }
        }

        impl<'r> Decode<'r, Local> for $type {
            fn decode(value: LocalValueRef<'r>) -> Result<$type, BoxDynError> {
                match value.0 {
                    Value::$storage($stored) => Ok($read),
                    other => mismatched(other),
                }
            }
        }
    )*};
}

stored! {
    i64 as Integer: |own| *own, |stored| *stored;
    i32 as Integer: |own| i64::from(*own), |stored| i32::try_from(*stored)?;
    bool as Integer: |own| i64::from(*own), |stored| *stored != 0;
    String as Text: |own| own.clone(), |stored| stored.clone();
    Vec<u8> as Blob: |own| own.clone(), |stored| stored.clone();
}

impl Type<Local> for str {
    fn type_info() -> Storage {
        Storage::Text
    }
}

impl Encode<'_, Local> for &'_ str {
    fn encode_by_ref(&self, values: &mut Vec<Value>) -> Result<IsNull, BoxDynError> {
        values.push(Value::Text((*self).to_owned()));
        Ok(IsNull::No)
    }
}

impl<'r> Decode<'r, Local> for &'r str {
    fn decode(value: LocalValueRef<'r>) -> Result<&'r str, BoxDynError> {
        match value.0 {
            Value::Text(text) => Ok(text),
            other => mismatched(other),
        }
    }
}

impl Type<Local> for [u8] {
    fn type_info() -> Storage {
        Storage::Blob
    }
}

impl Encode<'_, Local> for &'_ [u8] {
    fn encode_by_ref(&self, values: &mut Vec<Value>) -> Result<IsNull, BoxDynError> {
        values.push(Value::Blob((*self).to_vec()));
        Ok(IsNull::No)
    }
}

impl<T> Type<Local> for Json<T> {
    fn type_info() -> Storage {
        Storage::Text
    }

    fn compatible(found: &Storage) -> bool {
        *found != Storage::Blob
    }
}

impl<T: Serialize> Encode<'_, Local> for Json<T> {
    fn encode_by_ref(&self, values: &mut Vec<Value>) -> Result<IsNull, BoxDynError> {
        values.push(Value::Text(serde_json::to_string(&self.0)?));
        Ok(IsNull::No)
    }
}

/// In a column of type `JSONB`, SQLite stores a JSON number as a number.
impl<'r, T: DeserializeOwned + 'r> Decode<'r, Local> for Json<T> {
    fn decode(value: LocalValueRef<'r>) -> Result<Json<T>, BoxDynError> {
        Ok(Json(match value.0 {
            Value::Integer(number) => serde_json::from_str(&number.to_string())?,
            Value::Real(number) => serde_json::from_str(&number.to_string())?,
            _ => serde_json::from_str(<&str as Decode<Local>>::decode(value)?)?,
        }))
    }
}

sqlx_core::impl_encode_for_option!(Local);

// ---- parameters ---------------------------------------------------------------------------------

/// The parameters of a statement, in order.
#[derive(Default)]
pub struct LocalArguments(pub Vec<Value>);

impl Arguments for LocalArguments {
    type Database = Local;

    fn reserve(&mut self, additional: usize, _: usize) {
        self.0.reserve(additional);
    }

    fn add<'t, T: Encode<'t, Local> + Type<Local>>(&mut self, value: T) -> Result<(), BoxDynError> {
        if value.encode(&mut self.0)?.is_null() {
            self.0.push(Value::Null);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
