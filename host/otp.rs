//! One-time passwords: codes that are tied to an identifier and a type, pass once, and can hardly be guessed.
//!
//! Callers send and verify them by the API; other slices use [`send()`] and [`check()`] for codes of their own, in a scope of their
//! own. A code is stored as a keyed digest and stands in no other place than the sealed message that carries it.

pub mod api;
mod check;
mod counts;
mod issue;
mod limits;
mod store;

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};

pub use self::{
    check::{Checked, answer, check},
    counts::watch_job,
    issue::{Order, send},
};
use crate::{
    app::App,
    clock::Timestamp,
    error::{Error, Result},
    messages::Channel,
};

/// What a plan must include for codes to be sent.
pub const FEATURE: &str = "otp";
/// The job that looks how many of the codes of a slot were verified.
pub const WATCH_JOB: &str = "otp.watch";
/// The scope of codes that callers send.
pub const CALLERS: &str = "api";

/// The fifth wrong try cancels a code.
const MOST_WRONG: i64 = 5;
/// For how long a wrong try counts against the next ones under its key.
const WINDOW_MS: i64 = 3_600_000;

/// How often codes may be sent and guessed, and when operators hear of it. Zero: no limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sends to a destination of a company.
    pub sends_per_hour: i64,
    /// Text messages to a phone number of a company; the lower of both counts.
    pub sms_per_hour: i64,
    /// Sends of a company.
    pub company_sends_per_hour: i64,
    /// Wrong tries under a key, across all codes that are sent under it.
    pub wrong_per_hour: i64,
    /// So many codes must be sent within an hour ...
    pub alarm_sent: i64,
    /// ... and less than this part of them be verified for an alarm.
    pub alarm_percent: i64,
}

/// What a code is tied to, within a company.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub scope: &'static str,
    pub identifier: String,
    /// Lets an identifier have several codes at once.
    pub kind: String,
    /// The address it was sent to, where it is known at verification as well: a code for a former address is no code for this one.
    pub address: String,
}

impl Key {
    /// What the digest of a code is made of.
    fn parts<'k>(&'k self, company_id: &'k str, code: &'k str) -> [&'k str; 7] {
        let Key { scope, identifier, kind, address } = self;
        ["otp", company_id, scope, identifier, kind, address, code]
    }
}

/// How a key stands towards a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// No code, or one that was used or has expired.
    None,
    Cancelled,
    Active,
}

impl Limits {
    /// Of sends to a destination; 0: none.
    fn per_hour(&self, channel: Channel) -> i64 {
        match (channel, self.sends_per_hour, self.sms_per_hour) {
            (Channel::Email, any, _) | (Channel::Sms, any, 0) => any,
            (Channel::Sms, 0, sms) => sms,
            (Channel::Sms, any, sms) => any.min(sms),
        }
    }
}

impl store::Code {
    fn standing(&self, now: Timestamp) -> Standing {
        match self {
            code if code.expires_at <= now => Standing::None,
            code if code.wrong >= MOST_WRONG => Standing::Cancelled,
            code if code.digest.is_none() => Standing::None,
            _ => Standing::Active,
        }
    }

    /// The wrong tries that still count, oldest first.
    fn counted(&self, now: Timestamp) -> Vec<i64> {
        self.wrong_at.0.iter().copied().filter(|at| now.0 - at < WINDOW_MS).collect()
    }
}

/// After how long the next try may be made when these wrong ones count; `None`: at once.
fn pause(counted: &[i64], most: i64, now: Timestamp) -> Option<Duration> {
    let most = usize::try_from(most).ok().filter(|most| *most > 0)?;
    // When this one no longer counts, there are fewer than `most`.
    let last = counted.len().checked_sub(most).map(|at| counted[at])?;
    let ms = u64::try_from(last + WINDOW_MS - now.0).ok()?;
    Some(Duration::from_millis(ms))
}

/// Forgets what says nothing any more; answers how many rows that were.
pub fn sweep(app: App) -> BoxFuture<'static, Result<u64>> {
    async move {
        let now = app.clock.now();
        let swept =
            app.store.write_in_pieces(async move |tx, most| store::sweep(tx, now, most).await);
        swept.await.map_err(Error::from)
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Json;

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
    fn the_lower_limit_counts_for_phone_numbers() {
        for (any, sms, of_email, of_sms) in
            [(60, 10, 60, 10), (5, 10, 5, 5), (0, 10, 0, 10), (60, 0, 60, 60), (0, 0, 0, 0)]
        {
            let limits = Limits {
                sends_per_hour: any,
                sms_per_hour: sms,
                company_sends_per_hour: 0,
                wrong_per_hour: 0,
                alarm_sent: 0,
                alarm_percent: 0,
            };
            let seen = [Channel::Email, Channel::Sms].map(|channel| limits.per_hour(channel));
            assert_eq!(seen, [of_email, of_sms], "{any} {sms}");
        }
    }

    #[test]
    fn how_a_key_stands() {
        for (digest, wrong, expires_at, standing) in [
            (true, 0, 11, Standing::Active),
            (true, 4, 11, Standing::Active),
            (true, 5, 11, Standing::Cancelled),
            (false, 5, 11, Standing::Cancelled),
            (false, 0, 11, Standing::None),
            (true, 0, 10, Standing::None),
            (true, 5, 10, Standing::None),
        ] {
            let code = code(digest, wrong, expires_at);
            assert_eq!(code.standing(Timestamp(10)), standing, "{code:?}");
        }
    }

    #[test]
    fn wrong_tries_count_for_an_hour_whatever_is_sent_meanwhile() {
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
            let waited = pause(&code.counted(now), most, now);
            assert_eq!(waited.map(|pause| pause.as_secs() / 60), pause_minutes, "{code:?}");
        }
    }
}
