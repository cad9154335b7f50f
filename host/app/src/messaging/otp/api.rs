//! API of one-time passwords.

use super::{API_SCOPE, CodeKey, CodeRequest, FEATURE, check, finish_check};
use crate::{
    messaging::messages::{Channel, Destination, Wording},
    tenants::prelude::*,
};

const DEFAULT_TYPE: &str = "otp";
const DEFAULT_MINUTES: i64 = 5;
const DEFAULT_DIGITS: i64 = 6;

fields! {
    /// A code to send.
    Body NewCode(body) {
        /// Identifier to which the code is bound: your name of a customer, session or transaction.
        identifier: Text<255>,
        /// Channels by which the code is sent.
        channels: SomeOf<Channel>,
        /// Required if `channels` contains `email`; ignored otherwise.
        email: Option<Email> where has(&channels, Channel::Email) => match email {
            None if has(&channels, Channel::Email) => Err(body.required("email")),
            _ => Ok(email),
        },
        /// Required if `channels` contains `sms`; ignored otherwise.
        phone: Option<Phone> where has(&channels, Channel::Sms) => match phone {
            None if has(&channels, Channel::Sms) => Err(body.required("phone")),
            _ => Ok(phone),
        },
        /// Type, which separates several codes of one identifier; default `otp`.
        r#type as "type": Option<Text<100>>,
        /// Lifetime of the code in minutes; default 5.
        exp: Option<Whole<1, 60>>,
        /// Digits of the code; default 6.
        length: Option<Whole<4, 8>>,
        /// Wording of the message; default: a heading and a sentence for any purpose.
        metadata: Body<CodeMetadata> as Option<Wording>
            => Ok(body.is_given("metadata").then(|| {
                let CodeMetadata { name, header, body } = metadata;
                Wording { name, header, body }
            })),
    }
}

fields! {
    /// Wording of a message.
    Body CodeMetadata {
        /// Name in the greeting.
        name: Option<Text<100>>,
        /// Text before the code.
        body: Option<Prose<1_000>>,
        /// Heading, and subject of an e-mail.
        header: Option<Prose<200>>,
    }
}

fn has(channels: &[String], channel: Channel) -> bool {
    channels.iter().any(|name| name == channel.name())
}

pub async fn send(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewCode>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let new = body.read()?;
    let email = new.email.map(|to| Destination { channel: Channel::Email, to });
    let phone = new.phone.map(|to| Destination { channel: Channel::Sms, to });
    let digits = new.length.unwrap_or(DEFAULT_DIGITS);
    let order = CodeRequest {
        key: key(new.identifier, new.r#type),
        destinations: email.into_iter().chain(phone).collect(),
        digits: usize::try_from(digits).map_err(Error::internal)?,
        minutes: new.exp.unwrap_or(DEFAULT_MINUTES),
        wording: new.metadata,
        purpose: "otp",
        run: run.name("otp"),
    };
    super::send(&app, &company, async move |_: &mut Tx, _: &App, _: &Company| Ok(order)).await?;
    Ok(MessageResponse("OTP sent successfully"))
}

fn key(identifier: String, kind: Option<String>) -> CodeKey {
    let kind = kind.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
    CodeKey { scope: API_SCOPE, identifier, kind, address: String::new() }
}

fields! {
    /// A code to verify.
    Body CodeTry {
        /// Identifier with which the code was sent.
        identifier: Text<255>,
        /// Type with which the code was sent; default `otp`.
        r#type as "type": Option<Text<100>>,
        /// Code as entered by the customer.
        token: ComparedText,
    }
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<CodeTry>,
) -> Result<MessageResponse> {
    let CodeTry { identifier, r#type, token } = body.read()?;
    let (key, run) = (key(identifier, r#type), run.name("otp"));
    let (db, host) = (app.store.clone(), app.clone());
    let checked =
        async move |tx: &mut Tx| check(tx, &host, &company.id, &key, &token, run.as_deref()).await;
    finish_check(&app, db.write(checked).await)?;
    Ok(MessageResponse("OTP verified successfully"))
}
