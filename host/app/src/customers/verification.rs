//! Verification of a user's e-mail address and phone number by a code.

use super::{User, store};
use crate::{
    messaging::{
        messages::{Channel, Destination, Wording, resolve_wording},
        otp::{self, CheckOutcome, CodeKey, CodeRequest},
    },
    state::App,
    tenants::companies::Company,
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
    values::email,
};

const CODE_DIGITS: usize = 6;
const CODE_MINUTES: i64 = 10;

/// Returns the code to send. 400 if the address is already verified or missing.
pub fn code_request(company: &Company, user: &User, channel: Channel) -> Result<CodeRequest> {
    if is_verified(user, channel) {
        return Err(Error::invalid(format!("{} already verified", channel_noun(channel))));
    }
    let Some(to) = address(user, channel) else {
        let what = address_noun(channel);
        return Err(Error::invalid(format!("{what} not found for this user")));
    };
    let said = Wording {
        name: Some(user.first_name.clone()),
        header: Some(format!("Verify your {}", address_noun(channel))),
        body: None,
    };
    let (header, body, greeting) = resolve_wording(&company.name, Some(&said));
    Ok(CodeRequest {
        key: code_key(user, channel),
        destinations: vec![Destination { channel, to: to.to_owned() }],
        digits: CODE_DIGITS,
        minutes: CODE_MINUTES,
        header,
        body,
        greeting,
        purpose: purpose(channel),
        run: None,
    })
}

/// Checks a code and verifies the address. Always commit, because wrong attempts are counted.
pub async fn verify(
    tx: &mut Tx,
    app: &App,
    mut user: User,
    channel: Channel,
    token: &str,
    run: Option<&str>,
) -> Result<CheckOutcome> {
    let checked =
        otp::check(tx, app, &user.company_id, &code_key(&user, channel), token, run).await?;
    if checked == CheckOutcome::Passed && !is_verified(&user, channel) {
        *verified_flag(&mut user, channel) = true;
        user.updated_at = app.clock.now();
        store::update(tx, &user).await?;
    }
    Ok(checked)
}

/// Bound to the address: a code sent to a previous address is invalid for the new one.
fn code_key(user: &User, channel: Channel) -> CodeKey {
    let address = address(user, channel).unwrap_or_default();
    let address =
        if channel == Channel::Email { email::comparison_key(address) } else { address.to_owned() };
    CodeKey {
        scope: "user",
        identifier: user.id.to_string(),
        kind: channel_noun(channel).to_owned(),
        address,
    }
}

fn address(user: &User, channel: Channel) -> Option<&str> {
    match channel {
        Channel::Email => user.email.as_deref(),
        Channel::Sms => user.phone.as_deref(),
    }
}

fn verified_flag(user: &mut User, channel: Channel) -> &mut bool {
    match channel {
        Channel::Email => &mut user.email_verified,
        Channel::Sms => &mut user.phone_verified,
    }
}

fn is_verified(user: &User, channel: Channel) -> bool {
    match channel {
        Channel::Email => user.email_verified,
        Channel::Sms => user.phone_verified,
    }
}

fn channel_noun(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "email",
        Channel::Sms => "phone",
    }
}

fn address_noun(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "email address",
        Channel::Sms => "phone number",
    }
}

/// Purpose of the message, shown to operators.
fn purpose(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "user.email",
        Channel::Sms => "user.phone",
    }
}
