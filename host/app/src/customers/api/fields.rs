//! User fields in request bodies.

use super::super::{ISO_DATE, ROLE, User, WRITTEN_DATE, country_code};
use crate::state::prelude::*;
use tollhouse_platform::{clock::parse_date, values::email::one_line};

const MAX_METADATA_KEYS: usize = 100;

choices! {
    Gender = &["male", "female", "others"];
    Employment = &[
        "employed", "self-employed", "contract-worker", "business-owner", "student", "unemployed",
    ];
    Role = &["customer"];
}

fields! {
    /// A user to create.
    Body NewUser(body, app: &App) {
        /// Your id for the user, percent-encoded in paths. Default: a generated id with the prefix
        /// `usr-`.
        user_id: Option<PathSegment<100>>,
        first_name: Text<100>,
        last_name: Text<100>,
        middle_name: Option<Text<100>>,
        /// Unique in your company, ignoring case. If a user has this address, that user is
        /// returned.
        email: Email,
        phone: Option<Phone>,
        /// `DD/MM/YYYY`, not in the future.
        #[schemars(extend("pattern" = r"^\d{2}/\d{2}/\d{4}$", "examples" = ["10/12/1990"]))]
        date_of_birth: Option<Text<100>> => check_birth_date(app, body, date_of_birth),
        gender: Option<OneOf<Gender>>,
        address: Option<Prose<500>>,
        state: Option<Text<100>>,
        city: Option<Text<100>>,
        /// English name of the country.
        #[schemars(extend("examples" = ["nigeria"]))]
        country: Option<Text<100>> as Option<Country> => find_country(body, country),
        image: Option<HttpUrl>,
        employment_status: Option<OneOf<Employment>>,
        years_of_employment: Option<Whole<0, 100>>,
        /// Default: `true`.
        active: Option<Flag>,
        role: Option<OneOf<Role>>,
        /// At most 100 keys.
        metadata: Option<Object> => check_metadata(body, metadata),
    }
}

fields! {
    /// Changes to a user. Omitted fields stay unchanged; `""` or `null` clears an optional field.
    Body UserChange(body, app: &App) {
        user_id: Changeable<PathSegment<100>>,
        first_name: Changeable<Text<100>>,
        last_name: Changeable<Text<100>>,
        middle_name: Clearable<Text<100>>,
        /// Unique in your company, ignoring case.
        email: Clearable<Email>,
        phone: Clearable<Phone>,
        /// `DD/MM/YYYY`, not in the future.
        #[schemars(extend("pattern" = r"^\d{2}/\d{2}/\d{4}$", "examples" = ["10/12/1990"]))]
        date_of_birth: Clearable<Text<100>>
            => date_of_birth.try_map(|text| check_birth_date(app, body, text)),
        gender: Clearable<OneOf<Gender>>,
        address: Clearable<Prose<500>>,
        /// English name of the country.
        #[schemars(extend("examples" = ["nigeria"]))]
        country: Clearable<Text<100>> as Change<Country>
            => country.try_map(|name| find_country(body, name)),
        state: Clearable<Text<100>>,
        city: Clearable<Text<100>>,
        image: Clearable<HttpUrl>,
        employment_status: Clearable<OneOf<Employment>>,
        years_of_employment: Clearable<Whole<0, 100>>,
        active: Changeable<Flag>,
        email_verified: Changeable<Flag>,
        phone_verified: Changeable<Flag>,
        /// Replaces all metadata; at most 100 keys.
        metadata: Clearable<Object>
            => metadata.try_map(|metadata| check_metadata(body, metadata)),
    }
}

type Metadata = Map<String, Value>;

/// A country: its name in lower case, and its code.
type Country = (String, String);

fn check_birth_date(app: &App, body: &Fields, text: Option<String>) -> Result<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    let today = app.clock.now().to_datetime().date_naive();
    match parse_date(&text, WRITTEN_DATE).filter(|born| *born <= today) {
        Some(born) => Ok(Some(born.format(ISO_DATE).to_string())),
        None => Err(body.must_be("date_of_birth", "a past date in the form DD/MM/YYYY")),
    }
}

fn find_country(body: &Fields, name: Option<String>) -> Result<Option<Country>> {
    let Some(name) = name else { return Ok(None) };
    let code = country_code(&name);
    let code = code.ok_or_else(|| body.must_be("country", "the name of a country"))?;
    Ok(Some((one_line(&name).to_lowercase(), code.to_owned())))
}

fn check_metadata(body: &Fields, metadata: Option<Metadata>) -> Result<Option<Metadata>> {
    if metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA_KEYS) {
        let what = format!("an object with at most {MAX_METADATA_KEYS} keys");
        return Err(body.must_be("metadata", &what));
    }
    Ok(metadata)
}

impl NewUser {
    pub fn into_user(self, app: &App, company_id: &CompanyId) -> User {
        let now = app.clock.now();
        let (country, country_code) = self.country.unzip();
        User {
            company_id: company_id.to_owned(),
            id: app.random.id(now).into(),
            user_id: self.user_id.unwrap_or_else(|| format!("usr-{}", app.random.id(now))),
            first_name: self.first_name,
            last_name: self.last_name,
            middle_name: self.middle_name,
            email: Some(self.email),
            phone: self.phone,
            date_of_birth: self.date_of_birth,
            gender: self.gender,
            address: self.address,
            state: self.state,
            city: self.city,
            country,
            country_code,
            image: self.image,
            employment_status: self.employment_status,
            years_of_employment: self.years_of_employment,
            email_verified: false,
            phone_verified: false,
            active: self.active.unwrap_or(true),
            role: ROLE,
            age: None,
            metadata: Json(self.metadata.unwrap_or_default()),
            created_at: now,
            updated_at: now,
        }
    }
}

impl UserChange {
    pub fn apply(self, user: &mut User) {
        set(self.user_id, &mut user.user_id);
        set(self.first_name, &mut user.first_name);
        set(self.last_name, &mut user.last_name);
        self.middle_name.apply(&mut user.middle_name);
        self.email.apply(&mut user.email);
        self.phone.apply(&mut user.phone);
        self.date_of_birth.apply(&mut user.date_of_birth);
        self.gender.apply(&mut user.gender);
        self.address.apply(&mut user.address);
        if let Change::To(country) = self.country {
            (user.country, user.country_code) = country.unzip();
        }
        self.state.apply(&mut user.state);
        self.city.apply(&mut user.city);
        self.image.apply(&mut user.image);
        self.employment_status.apply(&mut user.employment_status);
        self.years_of_employment.apply(&mut user.years_of_employment);
        set(self.active, &mut user.active);
        set(self.email_verified, &mut user.email_verified);
        set(self.phone_verified, &mut user.phone_verified);
        if let Change::To(metadata) = self.metadata {
            user.metadata = Json(metadata.unwrap_or_default());
        }
    }
}

fn set<T>(new: Option<T>, value: &mut T) {
    if let Some(new) = new {
        *value = new;
    }
}
