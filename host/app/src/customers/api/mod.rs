//! API of users, as specified.

pub mod bulk;
pub mod export;
mod fields;
mod list;

use axum::extract::State;

use self::fields::{NewUser, UserChange, apply_change, read_new_user};
pub use self::list::list;
use super::{FEATURE, User, View, create, find_by_email_or_id, store, verification};
use crate::{
    messaging::{messages::Channel, otp},
    state::App,
    tenants::companies::{AuthenticatedCompany, Company},
};
use tollhouse_http::{
    GetOnly, IdempotentRequest,
    request::{
        body::Body,
        fields::{Text, fields},
        path::Path,
    },
    response::{DataResponse, MessageResponse},
};
use tollhouse_platform::{
    error::{Error, Result},
    store::{Tx, is_duplicate},
    values::id::CompanyId,
};

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    body: Body<NewUser>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let (user, chosen) = read_new_user(&app, &company.id, &body)?;
    let (db, host) = (app.store.clone(), app.clone());
    let user =
        db.write(async move |tx| create::create(tx, &host, &company, user, chosen).await).await?;
    DataResponse::data(user.view(app.clock.now()), "User created successfully")
}

/// Returns a user by e-mail address, else by `user_id`, else by internal id.
pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(email_or_id): Path<String>,
) -> Result<DataResponse<View>> {
    let user =
        app.store.read(async |tx| find_or_not_found(tx, &company.id, &email_or_id).await).await?;
    DataResponse::data(user.view(app.clock.now()), "User fetched successfully")
}

async fn find_or_not_found(tx: &mut Tx, company_id: &CompanyId, name: &str) -> Result<User> {
    let user = find_by_email_or_id(tx, company_id, name).await?;
    user.ok_or_else(|| Error::not_found("user not found"))
}

/// Like [`named`], but locks the user until the transaction ends.
async fn lock_or_not_found(tx: &mut Tx, company_id: &CompanyId, name: &str) -> Result<User> {
    let user = find_or_not_found(tx, company_id, name).await?;
    let user = store::lock(tx, company_id, &user.id).await?;
    user.ok_or_else(|| Error::not_found("user not found"))
}

pub async fn edit(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
    body: Body<UserChange>,
) -> Result<DataResponse<View>> {
    let (db, host) = (app.store.clone(), app.clone());
    let user = db
        .write(async move |tx| {
            let before = lock_or_not_found(tx, &company.id, &user_id).await?;
            let mut user = before.clone();
            apply_change(&host, &mut user, &body)?;
            user.updated_at = host.clock.now();
            update(tx, &before, user).await
        })
        .await?;
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

pub async fn send_email(
    State(app): State<App>,
    _: GetOnly,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
) -> Result<MessageResponse> {
    send(app, company, user_id, Channel::Email).await?;
    Ok(MessageResponse("Email verification token sent successfully"))
}

pub async fn send_phone(
    State(app): State<App>,
    _: GetOnly,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
) -> Result<MessageResponse> {
    send(app, company, user_id, Channel::Sms).await?;
    Ok(MessageResponse("Phone verification token sent successfully"))
}

async fn send(app: App, company: Company, user_id: String, channel: Channel) -> Result<()> {
    let order = async move |tx: &mut Tx, _: &App, company: &Company| {
        let user = find_or_not_found(tx, &company.id, &user_id).await?;
        verification::code_request(company, &user, channel)
    };
    otp::send(&app, &company, order).await
}

fields! {
    /// A verification code.
    Body Token {
        /// Code as entered by the user.
        token: Text<255>,
    }
}

pub async fn verify_email(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    Path(user_id): Path<String>,
    body: Body<Token>,
) -> Result<MessageResponse> {
    verify(app, company, run, user_id, body, Channel::Email).await?;
    Ok(MessageResponse("Email verified successfully"))
}

pub async fn verify_phone(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    Path(user_id): Path<String>,
    body: Body<Token>,
) -> Result<MessageResponse> {
    verify(app, company, run, user_id, body, Channel::Sms).await?;
    Ok(MessageResponse("Phone verified successfully"))
}

async fn verify(
    app: App,
    company: Company,
    run: IdempotentRequest,
    user_id: String,
    body: Body<Token>,
    channel: Channel,
) -> Result<()> {
    let (db, host, run) = (app.store.clone(), app.clone(), run.name("user"));
    let checked = async move |tx: &mut Tx| {
        let user = lock_or_not_found(tx, &company.id, &user_id).await?;
        let token = body.token()?;
        verification::verify(tx, &host, user, channel, &token, run.as_deref()).await
    };
    otp::finish_check(&app, db.write(checked).await)
}
