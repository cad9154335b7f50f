//! What SMTP and the SMS gateways would have delivered.

use std::{collections::VecDeque, sync::Mutex};

use serde::Serialize;
use tollhouse::clock::Timestamp;

use crate::locked;

const KEPT: usize = 2_000;

/// A delivered e-mail or text message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `email` or `sms`.
    pub channel: String,
    /// An address, or a phone number in E.164.
    pub to: String,
    pub subject: Option<String>,
    /// The plain part.
    pub text: String,
    pub html: Option<String>,
    pub at: Timestamp,
}

/// Bounded to the newest 2,000 messages.
#[derive(Default)]
pub struct Mailbox(Mutex<VecDeque<Message>>);

impl Mailbox {
    pub fn deliver(&self, message: Message) {
        let mut messages = locked(&self.0);
        messages.push_front(message);
        messages.truncate(KEPT);
    }

    /// Newest first; all of them, or those to one address or phone number.
    #[must_use]
    pub fn list(&self, to: Option<&str>) -> Vec<Message> {
        let wanted = to.map(plain_address);
        let fits =
            |m: &&Message| wanted.as_ref().is_none_or(|wanted| plain_address(&m.to) == *wanted);
        locked(&self.0).iter().filter(fits).cloned().collect()
    }
}

/// An address in lower case; a phone number as digits, since `+` becomes a blank in a query string.
fn plain_address(to: &str) -> String {
    let to = to.trim().to_lowercase();
    if to.contains('@') { to } else { to.chars().filter(char::is_ascii_alphanumeric).collect() }
}
