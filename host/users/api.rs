//! Creating and fetching users.

use axum::extract::State;

use super::{ISO_DATE, User, View, country_code, store};
use crate::{
    app::App,
    clock::date,
    error::{Error, Result},
    http::{
        Caller,
        answer::Answer,
        body::Body,
        fields::{
            Choice, Email, Flag, HttpUrl, Object, OneOf, Phone, Text, Visible, Whole, fields,
        },
        path::Path,
    },
    store::{Json, Tx, is_duplicate},
};

pub struct Gender;

impl Choice for Gender {
    const ALL: &'static [&'static str] = &["male", "female", "others"];
}

pub struct Employment;

impl Choice for Employment {
    const ALL: &'static [&'static str] = &[
        "employed",
        "self-employed",
        "contract-worker",
        "business-owner",
        "student",
        "unemployed",
    ];
}

pub struct Role;

impl Choice for Role {
    const ALL: &'static [&'static str] = &["customer"];
}

fields! {
    /// A user to create.
    Body NewUser {
        /// Your own id of the user, without `@` and `/`; if it is left out, one is made.
        #[schemars(extend("pattern" = r"^[^\s@/\u0000-\u001F\u007F-\u009F]*$"))]
        user_id: Option<Visible<100>>,
        first_name: Text<100>,
        last_name: Text<100>,
        middle_name: Option<Text<100>>,
        /// Unique in your company, whatever its case: an existing user with this address is the answer.
        email: Email,
        phone: Option<Phone>,
        /// `DD/MM/YYYY`, not in the future.
        #[schemars(extend("pattern" = r"^\d{2}/\d{2}/\d{4}$", "examples" = ["10/12/1990"]))]
        date_of_birth: Option<Text<100>>,
        gender: Option<OneOf<Gender>>,
        address: Option<Text<500>>,
        state: Option<Text<100>>,
        city: Option<Text<100>>,
        /// Its English name.
        #[schemars(extend("examples" = ["nigeria"]))]
        country: Option<Text<100>>,
        image: Option<HttpUrl>,
        employment_status: Option<OneOf<Employment>>,
        years_of_employment: Option<Whole<0, 100>>,
        email_verified: Option<Flag>,
        phone_verified: Option<Flag>,
        /// If it is left out, `true`.
        active: Option<Flag>,
        role: Option<OneOf<Role>>,
        metadata: Option<Object>,
    }
}

pub async fn create(
    State(app): State<App>,
    Caller(company): Caller,
    body: Body<NewUser>,
) -> Result<Answer<View>> {
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
fn read(app: &App, company_id: &str, body: &Body<NewUser>) -> Result<(User, bool)> {
    let now = app.clock.now();
    let user_id = body.user_id()?;
    if user_id.as_deref().is_some_and(|id| id.contains(['@', '/'])) {
        return Err(body.must_be("user_id", "free of @ and /"));
    }
    let chosen = user_id.is_some();
    let user = User {
        company_id: company_id.to_owned(),
        id: app.random.id(now),
        user_id: user_id.unwrap_or_else(|| format!("usr-{}", app.random.id(now))),
        first_name: body.first_name()?,
        last_name: body.last_name()?,
        middle_name: body.middle_name()?,
        email: Some(body.email()?),
        phone: body.phone()?,
        date_of_birth: birth_of(app, body)?,
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
    Ok((read_rest(user, body)?, chosen))
}

fn read_rest(mut user: User, body: &Body<NewUser>) -> Result<User> {
    if let Some(country) = body.country()? {
        let code = country_code(&country)
            .ok_or_else(|| body.must_be("country", "the name of a country"))?;
        user.country_code = Some(code.to_owned());
        user.country = Some(country.to_lowercase());
    }
    user.image = body.image()?;
    user.employment_status = body.employment_status()?;
    user.years_of_employment = body.years_of_employment()?;
    user.email_verified = body.email_verified()?.unwrap_or(false);
    user.phone_verified = body.phone_verified()?.unwrap_or(false);
    user.active = body.active()?.unwrap_or(true);
    body.role()?;
    user.metadata = Json(body.metadata()?.unwrap_or_default());
    Ok(user)
}

fn birth_of(app: &App, body: &Body<NewUser>) -> Result<Option<String>> {
    let Some(text) = body.date_of_birth()? else { return Ok(None) };
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
) -> Result<Answer<View>> {
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
