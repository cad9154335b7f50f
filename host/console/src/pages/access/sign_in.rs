//! Signing in and out.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{Form as FormBody, Query, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Redirect},
};
use serde::Deserialize;
use serde_json::json;
use tollhouse_http::RequestOrigin;

use crate::{
    Console,
    cookie::SESSION,
    form::Sent,
    page::{Frame, PageResult, render},
    session::{Session, begin, check_same_origin},
};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    email: String,
    failure: Option<String>,
    /// Link to the OpenID provider, if there is one. It replaces the form.
    provider: Option<ProviderLink>,
}

struct ProviderLink {
    name: Arc<str>,
    href: String,
}

impl SignInPage {
    fn new(console: &Console, next: String) -> SignInPage {
        let link = |name: &Arc<str>| ProviderLink {
            name: name.clone(),
            href: console.options.site.href(&["sign-in", "oidc"], &[("next", &next)]),
        };
        SignInPage {
            frame: Frame::signed_out(console.options.site, "Sign in"),
            provider: console.options.openid_provider.as_ref().map(link),
            next,
            email: String::new(),
            failure: None,
        }
    }
}

#[derive(Deserialize)]
pub struct Next {
    #[serde(default)]
    pub next: String,
}

pub async fn show(State(console): State<Console>, Query(Next { next }): Query<Next>) -> PageResult {
    render(&SignInPage::new(&console, next))
}

/// Shows why a sign-in failed.
pub fn show_failure(
    console: &Console,
    next: String,
    status: StatusCode,
    message: String,
) -> PageResult {
    let page = SignInPage { failure: Some(message), ..SignInPage::new(console, next) };
    Ok((status, render(&page)?).into_response())
}

#[derive(Deserialize)]
pub struct Credentials {
    email: String,
    password: String,
    code: String,
    #[serde(default)]
    next: String,
}

pub async fn submit(
    State(console): State<Console>,
    origin: RequestOrigin,
    headers: HeaderMap,
    FormBody(sent): FormBody<Credentials>,
) -> PageResult {
    check_same_origin(&headers)?;
    let code: String = sent.code.split_whitespace().collect();
    let body = json!({
        "email": sent.email, "password": sent.password, "code": code,
        "member": console.options.site.is_for_members(),
    });
    let call = (Method::POST, "/sign-in");
    match console.api.call(&origin, None, call, Some(&body)).await {
        Ok(session) => Ok(begin(&session, &sent.next, &console.options)),
        Err(failure) => {
            let status = failure.form_status();
            let page = SignInPage {
                email: sent.email,
                failure: Some(failure.message),
                ..SignInPage::new(&console, sent.next)
            };
            Ok((status, render(&page)?).into_response())
        }
    }
}

pub async fn sign_out(
    State(console): State<Console>,
    session: Session,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    let everywhere = sent.text("everywhere") == "true";
    session.post(&["sign-out"], &json!({ "everywhere": everywhere })).await?;
    let cookie = SESSION.set("", &console.options);
    let sign_in = Redirect::to(&session.href(&["sign-in"], &[]));
    Ok(([(header::SET_COOKIE, cookie)], sign_in).into_response())
}
