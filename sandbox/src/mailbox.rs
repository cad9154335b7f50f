//! The messages delivered through SMTP and the SMS gateways.

use std::{collections::VecDeque, sync::Mutex};

use serde::Serialize;
use tollhouse_platform::clock::Timestamp;

use crate::locked;

const MAX_MESSAGES: usize = 2_000;

/// A delivered e-mail or text message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `email` or `sms`.
    pub channel: String,
    /// An e-mail address, or a phone number in E.164.
    pub to: String,
    pub subject: Option<String>,
    /// The plain-text part.
    pub text: String,
    pub html: Option<String>,
    pub at: Timestamp,
    /// Increases from 1; assigned at delivery.
    #[serde(skip)]
    pub id: u64,
    /// `Name <address>` of an e-mail, decoded, or the sender of a text message.
    #[serde(skip)]
    pub from: String,
    /// Headers of an e-mail in their original order, unfolded but not decoded.
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
}

impl Message {
    #[must_use]
    pub fn sms(from: &str, to: &str, text: &str, at: Timestamp) -> Message {
        Message {
            channel: "sms".to_owned(),
            to: to.to_owned(),
            text: text.to_owned(),
            at,
            from: from.to_owned(),
            ..Message::default()
        }
    }

    /// Returns the first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The messages. Keeps the newest 2,000.
#[derive(Default)]
pub struct Mailbox(Mutex<StoredMessages>);

#[derive(Default)]
struct StoredMessages {
    messages: VecDeque<Message>,
    last_id: u64,
}

impl Mailbox {
    pub fn deliver(&self, message: Message) {
        let mut kept = locked(&self.0);
        kept.last_id += 1;
        let id = kept.last_id;
        kept.messages.push_front(Message { id, ..message });
        kept.messages.truncate(MAX_MESSAGES);
    }

    /// Returns all messages, or those to one address or phone number, newest first.
    #[must_use]
    pub fn list(&self, to: Option<&str>) -> Vec<Message> {
        let wanted = to.map(plain_address);
        let fits =
            |m: &&Message| wanted.as_ref().is_none_or(|wanted| plain_address(&m.to) == *wanted);
        locked(&self.0).messages.iter().filter(fits).cloned().collect()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Message> {
        locked(&self.0).messages.iter().find(|message| message.id == id).cloned()
    }
}

/// Normalizes an address to lower case, and a phone number to digits, because `+` becomes a space
/// in a query string.
fn plain_address(to: &str) -> String {
    let to = to.trim().to_lowercase();
    if to.contains('@') { to } else { to.chars().filter(char::is_ascii_alphanumeric).collect() }
}
