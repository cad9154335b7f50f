//! Sending and verifying codes.

use axum::extract::State;

use super::{CALLERS, FEATURE, Key, Order, answer, check};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    http::{
        Caller, Run,
        answer::Done,
        body::Body,
        fields::{Choice, Email, Phone, Prose, SomeOf, Text, Whole, fields},
    },
    messages::{Channel, Destination, Wording, wording},
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
        /// What the code is tied to: your name of the customer, the session or the transaction.
        identifier: Text<255>,
        /// One code goes by each of them.
        channels: SomeOf<Channels>,
        /// Required if `channels` contains `email`; ignored otherwise.
        email: Option<Email>,
        /// Required if `channels` contains `sms`; ignored otherwise.
        phone: Option<Phone>,
        /// Lets an identifier have several codes at once; if it is left out, `otp`.
        r#type as "type": Option<Text<100>>,
        /// Minutes for which the code is good; if it is left out, 5.
        exp: Option<Whole<1, 60>>,
        /// Digits of the code; if it is left out, 6.
        length: Option<Whole<4, 8>>,
        /// What the message says. Without it, it has a heading and a sentence that suit any purpose.
        metadata: Body<CodeMetadata>,
    }
}

fields! {
    /// What the message says.
    Body CodeMetadata {
        /// Whom it greets.
        name: Option<Text<100>>,
        /// What it says before the code.
        body: Option<Prose<1_000>>,
        /// Its heading, and the subject of an e-mail.
        header: Option<Prose<200>>,
    }
}

pub async fn send(
    State(app): State<App>,
    Caller(company): Caller,
    run: Run,
    body: Body<NewCode>,
) -> Result<Done> {
    company.check_feature(FEATURE)?;
    let order = read(&company, &run, &body)?;
    super::send(&app, &company, async move |_: &mut Tx, _: &App, _: &Company| Ok(order)).await?;
    Ok(Done("OTP sent successfully"))
}

/// In the order of the specification's table, so that the first offending field is named.
fn read(company: &Company, run: &Run, body: &Body<NewCode>) -> Result<Order> {
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
        wording(&company.name, body.is_given("metadata").then_some(&said));
    Ok(Order {
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

fn key(identifier: String, kind: String) -> Key {
    Key { scope: CALLERS, identifier, kind, address: String::new() }
}

fields! {
    /// A code to verify.
    Body CodeTry {
        /// As it was sent.
        identifier: Text<255>,
        /// As it was sent; if it is left out, `otp`.
        r#type as "type": Option<Text<100>>,
        /// What the customer typed.
        token: Text<255>,
    }
}

pub async fn verify(
    State(app): State<App>,
    Caller(company): Caller,
    run: Run,
    body: Body<CodeTry>,
) -> Result<Done> {
    let identifier = body.identifier()?;
    let kind = body.r#type()?.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
    let (key, token, run) = (key(identifier, kind), body.token()?, run.name("otp"));
    let (db, host) = (app.store.clone(), app.clone());
    let checked =
        async move |tx: &mut Tx| check(tx, &host, &company.id, &key, &token, run.as_deref()).await;
    answer(&app, db.write(checked).await)?;
    Ok(Done("OTP verified successfully"))
}
