//! One-time passwords: codes bound to an identifier and a type, usable once, with few attempts.
//!
//! Clients use the API; other modules call [`send()`] and [`check()`] in scopes of their own. A
//! code is stored as a keyed digest, and otherwise only in the sealed message that carries it.
//!
//! `issue` is one transaction: it stores the keyed digest of a code (over company, scope,
//! identifier, type and code) in place of the previous one, whose queued messages it cancels and
//! refunds, and charges and queues one message per channel. Any failure rolls all of it back. If
//! the wallet does not cover it, a second transaction writes failed messages for support. With an
//! `Idempotency-Key`, the keys of the fees are derived from the request: a repeated request finds
//! the fees and does not send again.
//!
//! `check` compares digests in constant time under the row's lock. It commits in either case, so
//! that wrong attempts count. If the address is also known at verification, it is part of the
//! digest: a code sent to a former address does not pass.

pub mod api;
mod check;
mod counts;
mod issue;
mod limits;
mod store;

pub use self::{
    check::{CheckOutcome, check, finish_check},
    counts::watch_job,
    issue::{CodeRequest, send},
};
use crate::{
    messaging::messages::Channel,
    state::{config::Otp, prelude::*},
};

pub const FEATURE: &str = "otp";
/// Job kind: check of the share of verified codes.
pub const WATCH_JOB: &str = "otp.watch";
/// Scope of codes that are sent by the API.
pub const API_SCOPE: &str = "api";

/// Number of wrong attempts that cancel a code.
const MAX_WRONG_ATTEMPTS: i64 = 5;
/// Time for which a wrong attempt counts against further ones under its key.
const WRONG_ATTEMPT_WINDOW_MS: i64 = 3_600_000;

/// The identity of a code within a company.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeKey {
    pub scope: &'static str,
    pub identifier: String,
    /// Type, which separates several codes of one identifier.
    pub kind: String,
    /// Address of the recipient, if known at verification: a code for a previous one is invalid.
    pub address: String,
}

impl CodeKey {
    /// Returns the values of which the digest of a code is made.
    fn digest_input<'k>(&'k self, company_id: &'k CompanyId, code: &'k str) -> [&'k str; 7] {
        let CodeKey { scope, identifier, kind, address } = self;
        ["otp", company_id, scope, identifier, kind, address, code]
    }
}

impl Otp {
    /// Returns the hourly limit of sends to a destination; 0: unlimited.
    fn per_hour(&self, channel: Channel) -> i64 {
        let per_hour = match (channel, self.otp_sends_per_hour, self.otp_sms_per_hour) {
            (Channel::Email, any, _) | (Channel::Sms, any, 0) => any,
            (Channel::Sms, 0, sms) => sms,
            (Channel::Sms, any, sms) => any.min(sms),
        };
        per_hour.into()
    }
}

impl store::Code {
    /// Returns the outcome of every attempt if the code cannot pass.
    fn refusal(&self, now: Timestamp) -> Option<CheckOutcome> {
        match self {
            code if code.expires_at <= now => Some(CheckOutcome::Wrong),
            code if code.wrong >= MAX_WRONG_ATTEMPTS => Some(CheckOutcome::Cancelled),
            code if code.digest.is_none() => Some(CheckOutcome::Wrong),
            _ => None,
        }
    }

    /// Returns the times of the wrong attempts that still count, oldest first.
    fn recent_wrong_attempts(&self, now: Timestamp) -> Vec<i64> {
        self.wrong_at.0.iter().copied().filter(|at| now.0 - at < WRONG_ATTEMPT_WINDOW_MS).collect()
    }
}

/// Returns the time until the next attempt is allowed; `None` if it is allowed now.
fn retry_after(counted: &[i64], most: i64, now: Timestamp) -> Option<Duration> {
    let most = usize::try_from(most).ok().filter(|most| *most > 0)?;
    // Once this one no longer counts, there are fewer than `most`.
    let last = counted.len().checked_sub(most).map(|at| counted[at])?;
    let ms = u64::try_from(last + WRONG_ATTEMPT_WINDOW_MS - now.0).ok()?;
    Some(Duration::from_millis(ms))
}

/// Deletes obsolete rows and returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let now = app.clock.now();
    let sweep = async move |tx: &mut Tx, most| store::sweep(tx, now, most).await;
    Ok(app.store.write_in_batches(sweep).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(digest: bool, wrong: i64, expires_at: i64) -> store::Code {
        store::Code {
            digest: digest.then(String::new),
            used_by: None,
            wrong,
            wrong_at: Json(vec![]),
            sent_at: Timestamp(0),
            expires_at: Timestamp(expires_at),
        }
    }

    #[test]
    fn the_lower_limit_applies_to_phone_numbers() {
        for (any, sms, of_email, of_sms) in
            [(60, 10, 60, 10), (5, 10, 5, 5), (0, 10, 0, 10), (60, 0, 60, 60), (0, 0, 0, 0)]
        {
            let limits = Otp {
                otp_sends_per_hour: any,
                otp_sms_per_hour: sms,
                otp_company_sends_per_hour: 0,
                otp_wrong_per_hour: 0,
                otp_alarm_sends: 0,
                otp_alarm_percent: 0,
                sms_gateways: vec![],
                sms_countries: vec![],
            };
            let seen = [Channel::Email, Channel::Sms].map(|channel| limits.per_hour(channel));
            assert_eq!(seen, [of_email, of_sms], "{any} {sms}");
        }
    }

    #[test]
    fn state_depends_on_use_wrong_attempts_and_expiry() {
        for (digest, wrong, expires_at, refusal) in [
            (true, 0, 11, None),
            (true, 4, 11, None),
            (true, 5, 11, Some(CheckOutcome::Cancelled)),
            (false, 5, 11, Some(CheckOutcome::Cancelled)),
            (false, 0, 11, Some(CheckOutcome::Wrong)),
            (true, 0, 10, Some(CheckOutcome::Wrong)),
            (true, 5, 10, Some(CheckOutcome::Wrong)),
        ] {
            let code = code(digest, wrong, expires_at);
            assert_eq!(code.refusal(Timestamp(10)), refusal, "{code:?}");
        }
    }

    #[test]
    fn wrong_attempts_count_for_an_hour_despite_new_codes() {
        let minute = 60_000;
        for (wrong_at, most, now, pause_minutes) in [
            (vec![], 3, 0, None),
            (vec![0, 1, 2], 3, 10, Some(50)),
            (vec![0, 1, 2], 4, 10, None),
            (vec![0, 5, 7], 2, 10, Some(55)),
            (vec![0, 5, 7], 3, 60, None),
            (vec![0, 5, 7], 2, 64, Some(1)),
            (vec![0, 5, 7], 2, 65, None),
            (vec![0, 1, 2], 0, 10, None),
        ] {
            let wrong_at = wrong_at.iter().map(|at| at * minute).collect();
            let code = store::Code { wrong_at: Json(wrong_at), ..code(true, 0, 0) };
            let now = Timestamp(now * minute);
            let waited = retry_after(&code.recent_wrong_attempts(now), most, now);
            assert_eq!(waited.map(|pause| pause.as_secs() / 60), pause_minutes, "{code:?}");
        }
    }
}
