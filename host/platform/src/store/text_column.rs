//! Enums as texts in columns.

/// Stores enums as the texts that strum gives to their variants, by
/// `#[derive(EnumString, IntoStaticStr)]`. sqlx's derive knows only its own databases.
#[macro_export]
#[doc(hidden)]
macro_rules! __text_columns {
    ($($name:ty),* $(,)?) => {$(
        impl<DB: sqlx::Database> sqlx::Type<DB> for $name
        where
            str: sqlx::Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <str as sqlx::Type<DB>>::type_info()
            }

            fn compatible(found: &DB::TypeInfo) -> bool {
                <str as sqlx::Type<DB>>::compatible(found)
            }
        }

        impl<'q, DB: sqlx::Database> sqlx::Encode<'q, DB> for $name
        where
            &'static str: sqlx::Encode<'q, DB>,
        {
            fn encode_by_ref(
                &self,
                buffer: &mut DB::ArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <&'static str>::from(self).encode(buffer)
            }
        }

        impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name
        where
            &'r str: sqlx::Decode<'r, DB>,
        {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Ok(<&'r str as sqlx::Decode<'r, DB>>::decode(value)?.parse()?)
            }
        }
    )*};
}
