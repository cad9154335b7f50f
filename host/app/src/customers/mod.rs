//! Users: the customers of a company.

pub mod api;
mod create;
mod export;
mod import;
mod quota;
mod store;
mod table;
mod verification;

use celes::LookupTable;
use chrono::{Datelike, NaiveDate};
use serde::Serializer;

pub use self::{
    api::UserFilter,
    export::{REMOVE_JOB, remove_job, sweep},
    store::{
        User, UserKey, find, find_by_id,
        list::{explain, find_by_ids},
        lock,
        search::metadata_digests,
    },
};
use crate::state::prelude::*;

pub const FEATURE: &str = "users";
const ROLE: &str = "customer";

/// A user as companies see it: see [`User::view`].
pub type View = User;

impl User {
    /// Completes the representation for companies.
    pub fn view(self, now: Timestamp) -> View {
        let age = parse_birth_date(self.date_of_birth.as_deref()).map(|born| age(born, now));
        User { role: ROLE, age, ..self }
    }
}

/// Formats of dates of birth: as stored, and as companies write them.
const ISO_DATE: &str = "%Y-%m-%d";
const WRITTEN_DATE: &str = "%d/%m/%Y";

fn parse_birth_date(stored: Option<&str>) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(stored?, ISO_DATE).ok()
}

fn serialize_birth_date<S: Serializer>(stored: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    let born = parse_birth_date(stored.as_deref());
    born.map(|born| born.format(WRITTEN_DATE).to_string()).serialize(to)
}

/// Returns the age in whole years in UTC.
fn age(born: NaiveDate, now: Timestamp) -> i32 {
    let today = now.to_datetime().date_naive();
    let had_birthday = (today.month(), today.day()) >= (born.month(), born.day());
    today.year() - born.year() - i32::from(!had_birthday)
}

/// Returns the ISO 3166 code of an English country name, ignoring case, spaces and punctuation.
fn country_code(name: &str) -> Option<&'static str> {
    let letters = |name: &str| -> String {
        let name = name.to_lowercase();
        let name = name.strip_prefix("the ").unwrap_or(&name);
        name.chars().filter(|c| c.is_alphanumeric()).collect()
    };
    let wanted = letters(name);
    let named = |country: &celes::Country| {
        letters(country.long_name) == wanted
            || country.aliases.iter().any(|alias| letters(alias) == wanted)
    };
    celes::Country::get_countries().into_iter().find(named).map(|country| country.alpha2)
}

/// Selects columns of a table `t` whose rows belong to users, with the current `user_id` of each
/// user.
macro_rules! select_with_user_id {
    ($columns:literal $(, $from:literal)?) => {
        concat!(
            "SELECT ",
            $columns,
            ", COALESCE(
                 (SELECT users.user_id FROM users
                  WHERE users.company_id = t.company_id AND users.id = t.user_key),
                 t.user_id) AS present_user_id",
            $($from)?
        )
    };
}
pub(crate) use select_with_user_id;

pub const SELECT_WITH_USER_ID: &str = select_with_user_id!("t.*");

/// Like [`find`], but 404 if there is no such user.
pub async fn get(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<User> {
    find(tx, company_id, id).await?.ok_or_else(not_found)
}

/// Returns a user by e-mail address, else by `user_id`, else by internal id; 404 if there is none.
pub async fn get_by_email_or_id(tx: &mut Tx, company_id: &CompanyId, name: &str) -> Result<User> {
    if name.contains('@')
        && let Some(user) = store::find_by_email(tx, company_id, name).await?
    {
        return Ok(user);
    }
    get(tx, company_id, name).await
}

/// The error of a request for which the provider requires the user's e-mail address.
pub fn missing_email() -> Error {
    Error::invalid("email address not found for this user")
}

/// The same error for a missing user and for one of another company.
pub fn not_found() -> Error {
    Error::not_found("user not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_counts_birthdays() {
        let born = NaiveDate::from_ymd_opt(2000, 2, 29).unwrap();
        for (now, years) in [
            ("2026-02-28T23:59:59Z", 25),
            ("2026-03-01T00:00:00Z", 26),
            ("2024-02-29T00:00:00Z", 24),
        ] {
            assert_eq!(age(born, Timestamp::parse(now).unwrap()), years, "{now}");
        }
    }

    #[test]
    fn country_codes_are_found_by_english_name() {
        for (name, code) in [
            ("nigeria", Some("NG")),
            ("Ghana", Some("GH")),
            ("united states of america", Some("US")),
            ("united kingdom", Some("GB")),
            ("tanzania", Some("TZ")),
            ("south africa", Some("ZA")),
            ("atlantis", None),
            ("", None),
        ] {
            assert_eq!(country_code(name), code, "{name}");
        }
    }
}
