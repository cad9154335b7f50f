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
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::{
    export::{REMOVE_JOB, remove_job, sweep},
    store::{
        User, UserKey,
        list::{Filter, Sort, explain},
        search::metadata_digests,
    },
};
use tollhouse_platform::{clock::Timestamp, store::Tx, values::id::CompanyId};

/// Feature that a plan must include for the creation of users.
pub const FEATURE: &str = "users";

impl User {
    /// The representation for companies.
    #[must_use]
    pub fn view(self, now: Timestamp) -> View {
        let born = self.birth_date();
        View {
            id: self.id,
            user_id: self.user_id,
            first_name: self.first_name,
            last_name: self.last_name,
            middle_name: self.middle_name,
            email: self.email,
            phone: self.phone,
            date_of_birth: born.map(|born| born.format("%d/%m/%Y").to_string()),
            gender: self.gender,
            address: self.address,
            state: self.state,
            city: self.city,
            country: self.country,
            country_code: self.country_code,
            image: self.image,
            employment_status: self.employment_status,
            years_of_employment: self.years_of_employment,
            email_verified: self.email_verified,
            phone_verified: self.phone_verified,
            active: self.active,
            role: "customer",
            age: born.map(|born| age(born, now)),
            metadata: self.metadata.0,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    fn birth_date(&self) -> Option<NaiveDate> {
        NaiveDate::parse_from_str(self.date_of_birth.as_deref()?, ISO_DATE).ok()
    }
}

/// A customer of a company.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "User")]
pub struct View {
    id: UserKey,
    /// Chosen by the company, or generated with the prefix `usr-`.
    user_id: String,
    first_name: String,
    last_name: String,
    middle_name: Option<String>,
    email: Option<String>,
    /// E.164 format.
    phone: Option<String>,
    /// `DD/MM/YYYY`.
    date_of_birth: Option<String>,
    gender: Option<String>,
    address: Option<String>,
    state: Option<String>,
    city: Option<String>,
    /// English name in lower case.
    country: Option<String>,
    /// ISO 3166 code of two capital letters.
    country_code: Option<String>,
    image: Option<String>,
    employment_status: Option<String>,
    years_of_employment: Option<i64>,
    email_verified: bool,
    phone_verified: bool,
    active: bool,
    /// Always `customer`.
    role: &'static str,
    /// Age in whole years, today in UTC.
    age: Option<i32>,
    metadata: Map<String, Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Format in which dates of birth are stored.
const ISO_DATE: &str = "%Y-%m-%d";

/// Returns the age in whole years in UTC.
fn age(born: NaiveDate, now: Timestamp) -> i32 {
    let today = now.to_datetime().date_naive();
    let had_birthday = (today.month(), today.day()) >= (born.month(), born.day());
    today.year() - born.year() - i32::from(!had_birthday)
}

/// Returns a user by `user_id`, else by internal id.
pub async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<User>, tollhouse_platform::store::Error> {
    store::find_by_user_id_or_id(tx, company_id, id).await
}

/// Returns a user by internal id, as other records refer to users. A `user_id` never matches.
pub async fn find_by_id(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<Option<User>, tollhouse_platform::store::Error> {
    store::find_by_id(tx, company_id, id).await
}

/// Locks a user until the transaction ends, to serialize changes such as that of the default card.
pub async fn lock(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> Result<(), tollhouse_platform::store::Error> {
    store::lock(tx, company_id, id).await?;
    Ok(())
}

/// Returns a user by a path value: by e-mail address, else as [`find`] does.
pub async fn find_by_email_or_id(
    tx: &mut Tx,
    company_id: &CompanyId,
    name: &str,
) -> Result<Option<User>, tollhouse_platform::store::Error> {
    if name.contains('@')
        && let Some(user) = store::find_by_email(tx, company_id, name).await?
    {
        return Ok(Some(user));
    }
    find(tx, company_id, name).await
}

/// Returns users by internal ids. Missing users are omitted.
pub async fn find_by_ids(
    tx: &mut Tx,
    company_id: &CompanyId,
    ids: &[UserKey],
) -> Result<Vec<User>, tollhouse_platform::store::Error> {
    let mut users = Vec::new();
    for some in ids.chunks(self::store::MAX_IDS_PER_QUERY) {
        users.extend(self::store::find_by_ids(tx, company_id, some).await?);
    }
    Ok(users)
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
