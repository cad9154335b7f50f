//! Send limits: token buckets in the database, shared by all hosts. A failed send takes no token.

use super::store::{self, Bucket};
use crate::{messaging::messages::Destination, state::prelude::*};
use tollhouse_platform::limits::rate::RateLimitExceeded;

const HOUR_MS: i64 = 3_600_000;

/// Takes a token for each destination and one for the company; 429 if one is missing.
pub async fn take_send_tokens(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    destinations: &[Destination],
) -> Result<()> {
    for bucket in send_buckets(app, company_id, destinations) {
        take_token(tx, app, company_id, &bucket).await?;
    }
    Ok(())
}

/// Like [`take_send_tokens`], at the commit, which fails if a token is missing.
pub async fn take_send_tokens_at_commit(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    destinations: &[Destination],
) -> Result<()> {
    for bucket in send_buckets(app, company_id, destinations) {
        store::take_token_at_commit(tx, company_id, &bucket, app.clock.now()).await?;
    }
    Ok(())
}

/// Takes tokens for records of refused sends, from buckets of their own: one for each destination
/// that has one, and one for the company. Returns these destinations; 429 if the company has no
/// token.
pub async fn take_refusal_tokens<'d>(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    destinations: &'d [Destination],
) -> Result<Vec<&'d Destination>> {
    let mut taken = Vec::new();
    for destination in destinations {
        let bucket = destination_bucket(app, company_id, "otp refusal bucket", destination);
        let token = match bucket {
            Some(bucket) => take_token(tx, app, company_id, &bucket).await,
            None => Ok(()),
        };
        match token {
            Ok(()) => taken.push(destination),
            Err(Error::RateLimited(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if !taken.is_empty()
        && let Some(bucket) = company_bucket(app, "refusals")
    {
        take_token(tx, app, company_id, &bucket).await?;
    }
    Ok(taken)
}

/// Returns the buckets of the destinations, then the company's.
fn send_buckets(
    app: &App,
    company_id: &CompanyId,
    destinations: &[Destination],
) -> impl Iterator<Item = Bucket> {
    let of_destination = |to| destination_bucket(app, company_id, "otp bucket", to);
    destinations.iter().filter_map(of_destination).chain(company_bucket(app, ""))
}

/// Returns the bucket of a destination; `None` if sends to it are unlimited.
fn destination_bucket(
    app: &App,
    company_id: &CompanyId,
    purpose: &str,
    destination: &Destination,
) -> Option<Bucket> {
    let key = app.sealer.digest(&[purpose, company_id, &destination.key()]);
    bucket(key, app.settings.otp.per_hour(destination.channel))
}

fn company_bucket(app: &App, key: &str) -> Option<Bucket> {
    bucket(key.to_owned(), app.settings.otp.otp_company_sends_per_hour.into())
}

/// Returns a bucket for a limit; 0 per hour: unlimited.
fn bucket(key: String, per_hour: i64) -> Option<Bucket> {
    let interval_ms = HOUR_MS.checked_div(per_hour)?.max(1);
    Some(Bucket { key, burst: per_hour, interval_ms })
}

async fn take_token(tx: &mut Tx, app: &App, company_id: &CompanyId, bucket: &Bucket) -> Result<()> {
    let now = app.clock.now();
    if store::take_token(tx, company_id, bucket, now).await? {
        return Ok(());
    }
    let full_at = store::full_at(tx, company_id, &bucket.key).await?.unwrap_or(now);
    let ms = full_at.0 - now.0 - bucket.interval_ms * (bucket.burst - 1);
    let wait = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    Err(Error::RateLimited(RateLimitExceeded::after(wait)))
}
