//! One attempt to deliver a message.
//!
//! Runs on the host that claims the job. Opens the content and hands it to the mail server, or to the
//! gateways in their order, with no transaction open. `messages::after`, a pure function, decides the
//! next step; `record` writes it, erases the content of a message that has ended and refunds the fee of
//! one that was given up.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use tokio::time::timeout;
use tracing::instrument;

use super::{
    After, Channel, Letter, Message, Outcome, State, after, gateways, seal_context, store,
};
use crate::{
    state::{App, metrics::messages::MessageOutcome},
    tenants::{companies, wallet},
};
use tollhouse_platform::{
    background::jobs::{Job, LEASE_SECONDS, Next},
    error::{Error, Result},
    outbound::smtp::{Email, SmtpError},
    store::Tx,
    telemetry::spans::SPANS,
};
use tollhouse_plugins::TextMessage;

/// Maximum duration of an attempt: less than its lease, so that no other host repeats it meanwhile.
const MOST_MS: i64 = (LEASE_SECONDS - 20) * 1_000;

pub fn deliver_job(app: App, job: Job) -> BoxFuture<'static, Result<Next>> {
    async move {
        let Some(message) = begin(&app, &job).await? else { return Ok(Next::Done) };
        let left = message.give_up_at.0 - app.clock.now().0;
        let outcome = match (&message.content, u64::try_from(left.min(MOST_MS))) {
            (Some(content), Ok(ms @ 1..)) => {
                let attempt = attempt(&app, &message, content);
                timeout(Duration::from_millis(ms), attempt).await.unwrap_or_else(|_| slow())?
            }
            _ => Outcome::TooLate,
        };
        let (db, host, attempted) = (app.store.clone(), app.clone(), message.clone());
        let next = db.write(async move |tx| record(tx, &host, attempted, outcome).await).await?;
        let now = app.clock.now();
        let waited =
            Duration::from_millis(u64::try_from(now.0 - message.created_at.0).unwrap_or(0));
        let (seen, next) = match next {
            After::Delivered => (MessageOutcome::Delivered, Next::Done),
            After::Failed => (MessageOutcome::Failed, Next::Done),
            After::Again(at) => (MessageOutcome::Again, Next::At(at)),
        };
        app.metrics.messages.attempted(message.channel.name(), seen, waited);
        Ok(next)
    }
    .boxed()
}

fn slow() -> Result<Outcome> {
    Ok(Outcome::Trouble { reason: "attempt timed out".to_owned() })
}

/// Marks a queued message as in flight; `None` if it is no longer queued.
async fn begin(app: &App, job: &Job) -> Result<Option<Message>> {
    let (company_id, id) = (job.company_id.clone(), job.subject.clone());
    let until = app.clock.now().plus_seconds(LEASE_SECONDS);
    app.store.write(async move |tx| Ok(store::begin(tx, &company_id, &id, until).await?)).await
}

#[instrument(target = SPANS, name = "messages.deliver", skip_all)]
async fn attempt(app: &App, message: &Message, content: &str) -> Result<Outcome> {
    let context = seal_context(&message.company_id, &message.id);
    let letter = app.sealer.open(&context, content)?;
    let letter: Letter = serde_json::from_str(&letter).map_err(Error::internal)?;
    match message.channel {
        Channel::Email => Ok(mail(app, message, letter).await),
        Channel::Sms => text(app, message, letter).await,
    }
}

async fn mail(app: &App, message: &Message, letter: Letter) -> Outcome {
    let Some(mailer) = &app.mailer else {
        return Outcome::Trouble { reason: "e-mail is not configured".to_owned() };
    };
    let rendered = letter.text.email();
    let email = Email {
        id: message.id.clone(),
        from_name: letter.text.company,
        to: letter.to,
        subject: rendered.subject,
        text: rendered.text,
        html: rendered.html,
        at: message.created_at,
    };
    match mailer.send(&email).await {
        Ok(()) => Outcome::Taken { via: "smtp".to_owned(), id: None },
        Err(error) => {
            let SmtpError { is_final, .. } = error;
            let reason = format!("smtp: {error}");
            if is_final { Outcome::Refused { reason } } else { Outcome::Trouble { reason } }
        }
    }
}

async fn text(app: &App, message: &Message, letter: Letter) -> Result<Outcome> {
    let (company, accounts) = app
        .store
        .read(async |tx| -> Result<_> {
            let company = companies::get(tx, &message.company_id).await?;
            let accounts = gateways::accounts(tx, app, &company, usize::MAX).await?;
            Ok((company, accounts))
        })
        .await?;
    let text = TextMessage {
        to: letter.to,
        sender: company.sms_sender.unwrap_or_default(),
        text: letter.text.sms(),
        reference: message.id.clone(),
    };
    Ok(gateways::send(app, &company.id, &accounts, &text).await)
}

/// Records an attempt, and refunds the fee of a message that failed finally.
async fn record(tx: &mut Tx, app: &App, mut message: Message, outcome: Outcome) -> Result<After> {
    let now = app.clock.now();
    let Some(give_up_at) = store::give_up_at(tx, &message.company_id, &message.id).await? else {
        return Ok(After::Failed);
    };
    message.attempts += i64::from(outcome != Outcome::TooLate);
    let after = after(&outcome, message.attempts, now, give_up_at);
    match outcome {
        Outcome::Taken { via, id } => (message.via, message.via_id) = (Some(via), id),
        Outcome::Refused { reason } | Outcome::Trouble { reason } => message.reason = reason,
        Outcome::TooLate if message.reason.is_empty() => message.reason = "expired".to_owned(),
        Outcome::TooLate => {}
    }
    if !matches!(after, After::Again(_)) {
        message.content = None;
        message.ended_at = Some(now);
    }
    message.state = match after {
        After::Delivered => State::Delivered,
        After::Failed => State::Failed,
        After::Again(_) => State::Pending,
    };
    store::update(tx, &message).await?;
    if after == After::Failed {
        wallet::give_back(tx, app, &message.company_id, &message.charge_key).await?;
    }
    Ok(after)
}
