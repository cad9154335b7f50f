//! Creating and fetching users.

use axum::extract::State;

use super::{ISO_DATE, User, country_code, store};
use crate::{
    app::App,
    clock::date,
    error::{Error, Result},
    http::{Caller, answer::Answer, body::Fields, path::Path},
    phone,
    store::{Json, Tx, is_duplicate},
};

const GENDERS: [&str; 3] = ["male", "female", "others"];
const EMPLOYMENT: [&str; 6] =
    ["employed", "self-employed", "contract-worker", "business-owner", "student", "unemployed"];

pub async fn create(
    State(app): State<App>,
    Caller(company): Caller,
    body: Fields,
) -> Result<Answer> {
    let (user, chosen) = read(&app, &company.id, &body)?;
    let db = app.store.clone();
    let user = db.write(async move |tx| create_or_find(tx, user, chosen).await).await?;
    Answer::data(user.view(app.clock.now()), "User created successfully")
}

/// A user of that e-mail is the one that is meant; `chosen` tells that the caller named the `user_id`.
async fn create_or_find(tx: &mut Tx, user: User, chosen: bool) -> Result<User> {
    if !store::insert(tx, &user).await? {
        let email = user.email.as_deref().unwrap_or_default();
        let found = store::lock_by_email(tx, &user.company_id, email).await?;
        let holder = store::by_user_id(tx, &user.company_id, &user.user_id).await?;
        return match (found, holder) {
            // The caller's `user_id` is somebody else's.
            (None, Some(_)) => Err(Error::invalid("user already exists")),
            (Some(found), Some(holder)) if chosen && holder.id != found.id => {
                Err(Error::invalid("user already exists"))
            }
            (Some(found), None) if chosen => {
                let renamed = store::set_user_id(tx, &found, &user.user_id, user.created_at).await;
                renamed.map_err(|error| match is_duplicate(&error) {
                    true => Error::invalid("user already exists"),
                    false => error.into(),
                })
            }
            (Some(found), _) => Ok(found),
            (None, None) => Err(Error::internal("a user was neither stored nor found")),
        };
    }
    Ok(user)
}

/// The user that a body describes, and whether it names the `user_id`.
fn read(app: &App, company_id: &str, body: &Fields) -> Result<(User, bool)> {
    let now = app.clock.now();
    let user_id = body.visible("user_id", 100)?;
    if user_id.as_deref().is_some_and(|id| id.contains(['@', '/'])) {
        return Err(body.must_be("user_id", "free of @ and /"));
    }
    let chosen = user_id.is_some();
    let user = User {
        company_id: company_id.to_owned(),
        id: app.random.id(now),
        user_id: user_id.unwrap_or_else(|| format!("usr-{}", app.random.id(now))),
        first_name: body.required_text("first_name", 100)?,
        last_name: body.required_text("last_name", 100)?,
        middle_name: body.text("middle_name", 100)?,
        email: Some(body.email("email")?.ok_or_else(|| body.required("email"))?),
        phone: phone_of(body)?,
        date_of_birth: birth_of(app, body)?,
        gender: body.one_of("gender", &GENDERS)?,
        address: body.text("address", 500)?,
        state: body.text("state", 100)?,
        city: body.text("city", 100)?,
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
    Ok((read_rest(user, body)?, chosen))
}

fn read_rest(mut user: User, body: &Fields) -> Result<User> {
    if let Some(country) = body.text("country", 100)? {
        let code = country_code(&country)
            .ok_or_else(|| body.must_be("country", "the name of a country"))?;
        user.country_code = Some(code.to_owned());
        user.country = Some(country.to_lowercase());
    }
    user.image = body.url("image")?;
    user.employment_status = body.one_of("employment_status", &EMPLOYMENT)?;
    user.years_of_employment = body.integer("years_of_employment", 0, 100)?;
    user.email_verified = body.boolean("email_verified")?.unwrap_or(false);
    user.phone_verified = body.boolean("phone_verified")?.unwrap_or(false);
    user.active = body.boolean("active")?.unwrap_or(true);
    body.one_of("role", &["customer"])?;
    user.metadata = Json(body.object("metadata")?.unwrap_or_default());
    Ok(user)
}

fn phone_of(body: &Fields) -> Result<Option<String>> {
    match body.text("phone", 100)? {
        Some(text) if !phone::is_e164(&text) => {
            Err(body.must_be("phone", "a phone number in E.164 format"))
        }
        phone => Ok(phone),
    }
}

fn birth_of(app: &App, body: &Fields) -> Result<Option<String>> {
    let Some(text) = body.text("date_of_birth", 100)? else { return Ok(None) };
    let today = app.clock.now().to_datetime().date_naive();
    match date(&text, "%d/%m/%Y").filter(|born| *born <= today) {
        Some(born) => Ok(Some(born.format(ISO_DATE).to_string())),
        None => Err(body.must_be("date_of_birth", "a past date in the form DD/MM/YYYY")),
    }
}

/// By e-mail when the path value holds an `@`, else by `user_id`, else by internal id.
pub async fn fetch(
    State(app): State<App>,
    Caller(company): Caller,
    Path(email_or_id): Path<String>,
) -> Result<Answer> {
    let user = app
        .store
        .read(async |tx| match email_or_id.contains('@') {
            true => store::by_email(tx, &company.id, &email_or_id).await,
            false => store::by_user_id_or_id(tx, &company.id, &email_or_id).await,
        })
        .await?;
    let user = user.ok_or_else(|| Error::not_found("user not found"))?;
    Answer::data(user.view(app.clock.now()), "User fetched successfully")
}
