//! Send limits: token buckets in the database, shared by all hosts. A failed send takes no token.

use std::time::Duration;

use super::store;
use crate::{messaging::messages::Destination, state::App};
use tollhouse_platform::{
    error::{Error, Result},
    rate::RateLimitExceeded,
    store::Tx,
    values::id::CompanyId,
};

const HOUR_MS: i64 = 3_600_000;

/// Limited actions, each with its own buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedAction {
    Sends,
    /// Records of refused sends.
    Refusals,
}

impl LimitedAction {
    /// Returns the purpose of a destination's bucket, and the key of the company's bucket.
    fn bucket_keys(self) -> (&'static str, &'static str) {
        match self {
            LimitedAction::Sends => ("otp bucket", ""),
            LimitedAction::Refusals => ("otp refusal bucket", "refusals"),
        }
    }
}

/// Takes a token for each destination and one for the company; 429 if one is missing.
pub async fn take_tokens(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    what: LimitedAction,
    destinations: &[Destination],
) -> Result<()> {
    for destination in destinations {
        take_destination_token(tx, app, company_id, what, destination).await?;
    }
    take_company_token(tx, app, company_id, what).await
}

/// Takes a token for each destination that has one, and one for the company. Returns these
/// destinations; 429 if the company has no token.
pub async fn take_available_tokens<'d>(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    what: LimitedAction,
    destinations: &'d [Destination],
) -> Result<Vec<&'d Destination>> {
    let mut taken = Vec::new();
    for destination in destinations {
        match take_destination_token(tx, app, company_id, what, destination).await {
            Ok(()) => taken.push(destination),
            Err(Error::RateLimited(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if !taken.is_empty() {
        take_company_token(tx, app, company_id, what).await?;
    }
    Ok(taken)
}

async fn take_destination_token(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    what: LimitedAction,
    destination: &Destination,
) -> Result<()> {
    let (purpose, _) = what.bucket_keys();
    let key = app.sealer.digest(&[purpose, company_id, &destination.key()]);
    let per_hour = app.settings.otp.per_hour(destination.channel);
    take_token(tx, app, company_id, &key, per_hour).await
}

async fn take_company_token(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    what: LimitedAction,
) -> Result<()> {
    let (_, key) = what.bucket_keys();
    take_token(tx, app, company_id, key, app.settings.otp.company_sends_per_hour).await
}

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
