//! The page of an invitation: a person sets a password and registers an authenticator app.

use askama::Template;
use axum::{
    extract::{Form as FormBody, Path, State},
    http::{HeaderMap, Method},
    response::IntoResponse,
};
use qrcode::{QrCode, render::svg};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_http::RequestOrigin;

use crate::{
    Console,
    api::ApiFailure,
    format::plain,
    page::{Frame, PageError, PageResult, render},
    session::{begin, check_same_origin},
};

/// The app that a person registers.
struct Enrolment {
    email: String,
    secret: String,
    url: String,
    sealed: String,
    /// The QR code of the URL as SVG.
    image: String,
}

#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage {
    frame: Frame,
    invitation: String,
    enrolment: Option<Enrolment>,
    failure: Option<String>,
}

pub async fn show(State(console): State<Console>, Path(invitation): Path<String>) -> PageResult {
    show_step(&console, invitation, None, None)
}

fn show_step(
    console: &Console,
    invitation: String,
    enrolment: Option<Enrolment>,
    failure: Option<String>,
) -> PageResult {
    let frame = Frame::signed_out(console.options.site, "Welcome");
    render(&WelcomePage { frame, invitation, enrolment, failure })
}

/// The password, or the first code. The enrolment comes with the code, so that a wrong code shows
/// the same page again.
#[derive(Deserialize)]
pub struct WelcomeForm {
    #[serde(default)]
    password: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    enrolment: String,
}

pub async fn submit(
    State(console): State<Console>,
    origin: RequestOrigin,
    headers: HeaderMap,
    Path(invitation): Path<String>,
    FormBody(step): FormBody<WelcomeForm>,
) -> PageResult {
    check_same_origin(&headers)?;
    if step.code.is_empty() {
        let member = console.options.site.is_for_members();
        let body = json!({
            "invitation": invitation, "password": step.password, "member": member,
        });
        let call = (Method::POST, "/sign-in/enrol");
        return match console.api.call(&origin, None, call, Some(&body)).await {
            Ok(enrolment) => show_step(&console, invitation, Some(enrolment_of(&enrolment)?), None),
            Err(failure) => show_failure(&console, invitation, None, failure),
        };
    }
    let code: String = step.code.split_whitespace().collect();
    let body = json!({
        "invitation": invitation, "enrolment": step.enrolment, "code": code,
        "member": console.options.site.is_for_members(),
    });
    let call = (Method::POST, "/sign-in/confirm");
    match console.api.call(&origin, None, call, Some(&body)).await {
        Ok(session) => Ok(begin(&session, "", &console.options)),
        Err(failure) => {
            let again = json!({
                "email": step.email, "totp_secret": step.secret, "totp_url": step.url,
                "enrolment": step.enrolment,
            });
            show_failure(&console, invitation, Some(enrolment_of(&again)?), failure)
        }
    }
}

fn show_failure(
    console: &Console,
    invitation: String,
    enrolment: Option<Enrolment>,
    failure: ApiFailure,
) -> PageResult {
    let status = failure.form_status();
    let page = show_step(console, invitation, enrolment, Some(failure.message))?;
    Ok((status, page).into_response())
}

fn enrolment_of(enrolment: &Value) -> Result<Enrolment, PageError> {
    let code = QrCode::new(plain(&enrolment["totp_url"])).map_err(|error| {
        tracing::error!(%error, "the QR code of an invitation could not be made");
        ApiFailure::internal()
    })?;
    let image = code.render::<svg::Color<'_>>().min_dimensions(200, 200).build();
    // Without the XML declaration, which HTML does not have.
    let image = image.find("<svg").map(|start| image[start..].to_owned()).unwrap_or_default();
    Ok(Enrolment {
        email: plain(&enrolment["email"]),
        secret: plain(&enrolment["totp_secret"]),
        url: plain(&enrolment["totp_url"]),
        sealed: plain(&enrolment["enrolment"]),
        image,
    })
}
