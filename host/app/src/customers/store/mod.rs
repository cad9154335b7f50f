//! Storage of users.

pub mod exports;
pub mod imports;
pub mod list;
pub mod search;

use super::serialize_birth_date;
use crate::state::storage::*;
use tollhouse_platform::{store::Statement, values::email::comparison_key};

text_types! {
    /// The internal id of a user. Companies identify a user by `user_id`.
    UserKey;
}

/// A customer of a company.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct User {
    #[serde(skip)]
    pub company_id: CompanyId,
    pub id: UserKey,
    /// Chosen by the company, or generated with the prefix `usr-`.
    pub user_id: String,
    pub first_name: String,
    pub last_name: String,
    pub middle_name: Option<String>,
    pub email: Option<String>,
    /// E.164 format.
    pub phone: Option<String>,
    // Stored as `YYYY-MM-DD`.
    /// `DD/MM/YYYY`.
    #[serde(serialize_with = "serialize_birth_date")]
    pub date_of_birth: Option<String>,
    pub gender: Option<String>,
    pub address: Option<String>,
    pub state: Option<String>,
    pub city: Option<String>,
    /// English name in lower case.
    pub country: Option<String>,
    /// ISO 3166 code of two capital letters.
    pub country_code: Option<String>,
    pub image: Option<String>,
    pub employment_status: Option<String>,
    pub years_of_employment: Option<i64>,
    pub email_verified: bool,
    pub phone_verified: bool,
    pub active: bool,
    // `User::view` sets role and age.
    /// Always `customer`.
    #[sqlx(skip)]
    pub role: &'static str,
    /// Age in whole years, today in UTC.
    #[sqlx(skip)]
    pub age: Option<i32>,
    #[schemars(with = "Map<String, Value>")]
    pub metadata: Json<Map<String, Value>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Inserts a user; `false` if the e-mail address or the `user_id` is taken.
pub async fn insert(tx: &mut Tx, user: &User) -> Result<bool> {
    Ok(insert_all(tx, std::slice::from_ref(user)).await? == 1)
}

/// Inserts the users whose e-mail address and `user_id` are free, and returns their number.
pub async fn insert_all(tx: &mut Tx, users: &[User]) -> Result<i64> {
    let mut new = Vec::new();
    for user in users {
        if insert_row(tx, user).await? {
            new.push(user);
        }
    }
    search::index(tx, &new).await?;
    Ok(i64::try_from(new.len()).unwrap_or(i64::MAX))
}

async fn insert_row(tx: &mut Tx, user: &User) -> Result<bool> {
    let insert = tx.sql(
        "INSERT INTO users (company_id, id, user_id, first_name, last_name, middle_name, email,
             email_key, phone, date_of_birth, gender, address, state, city, country,
             country_code, image, employment_status, years_of_employment, email_verified,
             phone_verified, active, metadata, updated_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22, $23, $24, $25)
         ON CONFLICT DO NOTHING",
    );
    bind(insert, user).bind(user.created_at).affects_one().await
}

/// Updates a user. An e-mail address or `user_id` of another user is a duplicate error.
pub async fn update(tx: &mut Tx, user: &User) -> Result<()> {
    let update = tx.sql(
        "UPDATE users SET user_id = $3, first_name = $4, last_name = $5, middle_name = $6,
             email = $7, email_key = $8, phone = $9, date_of_birth = $10, gender = $11,
             address = $12, state = $13, city = $14, country = $15, country_code = $16,
             image = $17, employment_status = $18, years_of_employment = $19,
             email_verified = $20, phone_verified = $21, active = $22, metadata = $23,
             updated_at = $24
         WHERE company_id = $1 AND id = $2",
    );
    bind(update, user).execute().await?;
    search::reindex(tx, user).await
}

/// Binds the key and the mutable columns as `$1` to `$24`.
fn bind<'t>(statement: Statement<'t>, user: &'t User) -> Statement<'t> {
    let email_key = user.email.as_deref().map(comparison_key);
    statement.params(params![
        &user.company_id, &user.id, &user.user_id, &user.first_name, &user.last_name,
        &user.middle_name, &user.email, email_key, &user.phone, &user.date_of_birth, &user.gender,
        &user.address, &user.state, &user.city, &user.country, &user.country_code, &user.image,
        &user.employment_status, user.years_of_employment, user.email_verified,
        user.phone_verified, user.active, &user.metadata, user.updated_at
    ])
}

/// Declares queries for one user of a company: `name(value), parameter => "statement";`.
macro_rules! queries {
    ($($(#[$about:meta])* $name:ident($value:ident), $parameter:expr => $sql:literal;)*) => {$(
        $(#[$about])*
        pub async fn $name(
            tx: &mut Tx,
            company_id: &CompanyId,
            $value: &str,
        ) -> Result<Option<User>> {
            tx.sql($sql).params(params![company_id, $parameter]).optional().await
        }
    )*};
}

queries! {
    /// Returns a user by internal id, as other records refer to users. A `user_id` never matches.
    find_by_id(id), id => "SELECT * FROM users WHERE company_id = $1 AND id = $2";
    find_by_user_id(user_id), user_id
        => "SELECT * FROM users WHERE company_id = $1 AND user_id = $2";
    find_by_email(email), comparison_key(email)
        => "SELECT * FROM users WHERE company_id = $1 AND email_key = $2";
    /// Like [`find_by_id`], but locks the user until the transaction ends, to serialize changes
    /// such as that of the default card.
    lock(id), id => "SELECT * FROM users WHERE company_id = $1 AND id = $2 FOR UPDATE";
    /// Like [`find_by_email`], but locks the user until the transaction ends.
    lock_by_email(email), comparison_key(email)
        => "SELECT * FROM users WHERE company_id = $1 AND email_key = $2 FOR UPDATE";
}

/// Returns a user by `user_id`, else by internal id.
pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<User>> {
    match find_by_user_id(tx, company_id, id).await? {
        None => find_by_id(tx, company_id, id).await,
        found => Ok(found),
    }
}
