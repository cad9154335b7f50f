//! API of one-time passwords.

use axum::extract::State;

use super::{API_SCOPE, CodeKey, CodeRequest, FEATURE, check, finish_check};
use crate::{
    messaging::messages::{Channel, Destination, Wording, resolve_wording},
    state::App,
    tenants::companies::{AuthenticatedCompany, Company},
};
use tollhouse_http::{
    IdempotentRequest,
    request::{
        body::Body,
        fields::{Choice, Email, Phone, Prose, SomeOf, Text, Whole, fields},
    },
    response::MessageResponse,
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
};

const DEFAULT_TYPE: &str = "otp";
const DEFAULT_MINUTES: i64 = 5;
const DEFAULT_DIGITS: i64 = 6;

pub struct Channels;

impl Choice for Channels {
    const ALL: &'static [&'static str] = Channel::NAMES;
}

fields! {
    /// A code to send.
    Body NewCode {
        /// Identifier to which the code is bound: your name of a customer, session or transaction.
        identifier: Text<255>,
        /// Channels by which the code is sent.
        channels: SomeOf<Channels>,
        /// Required if `channels` contains `email`; ignored otherwise.
        email: Option<Email>,
        /// Required if `channels` contains `sms`; ignored otherwise.
        phone: Option<Phone>,
        /// Type, which separates several codes of one identifier; default `otp`.
        r#type as "type": Option<Text<100>>,
        /// Lifetime of the code in minutes; default 5.
        exp: Option<Whole<1, 60>>,
        /// Digits of the code; default 6.
        length: Option<Whole<4, 8>>,
        /// Wording of the message; default: a heading and a sentence for any purpose.
        metadata: Body<CodeMetadata>,
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

pub async fn send(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewCode>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let order = read(&company, &run, &body)?;
    super::send(&app, &company, async move |_: &mut Tx, _: &App, _: &Company| Ok(order)).await?;
    Ok(MessageResponse("OTP sent successfully"))
}

/// Reads fields in the order of the specification, so that errors name the first invalid one.
fn read(company: &Company, run: &IdempotentRequest, body: &Body<NewCode>) -> Result<CodeRequest> {
    let identifier = body.identifier()?;
    let channels = body.channels()?;
    let wants = |channel: Channel| channels.iter().any(|name| name == channel.name());
    let mut destinations = Vec::new();
    if wants(Channel::Email) {
        let to = body.email()?.ok_or_else(|| body.required("email"))?;
        destinations.push(Destination { channel: Channel::Email, to });
    }
    if wants(Channel::Sms) {
        let to = body.phone()?.ok_or_else(|| body.required("phone"))?;
        destinations.push(Destination { channel: Channel::Sms, to });
    }
    let kind = body.r#type()?.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
    let minutes = body.exp()?.unwrap_or(DEFAULT_MINUTES);
    let digits = body.length()?.unwrap_or(DEFAULT_DIGITS);
    let metadata = body.metadata()?;
    let said =
        Wording { name: metadata.name()?, body: metadata.body()?, header: metadata.header()? };
    let (header, body, greeting) =
        resolve_wording(&company.name, body.is_given("metadata").then_some(&said));
    Ok(CodeRequest {
        key: key(identifier, kind),
        destinations,
        digits: usize::try_from(digits).map_err(Error::internal)?,
        minutes,
        header,
        body,
        greeting,
        purpose: "otp",
        run: run.name("otp"),
    })
}

fn key(identifier: String, kind: String) -> CodeKey {
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
        token: Text<255>,
    }
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<CodeTry>,
) -> Result<MessageResponse> {
    let identifier = body.identifier()?;
    let kind = body.r#type()?.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
    let (key, token, run) = (key(identifier, kind), body.token()?, run.name("otp"));
    let (db, host) = (app.store.clone(), app.clone());
    let checked =
        async move |tx: &mut Tx| check(tx, &host, &company.id, &key, &token, run.as_deref()).await;
    finish_check(&app, db.write(checked).await)?;
    Ok(MessageResponse("OTP verified successfully"))
}
