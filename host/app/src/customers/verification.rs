//! Verification of a user's e-mail address and phone number by a code.

use super::{User, store};
use crate::{
    messaging::{
        messages::{Channel, Destination, Wording},
        otp::{self, CheckOutcome, CodeKey, CodeRequest},
    },
    state::prelude::*,
};

/// The address that a code sent over a channel verifies.
struct Subject {
    noun: &'static str,
    address_noun: &'static str,
    /// Purpose of the message, shown to operators.
    purpose: &'static str,
    address: Option<String>,
    is_verified: bool,
}

impl Subject {
    fn new(user: &User, channel: Channel) -> Subject {
        match channel {
            Channel::Email => Subject {
                noun: "email",
                address_noun: "email address",
                purpose: "user.email",
                address: user.email.clone(),
                is_verified: user.email_verified,
            },
            Channel::Sms => Subject {
                noun: "phone",
                address_noun: "phone number",
                purpose: "user.phone",
                address: user.phone.clone(),
                is_verified: user.phone_verified,
            },
        }
    }

    /// Bound to the address: a code sent to a previous address is invalid for the new one.
    fn code_key(&self, user: &User, channel: Channel) -> CodeKey {
        let to = self.address.clone().unwrap_or_default();
        CodeKey {
            scope: "user",
            identifier: user.id.to_string(),
            kind: self.noun.to_owned(),
            address: Destination { channel, to }.comparison_key(),
        }
    }
}

/// Returns the code to send. 400 if the address is already verified or missing.
pub fn code_request(user: &User, channel: Channel) -> Result<CodeRequest> {
    let subject = Subject::new(user, channel);
    let key = subject.code_key(user, channel);
    let Subject { noun, address_noun, purpose, address, is_verified } = subject;
    if is_verified {
        return Err(Error::invalid(format!("{noun} already verified")));
    }
    let Some(to) = address else {
        return Err(Error::invalid(format!("{address_noun} not found for this user")));
    };
    let wording = Wording {
        name: Some(user.first_name.clone()),
        header: Some(format!("Verify your {address_noun}")),
        body: None,
    };
    let destinations = vec![Destination { channel, to }];
    Ok(CodeRequest::verification(key, destinations, wording, purpose))
}

/// Checks a code and verifies the address. The caller must always commit, because wrong attempts
/// are counted.
pub async fn verify(
    tx: &mut Tx,
    app: &App,
    mut user: User,
    channel: Channel,
    token: &str,
    run: Option<&str>,
) -> Result<CheckOutcome> {
    let subject = Subject::new(&user, channel);
    let key = subject.code_key(&user, channel);
    let checked = otp::check(tx, app, &user.company_id, &key, token, run).await?;
    if checked == CheckOutcome::Passed && !subject.is_verified {
        match channel {
            Channel::Email => user.email_verified = true,
            Channel::Sms => user.phone_verified = true,
        }
        user.updated_at = app.clock.now();
        store::update(tx, &user).await?;
    }
    Ok(checked)
}
