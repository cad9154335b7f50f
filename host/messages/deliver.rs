//! One attempt to deliver a message.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use tracing::instrument;

use super::{
    After, Channel, Letter, Message, Outcome, State, after, gateways, seal_context, store,
};
use crate::{
    app::App,
    companies::{self, Company},
    error::{Error, Result},
    jobs::{Job, Next},
    plugins::TextMessage,
    smtp::{Email, SmtpError},
    store::Tx,
    telemetry::{MessageOutcome, spans::SPANS},
    wallet,
};

/// Asked in one attempt. Together they must be done before its lease ends.
const MOST_GATEWAYS: usize = 3;

pub fn deliver_job(app: App, job: Job) -> BoxFuture<'static, Result<Next>> {
    async move {
        let Some((message, company)) = load(&app, &job).await? else { return Ok(Next::Done) };
        let outcome = match &message.content {
            Some(content) if app.clock.now() < message.give_up_at => {
                attempt(&app, &company, &message, content).await?
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
        app.telemetry.messages.attempted(message.channel.name(), seen, waited);
        Ok(next)
    }
    .boxed()
}

/// `None` when it does not wait any more.
async fn load(app: &App, job: &Job) -> Result<Option<(Message, Company)>> {
    app.store
        .read(async |tx| {
            let message = store::find(tx, &job.company_id, &job.subject).await?;
            let Some(message) = message.filter(|message| message.state == State::Pending) else {
                return Ok(None);
            };
            let company = companies::get(tx, &job.company_id).await?;
            Ok(Some((message, company)))
        })
        .await
}

#[instrument(target = SPANS, name = "messages.deliver", skip_all)]
async fn attempt(
    app: &App,
    company: &Company,
    message: &Message,
    content: &str,
) -> Result<Outcome> {
    let context = seal_context(&message.company_id, &message.id);
    let letter = app.sealer.open(&context, content)?;
    let letter: Letter = serde_json::from_str(&letter).map_err(Error::internal)?;
    match message.channel {
        Channel::Email => Ok(mail(app, message, letter).await),
        Channel::Sms => text(app, company, message, letter).await,
    }
}

async fn mail(app: &App, message: &Message, letter: Letter) -> Outcome {
    let Some(mailer) = &app.mailer else {
        return Outcome::Trouble { reason: "e-mail is not set up".to_owned() };
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

async fn text(app: &App, company: &Company, message: &Message, letter: Letter) -> Result<Outcome> {
    let accounts = app
        .store
        .read(async |tx| gateways::accounts(tx, app, company, MOST_GATEWAYS).await)
        .await?;
    let text = TextMessage {
        to: letter.to,
        sender: company.sms_sender.clone().unwrap_or_default(),
        text: letter.text.sms(),
        reference: message.id.clone(),
    };
    gateways::send(app, &accounts, &text).await
}

/// Notes an attempt; what can finally not be delivered is refunded.
async fn record(tx: &mut Tx, app: &App, mut message: Message, outcome: Outcome) -> Result<After> {
    let now = app.clock.now();
    message.attempts += i64::from(outcome != Outcome::TooLate);
    let after = after(&outcome, message.attempts, now, message.give_up_at);
    match outcome {
        Outcome::Taken { via, id } => (message.via, message.via_id) = (Some(via), id),
        Outcome::Refused { reason } | Outcome::Trouble { reason } => message.reason = reason,
        Outcome::TooLate if message.reason.is_empty() => message.reason = "too late".to_owned(),
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
    // What was withdrawn meanwhile has been refunded.
    if store::update(tx, &message).await? && after == After::Failed {
        wallet::give_back(tx, app, &message.company_id, &message.charge_key).await?;
    }
    Ok(after)
}
