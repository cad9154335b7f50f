//! Column types of plain values, which themselves know no database.

use sqlx::{Database, Decode, Encode, Type, encode::IsNull, error::BoxDynError};

use crate::{clock::Timestamp, values::money::Minor};

/// Stores a tuple struct of one field as that field.
macro_rules! stored_as {
    ($($outer:ident as $inner:ty),*) => {$(
        impl<D: Database> Type<D> for $outer
        where
            $inner: Type<D>,
        {
            fn type_info() -> D::TypeInfo {
                <$inner as Type<D>>::type_info()
            }

            fn compatible(column: &D::TypeInfo) -> bool {
                <$inner as Type<D>>::compatible(column)
            }
        }

        impl<'q, D: Database> Encode<'q, D> for $outer
        where
            $inner: Encode<'q, D>,
        {
            fn encode_by_ref(
                &self,
                buffer: &mut <D as Database>::ArgumentBuffer,
            ) -> Result<IsNull, BoxDynError> {
                self.0.encode_by_ref(buffer)
            }
        }

        impl<'r, D: Database> Decode<'r, D> for $outer
        where
            $inner: Decode<'r, D>,
        {
            fn decode(value: <D as Database>::ValueRef<'r>) -> Result<Self, BoxDynError> {
                <$inner as Decode<'r, D>>::decode(value).map($outer)
            }
        }
    )*};
}

stored_as!(Timestamp as i64, Minor as i64);
