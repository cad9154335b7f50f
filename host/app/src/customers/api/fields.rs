//! User fields in request bodies.

use serde_json::{Map, Value};

use super::super::{ISO_DATE, User, country_code};
use crate::state::App;
use tollhouse_http::request::{
    body::{Body, Fields},
    fields::{
        Choice, Email, Flag, HttpUrl, Object, OneOf, PathSegment, Phone, Prose, Text, Whole, fields,
    },
};
use tollhouse_platform::{
    clock::parse_date,
    error::Result,
    store::Json,
    values::{email::one_line, id::CompanyId},
};

/// Maximum number of keys in a user's metadata.
const MAX_METADATA_KEYS: usize = 100;

pub struct Gender;

impl Choice for Gender {
    const ALL: &'static [&'static str] = &["male", "female", "others"];
}

pub struct Employment;

impl Choice for Employment {
    const ALL: &'static [&'static str] = &[
        "employed", "self-employed", "contract-worker", "business-owner", "student", "unemployed",
    ];
}

pub struct Role;

impl Choice for Role {
    const ALL: &'static [&'static str] = &["customer"];
}

fields! {
    /// A user to create.
    Body NewUser {
        /// Your id of the user, percent-encoded in paths. Default: an id with the prefix `usr-`.
        user_id: Option<PathSegment<100>>,
        first_name: Text<100>,
        last_name: Text<100>,
        middle_name: Option<Text<100>>,
        /// Unique in your company, ignoring case. An existing user with it is returned.
        email: Email,
        phone: Option<Phone>,
        /// `DD/MM/YYYY`, not in the future.
        #[schemars(extend("pattern" = r"^\d{2}/\d{2}/\d{4}$", "examples" = ["10/12/1990"]))]
        date_of_birth: Option<Text<100>>,
        gender: Option<OneOf<Gender>>,
        address: Option<Prose<500>>,
        state: Option<Text<100>>,
        city: Option<Text<100>>,
        /// English name of the country.
        #[schemars(extend("examples" = ["nigeria"]))]
        country: Option<Text<100>>,
        image: Option<HttpUrl>,
        employment_status: Option<OneOf<Employment>>,
        years_of_employment: Option<Whole<0, 100>>,
        /// Default: `true`.
        active: Option<Flag>,
        role: Option<OneOf<Role>>,
        /// At most 100 keys.
        metadata: Option<Object>,
    }
}

fields! {
    /// Changes to a user. Omitted fields stay unchanged; `""` or `null` clears an optional field.
    Body UserChange {
        user_id: Option<PathSegment<100>>,
        first_name: Option<Text<100>>,
        last_name: Option<Text<100>>,
        middle_name: Option<Text<100>>,
        /// Unique in your company, ignoring case.
        email: Option<Email>,
        phone: Option<Phone>,
        /// `DD/MM/YYYY`, not in the future.
        #[schemars(extend("pattern" = r"^\d{2}/\d{2}/\d{4}$", "examples" = ["10/12/1990"]))]
        date_of_birth: Option<Text<100>>,
        gender: Option<OneOf<Gender>>,
        address: Option<Prose<500>>,
        /// English name of the country.
        #[schemars(extend("examples" = ["nigeria"]))]
        country: Option<Text<100>>,
        state: Option<Text<100>>,
        city: Option<Text<100>>,
        image: Option<HttpUrl>,
        employment_status: Option<OneOf<Employment>>,
        years_of_employment: Option<Whole<0, 100>>,
        active: Option<Flag>,
        email_verified: Option<Flag>,
        phone_verified: Option<Flag>,
        /// Replaces all metadata; at most 100 keys.
        metadata: Option<Object>,
    }
}

/// Reads a new user, and whether the body sets the `user_id`.
pub fn read_new_user(
    app: &App,
    company_id: &CompanyId,
    body: &Body<NewUser>,
) -> Result<(User, bool)> {
    let now = app.clock.now();
    let user_id = body.user_id()?;
    let chosen = user_id.is_some();
    let user = User {
        company_id: company_id.to_owned(),
        id: app.random.id(now).into(),
        user_id: user_id.unwrap_or_else(|| format!("usr-{}", app.random.id(now))),
        first_name: body.first_name()?,
        last_name: body.last_name()?,
        middle_name: body.middle_name()?,
        email: Some(body.email()?),
        phone: body.phone()?,
        date_of_birth: birth_date_of(app, body, body.date_of_birth()?)?,
        gender: body.gender()?,
        address: body.address()?,
        state: body.state()?,
        city: body.city()?,
        country: None,
        country_code: None,
        image: None,
        employment_status: None,
        years_of_employment: None,
        email_verified: false,
        phone_verified: false,
        active: true,
        metadata: Json::default(),
        created_at: now,
        updated_at: now,
    };
    Ok((read_optional_fields(user, body)?, chosen))
}

fn read_optional_fields(mut user: User, body: &Body<NewUser>) -> Result<User> {
    (user.country, user.country_code) = country_of(body, body.country()?)?;
    user.image = body.image()?;
    user.employment_status = body.employment_status()?;
    user.years_of_employment = body.years_of_employment()?;
    user.active = body.active()?.unwrap_or(true);
    body.role()?;
    user.metadata = metadata_of(body, body.metadata()?)?;
    Ok(user)
}

/// Changes a user in place.
pub fn apply_change(app: &App, user: &mut User, body: &Body<UserChange>) -> Result<()> {
    set_required(body, "user_id", body.user_id()?, &mut user.user_id)?;
    set_required(body, "first_name", body.first_name()?, &mut user.first_name)?;
    set_required(body, "last_name", body.last_name()?, &mut user.last_name)?;
    set_optional(body, "middle_name", body.middle_name()?, &mut user.middle_name);
    set_optional(body, "email", body.email()?, &mut user.email);
    set_optional(body, "phone", body.phone()?, &mut user.phone);
    let born = birth_date_of(app, body, body.date_of_birth()?)?;
    set_optional(body, "date_of_birth", born, &mut user.date_of_birth);
    set_optional(body, "gender", body.gender()?, &mut user.gender);
    set_optional(body, "address", body.address()?, &mut user.address);
    let (country, code) = country_of(body, body.country()?)?;
    set_optional(body, "country", country, &mut user.country);
    set_optional(body, "country", code, &mut user.country_code);
    set_optional(body, "state", body.state()?, &mut user.state);
    set_optional(body, "city", body.city()?, &mut user.city);
    set_optional(body, "image", body.image()?, &mut user.image);
    set_optional(body, "employment_status", body.employment_status()?, &mut user.employment_status);
    let years = body.years_of_employment()?;
    set_optional(body, "years_of_employment", years, &mut user.years_of_employment);
    set_required(body, "active", body.active()?, &mut user.active)?;
    set_required(body, "email_verified", body.email_verified()?, &mut user.email_verified)?;
    set_required(body, "phone_verified", body.phone_verified()?, &mut user.phone_verified)?;
    if body.has("metadata") {
        user.metadata = metadata_of(body, body.metadata()?)?;
    }
    Ok(())
}

/// Applies a change to a field that cannot be cleared.
fn set_required<T>(body: &Fields, field: &str, sent: Option<T>, into: &mut T) -> Result<()> {
    match sent {
        Some(value) => *into = value,
        None if body.has(field) => return Err(body.required(field)),
        None => {}
    }
    Ok(())
}

fn set_optional<T>(body: &Fields, field: &str, sent: Option<T>, into: &mut Option<T>) {
    if body.has(field) {
        *into = sent;
    }
}

fn birth_date_of(app: &App, body: &Fields, text: Option<String>) -> Result<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    let today = app.clock.now().to_datetime().date_naive();
    match parse_date(&text, "%d/%m/%Y").filter(|born| *born <= today) {
        Some(born) => Ok(Some(born.format(ISO_DATE).to_string())),
        None => Err(body.must_be("date_of_birth", "a past date in the form DD/MM/YYYY")),
    }
}

/// Returns the country in lower case and its code.
fn country_of(body: &Fields, name: Option<String>) -> Result<(Option<String>, Option<String>)> {
    let Some(name) = name else { return Ok((None, None)) };
    let code = country_code(&name);
    let code = code.ok_or_else(|| body.must_be("country", "the name of a country"))?;
    Ok((Some(one_line(&name).to_lowercase()), Some(code.to_owned())))
}

fn metadata_of(
    body: &Fields,
    metadata: Option<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>> {
    let metadata = metadata.unwrap_or_default();
    match metadata.len() <= MAX_METADATA_KEYS {
        true => Ok(Json(metadata)),
        false => {
            Err(body
                .must_be("metadata", &format!("an object with at most {MAX_METADATA_KEYS} keys")))
        }
    }
}
