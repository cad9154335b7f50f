//! Collection policies: which instruments are charged, when and how often. Stored in the form in
//! which the API returns them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr};

/// The names of [`InstrumentKind`].
pub const INSTRUMENT_KINDS: &[&str] = &["default_card", "other_cards", "mandates"];

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// How a company collects the installments of its loans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CollectionPolicy")]
pub struct Policy {
    /// `false`: each installment is collected once, on its due date, as without a policy.
    pub active: bool,
    /// The instruments in the order in which they are charged.
    pub instruments: Vec<InstrumentKind>,
    /// The days on which charges are made, as numbers of days after the due date, ascending. Each
    /// instrument is charged at most once a day.
    pub days: Vec<i64>,
    pub hours: Hours,
    /// The offset from UTC for users whose country is not in `utc_offsets`.
    pub utc_offset: String,
    /// Offsets from UTC by the user's country, an ISO 3166 code of two capital letters.
    pub utc_offsets: BTreeMap<String, String>,
    /// Maximum number of attempts per installment.
    pub max_attempts: i64,
    /// Maximum fees per installment. Fees of failed attempts are refunded and do not count.
    pub max_fees: Option<Minor>,
    /// The minimum of a partial debit, in the currency of the loan; `null`: only the whole amount
    /// is debited.
    #[serde(default)]
    pub min_partial_debit: Option<Minor>,
    /// The events about installments that the company receives, even if the policy is not active.
    #[serde(default)]
    pub events: Reminders,
}

/// When events about an unpaid installment are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "InstallmentEvents")]
pub struct Reminders {
    /// Number of days before the due date at which `installment.upcoming` is sent; `null`: not
    /// sent.
    pub upcoming_days: Option<i64>,
    /// Whether `installment.due` is sent, on the due date.
    pub due: bool,
    /// Number of days after the due date at which `installment.overdue` is sent; `null`: not sent.
    pub overdue_days: Option<i64>,
}

/// The hours of the day in which charges are made, in the local time of the user's country.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CollectionHours")]
pub struct Hours {
    /// The first hour, from 0.
    pub from: i64,
    /// The hour at which charging ends, at most 24.
    pub to: i64,
}

#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumString,
    IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum InstrumentKind {
    DefaultCard,
    /// The user's other cards, newest first.
    OtherCards,
    /// The user's direct debit mandates, the default first.
    Mandates,
}

/// A day of a policy for one installment, in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Number of days after the due date.
    pub day: i64,
    /// The start of the day in the user's country.
    pub begins_at: Timestamp,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Slot {
    /// Returns whether a time is on this day.
    pub fn has(&self, at: Timestamp) -> bool {
        self.begins_at <= at && at < self.begins_at.plus_ms(DAY_MS)
    }
}

impl Policy {
    /// Returns the offset from UTC in minutes for a user of this country.
    pub fn offset_minutes(&self, country_code: Option<&str>) -> i64 {
        let of_country = country_code.and_then(|code| self.utc_offsets.get(code));
        parse_offset(of_country.unwrap_or(&self.utc_offset)).unwrap_or_default()
    }

    /// Returns the days on which an installment is collected. A due date at 00:00 UTC is a calendar
    /// day, which is the same in every country.
    pub fn slots(&self, due_at: Timestamp, offset_minutes: i64) -> impl Iterator<Item = Slot> {
        let offset = offset_minutes * MINUTE_MS;
        let local = if due_at.0.rem_euclid(DAY_MS) == 0 { due_at.0 } else { due_at.0 + offset };
        let due_day = local.div_euclid(DAY_MS) * DAY_MS - offset;
        let Hours { from, to } = self.hours;
        self.days.iter().map(move |day| {
            let begins_at = Timestamp(due_day + day * DAY_MS);
            Slot {
                day: *day,
                begins_at,
                from: begins_at.plus_ms(from * HOUR_MS).max(due_at),
                to: begins_at.plus_ms(to * HOUR_MS),
            }
        })
    }
}

/// Parses an offset like `+01:00`, up to 14 hours. Returns minutes.
pub fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str, most: i64| {
        let is_two_digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_two_digits && *number <= most)
    };
    let minutes = number(hours, 14)? * 60 + number(minutes, 59)?;
    (minutes <= 14 * 60).then_some(sign * minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign_hours_and_minutes() {
        for (text, expected) in [
            ("+01:00", Some(60)),
            ("-03:30", Some(-210)),
            ("+00:00", Some(0)),
            ("+14:00", Some(840)),
            ("+14:30", None),
            ("+1:00", None),
            ("01:00", None),
            ("+01:60", None),
            ("+0a:00", None),
            ("", None),
            ("é1:00", None),
        ] {
            assert_eq!(parse_offset(text), expected, "{text}");
        }
    }
}
