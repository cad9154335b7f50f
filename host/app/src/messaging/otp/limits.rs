//! Send limits: token buckets in the database, shared by all hosts. A failed send takes no token.

use super::store;
use crate::{messaging::messages::Destination, state::prelude::*};
use tollhouse_platform::rate::RateLimitExceeded;

const HOUR_MS: i64 = 3_600_000;

/// Takes a token for each destination and one for the company; 429 if one is missing.
pub async fn take_send_tokens(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    destinations: &[Destination],
) -> Result<()> {
    for destination in destinations {
        take_destination_token(tx, app, company_id, "otp bucket", destination).await?;
    }
    take_token(tx, app, company_id, "", app.settings.otp.otp_company_sends_per_hour.into()).await
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
        let purpose = "otp refusal bucket";
        match take_destination_token(tx, app, company_id, purpose, destination).await {
            Ok(()) => taken.push(destination),
            Err(Error::RateLimited(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if !taken.is_empty() {
        let per_hour = app.settings.otp.otp_company_sends_per_hour.into();
        take_token(tx, app, company_id, "refusals", per_hour).await?;
    }
    Ok(taken)
}

async fn take_destination_token(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    purpose: &str,
    destination: &Destination,
) -> Result<()> {
    let key = app.sealer.digest(&[purpose, company_id, &destination.key()]);
    let per_hour = app.settings.otp.per_hour(destination.channel);
    take_token(tx, app, company_id, &key, per_hour).await
}

/// Takes a token of the bucket `key`; 0 per hour: unlimited.
async fn take_token(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    key: &str,
    per_hour: i64,
) -> Result<()> {
    if per_hour <= 0 {
        return Ok(());
    }
    let (interval_ms, now) = ((HOUR_MS / per_hour).max(1), app.clock.now());
    if store::take_token(tx, company_id, key, [interval_ms, per_hour], now).await? {
        return Ok(());
    }
    let full_at = store::full_at(tx, company_id, key).await?.unwrap_or(now);
    let ms = full_at.0 - now.0 - interval_ms * (per_hour - 1);
    let wait = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    Err(Error::RateLimited(RateLimitExceeded::after(wait)))
}
