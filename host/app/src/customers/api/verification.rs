//! Verification of e-mail addresses and phone numbers.

use super::{get_by_email_or_id, lock_or_not_found};
use crate::{
    customers::verification,
    messaging::{messages::Channel, otp},
    tenants::prelude::*,
};

fields! {
    /// A verification code.
    Body Token {
        /// Code as entered by the user.
        token: ComparedText,
    }
}

/// Declares the handlers of a channel: one sends a code, the other verifies it.
macro_rules! handlers {
    ($($send:ident, $verify:ident: $channel:expr, $noun:literal;)*) => {$(
        pub async fn $send(
            State(app): State<App>,
            _: GetOnly,
            AuthenticatedCompany(company): AuthenticatedCompany,
            Path(user_id): Path<String>,
        ) -> Result<MessageResponse> {
            let order = async move |tx: &mut Tx, _: &App, company: &Company| {
                let user = get_by_email_or_id(tx, &company.id, &user_id).await?;
                verification::code_request(&user, $channel)
            };
            otp::send(&app, &company, order).await?;
            Ok(MessageResponse(concat!($noun, " verification token sent successfully")))
        }

        pub async fn $verify(
            State(app): State<App>,
            AuthenticatedCompany(company): AuthenticatedCompany,
            run: IdempotentRequest,
            Path(user_id): Path<String>,
            body: Body<Token>,
        ) -> Result<MessageResponse> {
            let (db, host, run) = (app.store.clone(), app.clone(), run.name("user"));
            let checked = async move |tx: &mut Tx| {
                let user = lock_or_not_found(tx, &company.id, &user_id).await?;
                let token = body.read()?.token;
                verification::verify(tx, &host, user, $channel, &token, run.as_deref()).await
            };
            otp::finish_check(&app, db.write(checked).await)?;
            Ok(MessageResponse(concat!($noun, " verified successfully")))
        }
    )*};
}

handlers! {
    send_email, verify_email: Channel::Email, "Email";
    send_phone, verify_phone: Channel::Sms, "Phone";
}
