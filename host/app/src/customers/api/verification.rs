//! Verification of e-mail addresses and phone numbers.

use super::{find_or_not_found, lock_or_not_found};
use crate::{
    customers::verification,
    messaging::{messages::Channel, otp},
    state::prelude::*,
    tenants::companies::{AuthenticatedCompany, Company},
};

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
        let token = body.read()?.token;
        verification::verify(tx, &host, user, channel, &token, run.as_deref()).await
    };
    otp::finish_check(&app, db.write(checked).await)
}
