//! API of users, as specified.

pub mod bulk;
pub mod export;
mod fields;
mod list;
mod verification;

use self::fields::{NewUser, UserChange};
pub use self::{
    list::{UserFilter, list},
    verification::{send_email, send_phone, verify_email, verify_phone},
};
use super::{FEATURE, User, View, create, get_by_email_or_id, not_found, store};
use crate::tenants::prelude::*;
use tollhouse_platform::store::is_duplicate;

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    body: Body<NewUser>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let new = NewUser::read(&body, &app)?;
    let chosen = new.user_id.is_some();
    let user = new.into_user(&app, &company.id);
    let host = app.clone();
    let create = async move |tx: &mut Tx| create::create(tx, &host, &company, user, chosen).await;
    let user = app.store.write(create).await?;
    DataResponse::data(user.view(app.clock.now()), "User created successfully")
}

/// Returns a user by e-mail address, else by `user_id`, else by internal id.
pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(email_or_id): RecordId<String>,
) -> Result<DataResponse<View>> {
    let find = async |tx: &mut Tx| get_by_email_or_id(tx, &company.id, &email_or_id).await;
    let user = app.store.read(find).await?;
    DataResponse::data(user.view(app.clock.now()), "User fetched successfully")
}

/// Like [`get_by_email_or_id`], but locks the user until the transaction ends.
async fn lock_or_not_found(tx: &mut Tx, company_id: &CompanyId, name: &str) -> Result<User> {
    let user = get_by_email_or_id(tx, company_id, name).await?;
    store::lock(tx, company_id, &user.id).await?.ok_or_else(not_found)
}

pub async fn edit(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
    body: Body<UserChange>,
) -> Result<DataResponse<View>> {
    let host = app.clone();
    let edit = async move |tx: &mut Tx| {
        let before = lock_or_not_found(tx, &company.id, &user_id).await?;
        let mut user = before.clone();
        UserChange::read(&body, &host)?.apply(&mut user);
        user.updated_at = host.clock.now();
        update(tx, &before, user).await
    };
    let user = app.store.write(edit).await?;
    DataResponse::data(user.view(app.clock.now()), "User updated successfully")
}

/// Stores a changed user. 400 if another user has the `user_id` or the e-mail address.
async fn update(tx: &mut Tx, before: &User, user: User) -> Result<User> {
    let is_other = |found: Option<User>| found.is_some_and(|found| found.id != user.id);
    if is_other(store::find_by_user_id(tx, &user.company_id, &user.user_id).await?) {
        return Err(create::user_id_taken());
    }
    let taken = || Error::invalid("email already exists");
    if let Some(email) = &user.email
        && is_other(store::find_by_email(tx, &user.company_id, email).await?)
    {
        return Err(taken());
    }
    match store::update(tx, &user).await {
        // A concurrent request took the `user_id` or the e-mail address.
        Err(error) if is_duplicate(&error) && user.user_id != before.user_id => {
            Err(create::user_id_taken())
        }
        Err(error) if is_duplicate(&error) => Err(taken()),
        updated => Ok(updated.map(|()| user)?),
    }
}
