//! One attempt to deliver an event to a webhook endpoint.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;

use super::{
    schedule::{has_failed_too_long, next_attempt, run_begins_after},
    sign::signatures,
    store::{self, Attempt, Delivery, PendingDelivery},
};
use crate::tenants::prelude::*;
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};

const TIMEOUT: Duration = Duration::from_secs(15);
const MAX_RESPONSE_BYTES: usize = 64 << 10;

pub async fn deliver_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| store::find_pending(tx, &job.company_id, &job.subject).await;
    let Some(delivery) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let secrets = secrets(&app, &delivery)?;
    if secrets.is_empty() {
        let end = async move |tx: &mut Tx| {
            store::disable_pending(tx, &job.company_id, &job.subject).await
        };
        app.store.write(end).await?;
        return Ok(JobResult::Done);
    }
    let delivery = Arc::new(delivery);
    let began = Instant::now();
    let sent = send(&app, &delivery, &secrets).await;
    let now = app.clock.now();
    let attempt = Attempt {
        url: delivery.url.clone(),
        number: delivery.attempts + 1,
        status: sent.as_ref().ok().map(|response| i64::from(response.status)),
        error: sent.as_ref().err().map(EgressError::to_string).unwrap_or_default(),
        duration_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
        created_at: now,
    };
    let outcome = outcome(&sent, now.unix_seconds());
    if matches!(outcome, DeliveryOutcome::Delivered) && !delivery.is_failing {
        let (delivery, attempt) = (delivery.clone(), attempt.clone());
        let finish = async move |tx: &mut Tx| finish(tx, &job, delivery, attempt).await;
        match app.store.write(finish).await {
            Ok(()) => return Ok(JobResult::Finished),
            Err(error) if error.is_not_one_row() => {}
            Err(error) => return Err(error),
        }
    }
    let db = app.store.clone();
    db.write(async move |tx| record(tx, &app, delivery, attempt, outcome).await).await
}

/// Returns the secrets that sign a delivery: those of the company if the URL is its own or a
/// `callback_url`, and those of the event endpoint with the URL. None if it is for an endpoint that
/// was deleted, deactivated or moved.
fn secrets(app: &App, delivery: &PendingDelivery) -> Result<Vec<String>> {
    let mut secrets = match delivery.for_endpoint {
        true => Vec::new(),
        false => delivery.company.event_secrets(app)?,
    };
    if let Some(secret) = delivery.endpoint.signing_secret(&delivery.company.id) {
        secrets.extend(secret.open(app)?);
    }
    Ok(secrets)
}

/// Records a delivery with the end of its job, if neither was changed since it was loaded. These
/// statements are one request to PostgreSQL.
async fn finish(
    tx: &mut Tx,
    job: &Job,
    delivery: Arc<PendingDelivery>,
    attempt: Attempt,
) -> Result<()> {
    store::mark_delivered(tx, &delivery, attempt.created_at).await?;
    jobs::finish(tx, job).await?;
    Ok(store::insert_attempt(tx, &delivery.company.id, &delivery.delivery_id, &attempt).await?)
}

#[instrument(target = SPAN_TARGET, name = "events.deliver", skip_all)]
async fn send(
    app: &App,
    delivery: &PendingDelivery,
    secrets: &[String],
) -> Result<EgressResponse, EgressError> {
    let (event_id, body) = (&delivery.event_id, &delivery.body);
    let seconds = app.clock.now().unix_seconds();
    let header = |name: &str, value: String| (name.to_owned(), value);
    let request = EgressRequest {
        sender: "events".into(),
        method: "POST".to_owned(),
        url: delivery.url.clone(),
        headers: vec![
            header("content-type", "application/json".to_owned()),
            header("webhook-id", event_id.to_string()),
            header("webhook-timestamp", seconds.to_string()),
            header("webhook-signature", signatures(secrets, event_id, seconds, body)),
        ],
        body: Some(Bytes::from(body.clone())),
        identity: None,
        timeout: TIMEOUT,
        max_response_bytes: MAX_RESPONSE_BYTES,
    };
    app.egress.events.send(request).await
}

/// The result of an attempt.
#[derive(Clone, Copy)]
enum DeliveryOutcome {
    Delivered,
    /// 410: the receiver wants no further events.
    Gone,
    /// With the seconds of `Retry-After`.
    Failed(Option<i64>),
}

fn outcome(sent: &Result<EgressResponse, EgressError>, now_seconds: i64) -> DeliveryOutcome {
    match sent {
        // The receiver has accepted it; only its response body is too large.
        Err(EgressError::TooLarge(_)) => DeliveryOutcome::Delivered,
        Err(_) => DeliveryOutcome::Failed(None),
        Ok(response) if (200..300).contains(&response.status) => DeliveryOutcome::Delivered,
        Ok(response) if response.status == 410 => DeliveryOutcome::Gone,
        Ok(response) => DeliveryOutcome::Failed(retry_after(response, now_seconds)),
    }
}

/// Parses `Retry-After`: seconds or a date.
fn retry_after(response: &EgressResponse, now_seconds: i64) -> Option<i64> {
    let (_, value) = response.headers.iter().find(|(name, _)| name == "retry-after")?;
    let date = || chrono::DateTime::parse_from_rfc2822(value).ok();
    value.parse().ok().or_else(|| Some(date()?.timestamp() - now_seconds))
}

/// Records an attempt. A delivery that was requeued or disabled meanwhile keeps its state.
async fn record(
    tx: &mut Tx,
    app: &App,
    loaded: Arc<PendingDelivery>,
    mut attempt: Attempt,
    outcome: DeliveryOutcome,
) -> Result<JobResult> {
    let (now, company_id, url) = (attempt.created_at, &loaded.company.id, &*loaded.url);
    // Locks the endpoint before the delivery, in the same order as `store::disable`.
    let failing_since = match outcome {
        DeliveryOutcome::Delivered => {
            store::lock_endpoint(tx, company_id, url).await?;
            now
        }
        DeliveryOutcome::Gone | DeliveryOutcome::Failed(_) => {
            store::record_failure(tx, company_id, url, now, run_begins_after(now)).await?
        }
    };
    let delivery = store::lock_delivery(tx, company_id, &loaded.delivery_id).await?;
    let mut delivery = delivery.ok_or_else(|| Error::internal("delivery not found"))?;
    let is_current = (&*delivery.state, delivery.tries, delivery.queued)
        == ("pending", loaded.tries, loaded.queued);
    delivery.attempts += 1;
    attempt.number = delivery.attempts;
    store::insert_attempt(tx, company_id, &delivery.id, &attempt).await?;
    let next = if is_current {
        apply_outcome(tx, app, &mut delivery, outcome, failing_since).await?
    } else {
        JobResult::Done
    };
    store::update_delivery(tx, &delivery).await?;
    Ok(next)
}

/// Updates the delivery and its endpoint.
async fn apply_outcome(
    tx: &mut Tx,
    app: &App,
    delivery: &mut Delivery,
    outcome: DeliveryOutcome,
    failing_since: Timestamp,
) -> Result<JobResult> {
    let now = app.clock.now();
    delivery.tries += 1;
    match outcome {
        DeliveryOutcome::Delivered => {
            delivery.state = "delivered".to_owned();
            delivery.delivered_at = Some(now);
            store::enable(tx, &delivery.company_id, &delivery.url).await?;
            Ok(JobResult::Done)
        }
        DeliveryOutcome::Gone => {
            disable(tx, app, delivery, "the endpoint responded with 410").await
        }
        DeliveryOutcome::Failed(_) if has_failed_too_long(failing_since, now) => {
            disable(tx, app, delivery, "five days of failures").await
        }
        DeliveryOutcome::Failed(retry_after_seconds) => {
            match next_attempt(now, delivery.tries, retry_after_seconds, &app.random) {
                Some(at) => Ok(JobResult::RescheduleAt(at)),
                None => {
                    delivery.state = "failed".to_owned();
                    Ok(JobResult::Done)
                }
            }
        }
    }
}

async fn disable(
    tx: &mut Tx,
    app: &App,
    delivery: &mut Delivery,
    reason: &str,
) -> Result<JobResult> {
    let company = &delivery.company_id;
    tracing::warn!(company = company.as_str(), reason, "webhook endpoint was disabled");
    store::disable(tx, company, &delivery.url, reason, app.clock.now()).await?;
    delivery.state = "disabled".to_owned();
    Ok(JobResult::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let parsed = |value: &str| {
            let headers = vec![("retry-after".to_owned(), value.to_owned())];
            retry_after(&EgressResponse { status: 503, headers, body: Bytes::new() }, 784_111_700)
        };
        for (value, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(77)),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parsed(value), seconds, "{value}");
        }
    }
}
