//! One attempt to deliver a message.
//!
//! Runs on the host that claims the job, with no transaction open while it sends. `next_step`, a
//! pure function, decides what follows; `record` writes it, erases the content of a message that
//! has ended and refunds the fee of one that was abandoned.

use tokio::time::timeout;

use super::{
    Channel, Message, MessageContent, NextStep, SendOutcome, State, gateways, next_step,
    seal_context, store,
};
use crate::tenants::prelude::*;
use tollhouse_platform::{background::jobs::LEASE_SECONDS, outbound::smtp::OutgoingEmail};
use tollhouse_plugins::TextMessage;

/// Maximum duration of an attempt: less than its lease, so that no other host repeats it meanwhile.
const MAX_ATTEMPT_MS: i64 = (LEASE_SECONDS - 20) * 1_000;

pub async fn deliver_job(app: App, job: Job) -> Result<JobResult> {
    let until = app.clock.now().plus_seconds(LEASE_SECONDS);
    let begun = app.store.write(async move |tx| {
        store::begin_attempt(tx, &job.company_id, &job.subject, until).await
    });
    let Some(message) = begun.await? else { return Ok(JobResult::Done) };
    let left = message.give_up_at.0 - app.clock.now().0;
    let outcome = match (&message.content, u64::try_from(left.min(MAX_ATTEMPT_MS))) {
        (Some(content), Ok(ms @ 1..)) => {
            let attempt = attempt(&app, &message, content);
            timeout(Duration::from_millis(ms), attempt)
                .await
                .unwrap_or_else(|_| Ok(SendOutcome::Retryable("attempt timed out".to_owned())))?
        }
        _ => SendOutcome::Expired,
    };
    let (db, host, attempted) = (app.store.clone(), app.clone(), message.clone());
    let next = db.write(async move |tx| record(tx, &host, attempted, outcome).await).await?;
    let waited = app.clock.now().0 - message.created_at.0;
    let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(0));
    let (seen, next) = match next {
        NextStep::Delivered => ("delivered", JobResult::Done),
        NextStep::Failed => ("failed", JobResult::Done),
        NextStep::Retry(at) => ("again", JobResult::RescheduleAt(at)),
    };
    app.metrics.count_message(message.channel.name(), seen, waited);
    Ok(next)
}

#[instrument(target = SPAN_TARGET, name = "messages.deliver", skip_all)]
async fn attempt(app: &App, message: &Message, content: &str) -> Result<SendOutcome> {
    let context = seal_context(&message.company_id, &message.id);
    let letter = app.sealer.open(&context, content)?;
    let letter: MessageContent = serde_json::from_str(&letter).map_err(Error::internal)?;
    match message.channel {
        Channel::Email => Ok(send_email(app, message, letter).await),
        Channel::Sms => send_sms(app, message, letter).await,
    }
}

async fn send_email(app: &App, message: &Message, letter: MessageContent) -> SendOutcome {
    let Some(mailer) = &app.mailer else {
        return SendOutcome::Retryable("e-mail is not configured".to_owned());
    };
    let rendered = letter.text.email();
    let email = OutgoingEmail {
        id: message.id.clone(),
        from_name: letter.text.company().to_owned(),
        to: letter.to,
        subject: rendered.subject,
        text: rendered.text,
        html: rendered.html,
        at: message.created_at,
    };
    match mailer.send(&email).await {
        Ok(()) => SendOutcome::Accepted { via: "smtp".to_owned(), id: None },
        Err(error) => {
            let reason = format!("smtp: {error}");
            match error.is_permanent {
                true => SendOutcome::Rejected(reason),
                false => SendOutcome::Retryable(reason),
            }
        }
    }
}

async fn send_sms(app: &App, message: &Message, letter: MessageContent) -> Result<SendOutcome> {
    let (company, accounts) = app
        .store
        .read(async |tx| -> Result<_> {
            let company = companies::get(tx, &message.company_id).await?;
            let accounts = gateways::accounts(tx, app, &company).await?;
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
async fn record(
    tx: &mut Tx,
    app: &App,
    mut message: Message,
    outcome: SendOutcome,
) -> Result<NextStep> {
    let now = app.clock.now();
    let Some(give_up_at) = store::lock_expiry(tx, &message.company_id, &message.id).await? else {
        return Ok(NextStep::Failed);
    };
    message.attempts += i64::from(outcome != SendOutcome::Expired);
    let after = next_step(&outcome, message.attempts, now, give_up_at);
    match outcome {
        SendOutcome::Accepted { via, id } => (message.via, message.via_id) = (Some(via), id),
        SendOutcome::Rejected(reason) | SendOutcome::Retryable(reason) => message.reason = reason,
        SendOutcome::Expired if message.reason.is_empty() => message.reason = "expired".to_owned(),
        SendOutcome::Expired => {}
    }
    message.state = match after {
        NextStep::Delivered => State::Delivered,
        NextStep::Failed => State::Failed,
        NextStep::Retry(_) => State::Pending,
    };
    if message.state != State::Pending {
        (message.content, message.ended_at) = (None, Some(now));
    }
    store::update(tx, &message).await?;
    if after == NextStep::Failed {
        wallet::refund_fee(tx, app, &message.company_id, &message.charge_key).await?;
    }
    Ok(after)
}
