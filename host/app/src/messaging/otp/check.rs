//! Verification of codes.

use super::{CodeKey, MAX_WRONG_ATTEMPTS, WRONG_ATTEMPT_WINDOW_MS, counts, retry_after, store};
use crate::state::prelude::*;
use tollhouse_platform::limits::rate::RateLimitExceeded;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The code was correct and is now consumed.
    Passed,
    /// The code was wrong, used or expired, or there is none.
    Wrong,
    /// Five wrong attempts cancelled the code.
    Cancelled,
}

/// Compares `token` with the code under a key and consumes the code, under the row's lock. The
/// caller's transaction must always be committed, because wrong attempts are counted. `run` names a
/// request that may run more than once: if one run passes, all do. 429 beyond the limit of
/// attempts.
pub async fn check(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    key: &CodeKey,
    token: &str,
    run: Option<&str>,
) -> Result<CheckOutcome> {
    let now = app.clock.now();
    let Some(mut code) = store::lock(tx, company_id, key).await? else {
        return Ok(CheckOutcome::Wrong);
    };
    let is_run = |run| {
        let used_by = code.used_by.as_deref().unwrap_or_default();
        app.sealer.verify_digest(used_by, &key.digest_input(company_id, run))
    };
    if code.digest.is_none() && run.is_some_and(is_run) {
        return Ok(CheckOutcome::Passed);
    }
    if let Some(outcome) = code.refusal(now) {
        return Ok(outcome);
    }
    let mut counted = code.recent_wrong_attempts(now);
    if let Some(pause) = retry_after(&counted, app.settings.otp.otp_wrong_per_hour.into(), now) {
        return Err(Error::RateLimited(RateLimitExceeded::after(pause)));
    }
    let digest = code.digest.as_deref().unwrap_or_default();
    let passed = app.sealer.verify_digest(digest, &key.digest_input(company_id, token));
    if passed {
        code.digest = None;
        code.used_by = run.map(|run| app.sealer.digest(&key.digest_input(company_id, run)));
        counts::count_verified(tx, company_id, code.sent_at).await?;
    } else {
        code.wrong += 1;
        counted.push(now.0);
    }
    let last_wrong =
        counted.last().map_or(now, |at| now.max(Timestamp(at + WRONG_ATTEMPT_WINDOW_MS)));
    code.wrong_at = Json(counted);
    let until = if passed { last_wrong } else { last_wrong.max(code.expires_at) };
    store::update(tx, company_id, key, &code, until).await?;
    Ok(match passed {
        true => CheckOutcome::Passed,
        false if code.wrong >= MAX_WRONG_ATTEMPTS => CheckOutcome::Cancelled,
        false => CheckOutcome::Wrong,
    })
}

/// Converts the outcome of a committed attempt to the response, and counts it.
pub fn finish_check(app: &App, checked: Result<CheckOutcome>) -> Result<()> {
    let (noted, result) = match checked {
        Ok(CheckOutcome::Passed) => ("verified", Ok(())),
        Ok(CheckOutcome::Wrong) => {
            ("wrong", Err(Error::invalid("invalid or expired otp provided")))
        }
        Ok(CheckOutcome::Cancelled) => {
            let message = "too many invalid attempts, please request a new otp";
            ("cancelled", Err(Error::invalid(message)))
        }
        Err(error @ Error::RateLimited(_)) => ("throttled", Err(error)),
        Err(error) => return Err(error),
    };
    app.metrics.count_code(noted);
    result
}
