//! Storage of users.

pub mod exports;
pub mod imports;
pub mod list;
pub mod search;

use serde_json::{Map, Value};

use tollhouse_platform::{
    clock::Timestamp,
    store::{FromRow, Json, Result, Statement, Tx, params},
    values::id::{CompanyId, text_types},
};

text_types! {
    /// The internal id of a user. Companies may name a user otherwise, by `user_id`.
    UserKey;
}

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct User {
    pub company_id: CompanyId,
    pub id: UserKey,
    pub user_id: String,
    pub first_name: String,
    pub last_name: String,
    pub middle_name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
    /// `YYYY-MM-DD`.
    pub date_of_birth: Option<String>,
    pub gender: Option<String>,
    pub address: Option<String>,
    pub state: Option<String>,
    pub city: Option<String>,
    pub country: Option<String>,
    pub country_code: Option<String>,
    pub image: Option<String>,
    pub employment_status: Option<String>,
    pub years_of_employment: Option<i64>,
    pub email_verified: bool,
    pub phone_verified: bool,
    pub active: bool,
    pub metadata: Json<Map<String, Value>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Inserts a user; `false` if the e-mail address or the `user_id` is taken.
pub async fn insert(tx: &mut Tx, user: &User) -> Result<bool> {
    let inserted = insert_row(tx, user).await?;
    if inserted {
        search::index(tx, &[user]).await?;
    }
    Ok(inserted)
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
    Ok(bind(insert, user).bind(user.created_at).run().await? == 1)
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
    bind(update, user).run().await?;
    search::reindex(tx, user).await
}

/// Binds the key and the mutable columns as `$1` to `$24`.
fn bind<'t>(statement: Statement<'t>, user: &'t User) -> Statement<'t> {
    statement.params(params![
        &user.company_id,
        &user.id,
        &user.user_id,
        &user.first_name,
        &user.last_name,
        &user.middle_name,
        &user.email,
        user.email.as_deref().map(tollhouse_platform::values::email::comparison_key),
        &user.phone,
        &user.date_of_birth,
        &user.gender,
        &user.address,
        &user.state,
        &user.city,
        &user.country,
        &user.country_code,
        &user.image,
        &user.employment_status,
        user.years_of_employment,
        user.email_verified,
        user.phone_verified,
        user.active,
        &user.metadata,
        user.updated_at
    ])
}

pub async fn find_by_id(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<User>> {
    tx.sql("SELECT * FROM users WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .optional()
        .await
}

pub async fn find_by_user_id(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_id: &str,
) -> Result<Option<User>> {
    tx.sql("SELECT * FROM users WHERE company_id = $1 AND user_id = $2")
        .params(params![company_id, user_id])
        .optional()
        .await
}

pub async fn find_by_user_id_or_id(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<User>> {
    match find_by_user_id(tx, company_id, id).await? {
        None => find_by_id(tx, company_id, id).await,
        found => Ok(found),
    }
}

/// Returns the user with this e-mail address and locks its row until the transaction ends.
pub async fn lock_by_email(
    tx: &mut Tx,
    company_id: &CompanyId,
    email: &str,
) -> Result<Option<User>> {
    tx.sql("SELECT * FROM users WHERE company_id = $1 AND email_key = $2 FOR UPDATE")
        .params(params![company_id, tollhouse_platform::values::email::comparison_key(email)])
        .optional()
        .await
}

pub async fn find_by_email(
    tx: &mut Tx,
    company_id: &CompanyId,
    email: &str,
) -> Result<Option<User>> {
    tx.sql("SELECT * FROM users WHERE company_id = $1 AND email_key = $2")
        .params(params![company_id, tollhouse_platform::values::email::comparison_key(email)])
        .optional()
        .await
}

/// Returns the user with this internal id and locks its row until the transaction ends.
pub async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<User>> {
    tx.sql("SELECT * FROM users WHERE company_id = $1 AND id = $2 FOR UPDATE")
        .params(params![company_id, id])
        .optional()
        .await
}

/// Maximum number of ids for [`find_by_ids`].
pub const MAX_IDS_PER_QUERY: usize = 20;

/// Returns up to [`MAX_IDS_PER_QUERY`] users. Separate parameters: the engines bind arrays differently.
pub async fn find_by_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    ids: &[UserKey],
) -> Result<Vec<User>> {
    let Some(last) = ids.last() else { return Ok(Vec::new()) };
    let mut statement = tx
        .sql(
            "SELECT * FROM users WHERE company_id = $1 AND id IN ($2, $3, $4, $5, $6, $7, $8, $9,
                 $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        )
        .bind(company_id);
    for n in 0..MAX_IDS_PER_QUERY {
        statement = statement.bind(ids.get(n).unwrap_or(last));
    }
    statement.all().await
}
