//! E-mails and text messages: a queue, filled in the transaction of the cause, and its delivery.
//!
//! Messages are delivered at least once: an attempt without confirmation is repeated. A message
//! that expires or is rejected fails, and its fee is refunded. Content is sealed until the message
//! ends.

pub mod api;
mod content;
mod deliver;
mod gateways;
mod store;

use serde::Deserialize;

pub use self::{
    content::{Content, InvitationContent, OtpContent, Wording, resolve_wording},
    deliver::deliver_job,
    gateways::Gateways,
    store::{Message, SEALED, State},
};
use crate::tenants::prelude::*;
use tollhouse_platform::{
    store::{EnumString, IntoStaticStr, text_columns},
    values::email,
};

pub const EMAIL_JOB: &str = "message.email";
pub const SMS_JOB: &str = "message.sms";

/// Channel of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Email,
    Sms,
}

text_columns!(Channel);

impl Channel {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the job kind, one per channel: a slow mail server does not delay text messages.
    fn job_kind(self) -> &'static str {
        match self {
            Channel::Email => EMAIL_JOB,
            Channel::Sms => SMS_JOB,
        }
    }

    /// Returns the billing item of a code sent by this channel.
    pub fn billing_item(self) -> &'static str {
        match self {
            Channel::Email => "otp.email",
            Channel::Sms => "otp.sms",
        }
    }
}

/// Recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    pub channel: Channel,
    /// E-mail address, or phone number in E.164 format.
    pub to: String,
}

impl Destination {
    /// Returns the address in a form that is equal for equivalent addresses.
    pub fn comparison_key(&self) -> String {
        match self.channel {
            Channel::Email => email::comparison_key(&self.to),
            Channel::Sms => self.to.clone(),
        }
    }

    /// Returns a key that is equal for equivalent addresses of a channel.
    pub fn key(&self) -> String {
        format!("{}:{}", self.channel.name(), self.comparison_key())
    }

    /// Returns the texts whose keyed digest identifies the address among those of a company.
    fn digest_parts(&self, company_id: &CompanyId) -> [String; 3] {
        ["message".to_owned(), company_id.to_string(), self.key()]
    }

    /// Returns the masked address: `a***@example.com`, `+234***78`.
    fn masked(&self) -> String {
        let (first, last) = match self.channel {
            Channel::Email => {
                let at = self.to.rfind('@').unwrap_or(self.to.len());
                (self.to.chars().take(1).collect(), &self.to[at..])
            }
            Channel::Sms => {
                let last = self.to.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
                (self.to.chars().take(4).collect::<String>(), &self.to[last..])
            }
        };
        format!("{first}***{last}")
    }
}

/// Recipient and content of a message, sealed as JSON.
#[derive(Serialize, Deserialize)]
struct MessageContent {
    to: String,
    text: Content,
}

fn seal_context(company_id: &str, id: &str) -> String {
    format!("messages/{company_id}/{id}/content")
}

/// Checks that a message can be sent to a destination. 400 for a number that the company may not
/// send to, or if it has no account at a gateway; 503 if the channel is not set up.
pub async fn check(tx: &mut Tx, app: &App, company: &Company, to: &Destination) -> Result<()> {
    match to.channel {
        Channel::Email if app.mailer.is_none() => Err(Error::Unavailable(
            "e-mail is not configured: contact the operator of this service",
        )),
        Channel::Email => Ok(()),
        Channel::Sms => {
            company.check_phone(&to.to, &app.settings.otp.sms_countries)?;
            gateways::check(tx, app, company).await
        }
    }
}

/// Queues a message to `to` in the transaction of its cause.
pub async fn enqueue(
    tx: &mut Tx,
    app: &App,
    mut message: Message,
    to: &str,
    text: Content,
) -> Result<()> {
    let content = MessageContent { to: to.to_owned(), text };
    let content = serde_json::to_string(&content).map_err(Error::internal)?;
    let context = seal_context(&message.company_id, &message.id);
    message.content = Some(app.sealer.seal(&context, &content));
    store::insert(tx, &message).await?;
    let (job, now) = (message.channel.job_kind(), message.created_at);
    Ok(jobs::enqueue(tx, &message.company_id, job, &message.id, now).await?)
}

/// Records a message refused before it was queued, for support. It has no content and no fee.
pub async fn record_rejected(tx: &mut Tx, message: Message, reason: &str) -> Result<()> {
    let (reason, ended_at) = (reason.to_owned(), Some(message.created_at));
    let rejected = Message { state: State::Failed, reason, ended_at, ..message };
    Ok(store::insert(tx, &rejected).await?)
}

impl Message {
    /// Returns a message without content and fee. Its purpose is shown to operators.
    pub fn new(app: &App, company_id: &CompanyId, to: &Destination, purpose: &str) -> Message {
        let now = app.clock.now();
        Message {
            company_id: company_id.to_owned(),
            id: app.random.id(now),
            channel: to.channel,
            purpose: purpose.to_owned(),
            topic: String::new(),
            recipient: to.masked(),
            recipient_digest: Some(app.sealer.digest(&to.digest_parts(company_id))),
            content: None,
            state: State::Pending,
            attempts: 0,
            reason: String::new(),
            via: None,
            via_id: None,
            charge_key: String::new(),
            give_up_at: now,
            created_at: now,
            ended_at: None,
        }
    }
}

/// Cancels the queued messages of a topic, because they are outdated, and refunds their fees. A
/// message in flight is not recalled or retried: if it is accepted, its fee stays.
pub async fn cancel_superseded(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    topic: &str,
) -> Result<()> {
    for charge_key in store::cancel_superseded(tx, company_id, topic, app.clock.now()).await? {
        wallet::refund_fee(tx, app, company_id, &charge_key).await?;
    }
    Ok(())
}

/// Deletes messages that ended before the retention period, and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let before = app.settings.retention_cutoff(app.clock.now());
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, before, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}

/// Outcome of a delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SendOutcome {
    /// Accepted by the mail server, or by a gateway under an id.
    Accepted { via: String, id: Option<String> },
    /// Rejected permanently for this recipient.
    Rejected(String),
    /// Temporary failure: a later attempt or another gateway may succeed.
    Retryable(String),
    /// The message has expired.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    Delivered,
    Failed,
    Retry(Timestamp),
}

/// Backoff in seconds; the last value repeats.
const BACKOFF_SECONDS: [i64; 10] = [2, 5, 10, 20, 30, 60, 60, 120, 300, 600];

/// Returns the next step after an attempt, counted from 1.
fn next_step(
    outcome: &SendOutcome,
    attempt: i64,
    now: Timestamp,
    give_up_at: Timestamp,
) -> NextStep {
    match outcome {
        SendOutcome::Accepted { .. } => NextStep::Delivered,
        SendOutcome::Rejected(_) | SendOutcome::Expired => NextStep::Failed,
        SendOutcome::Retryable(_) => {
            let n = usize::try_from(attempt - 1).unwrap_or(0).min(BACKOFF_SECONDS.len() - 1);
            let again = now.plus_seconds(BACKOFF_SECONDS[n]);
            let last = give_up_at.plus_seconds(-1);
            match again < give_up_at {
                true => NextStep::Retry(again),
                false if last > now => NextStep::Retry(last),
                false => NextStep::Failed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_attempts_are_retried_until_the_message_expires() {
        let accepted = SendOutcome::Accepted { via: "smtp".into(), id: None };
        let rejected = SendOutcome::Rejected("550".into());
        let retryable = SendOutcome::Retryable("421".into());
        let seconds = |n: i64| Timestamp(n * 1_000);
        for (outcome, attempt, now, give_up, expected) in [
            (&accepted, 1, 0, 300, NextStep::Delivered),
            (&rejected, 1, 0, 300, NextStep::Failed),
            (&SendOutcome::Expired, 1, 300, 300, NextStep::Failed),
            (&retryable, 1, 0, 300, NextStep::Retry(seconds(2))),
            (&retryable, 2, 2, 300, NextStep::Retry(seconds(7))),
            (&retryable, 10, 0, 9_000, NextStep::Retry(seconds(600))),
            (&retryable, 99, 0, 9_000, NextStep::Retry(seconds(600))),
            (&retryable, 1, 297, 300, NextStep::Retry(seconds(299))),
            (&retryable, 8, 187, 300, NextStep::Retry(seconds(299))),
            (&retryable, 1, 298, 300, NextStep::Retry(seconds(299))),
            (&retryable, 1, 299, 300, NextStep::Failed),
            (&retryable, 1, 300, 300, NextStep::Failed),
        ] {
            let seen = next_step(outcome, attempt, seconds(now), seconds(give_up));
            assert_eq!(seen, expected, "{outcome:?}, attempt {attempt} at {now}");
        }
    }

    #[test]
    fn most_of_an_address_is_hidden() {
        for (channel, to, hidden) in [
            (Channel::Email, "ada@example.com", "a***@example.com"),
            (Channel::Email, "é@example.com", "é***@example.com"),
            (Channel::Sms, "+2348012345678", "+234***78"),
            (Channel::Sms, "+12345678", "+123***78"),
        ] {
            assert_eq!(Destination { channel, to: to.into() }.masked(), hidden);
        }
    }

    #[test]
    fn equivalent_addresses_have_one_key() {
        let key = |channel, to: &str| Destination { channel, to: to.into() }.key();
        assert_eq!(key(Channel::Email, "Ada@Example.com"), key(Channel::Email, "ada@example.com"));
        assert_ne!(key(Channel::Sms, "+12345678"), key(Channel::Sms, "+12345679"));
    }
}
