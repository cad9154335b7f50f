//! What SMTP and the SMS gateways would have delivered.

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
    /// An address, or a phone number in E.164.
    pub to: String,
    pub subject: Option<String>,
    /// The plain part.
    pub text: String,
    pub html: Option<String>,
    pub at: Timestamp,
    /// Rising, from 1; given at delivery.
    #[serde(skip)]
    pub id: u64,
    /// `Name <address>` of an e-mail, decoded; of a text message its sender.
    #[serde(skip)]
    pub from: String,
    /// An e-mail's headers in their order, on one line each, not decoded.
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

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Bounded to the newest 2,000 messages.
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

    /// Newest first; all of them, or those to one address or phone number.
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

/// An address in lower case; a phone number as digits, since `+` becomes a blank in a query string.
fn plain_address(to: &str) -> String {
    let to = to.trim().to_lowercase();
    if to.contains('@') { to } else { to.chars().filter(char::is_ascii_alphanumeric).collect() }
}
