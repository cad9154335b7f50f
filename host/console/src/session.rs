//! The person behind a request: the cookie of its session, and protection of forms.

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{
    Console, ConsoleOptions,
    api::{ApiResult, path, read},
    cookie::SESSION,
    format::{Cell, plain},
    page::{PageError, PageResult},
    site::Site,
};
use tollhouse_http::RequestOrigin;

/// The person who signed in, as `GET /me` returns it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Me {
    pub name: String,
    pub permissions: Vec<String>,
    /// Ids of the companies to which the person is limited.
    pub companies: Option<Vec<String>>,
    /// Id of the company of which the person is a member; `None`: an operator.
    pub company: Option<String>,
}

impl Me {
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == permission)
    }
}

/// A request of a person who signed in.
#[derive(Clone)]
pub struct Session {
    console: Console,
    token: String,
    origin: RequestOrigin,
    pub me: Me,
}

impl Session {
    pub async fn get(&self, segments: &[&str], query: &[(&str, &str)]) -> ApiResult {
        let path = path(segments, query);
        self.console.api.call(&self.origin, Some(&self.token), (Method::GET, &path), None).await
    }

    pub async fn post(&self, segments: &[&str], body: &Value) -> ApiResult {
        self.change(Method::POST, segments, Some(body)).await
    }

    pub async fn put(&self, segments: &[&str], body: &Value) -> ApiResult {
        self.change(Method::PUT, segments, Some(body)).await
    }

    pub async fn patch(&self, segments: &[&str], body: &Value) -> ApiResult {
        self.change(Method::PATCH, segments, Some(body)).await
    }

    pub async fn delete(&self, segments: &[&str]) -> ApiResult {
        self.change(Method::DELETE, segments, None).await
    }

    async fn change(&self, method: Method, segments: &[&str], body: Option<&Value>) -> ApiResult {
        let path = path(segments, &[]);
        self.console.api.call(&self.origin, Some(&self.token), (method, &path), body).await
    }

    pub fn site(&self) -> Site {
        self.console.options.site
    }

    /// Returns the path of a page of this site, with a query of the values that are not empty.
    pub fn href(&self, segments: &[&str], query: &[(&str, &str)]) -> String {
        self.site().href(segments, query)
    }

    /// Returns the redirect to a page of this site after a form.
    pub fn redirect(&self, segments: &[&str]) -> PageResult {
        Ok(Redirect::to(&self.href(segments, &[])).into_response())
    }

    /// Returns the value of the hidden field that proves that a form is from this session.
    pub fn form_token(&self) -> String {
        hex::encode(Sha256::digest(format!("form:{}", self.token)))
    }

    /// Returns a button that posts to `action`, after a question if it is not empty, for those with
    /// the permission.
    pub fn button(
        &self,
        permission: &str,
        label: &'static str,
        question: &'static str,
        action: String,
    ) -> Cell {
        match self.me.may(permission) {
            true => Cell::Button { action, label, form_token: self.form_token(), question },
            false => Cell::Empty,
        }
    }

    /// Fails unless the form has the token of this session.
    pub fn check_form(&self, sent: &str) -> Result<(), PageError> {
        match bool::from(self.form_token().as_bytes().ct_eq(sent.as_bytes())) {
            true => Ok(()),
            false => {
                Err(PageError::forbidden("The form is outdated. Go back and reload the page."))
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Session
where
    Console: FromRef<S>,
{
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Session, PageError> {
        let console = Console::from_ref(state);
        let token = SESSION.read(&parts.headers, &console.options).ok_or(PageError::SignIn)?;
        if parts.method != Method::GET {
            check_same_origin(&parts.headers)?;
        }
        let origin = RequestOrigin::of(&parts.extensions);
        let call = (Method::GET, "/me");
        let me: Me = read(console.api.call(&origin, Some(&token), call, None).await?)?;
        let is_of_site = me.company.is_some() == console.options.site.is_for_members();
        if !is_of_site {
            return Err(PageError::SignIn);
        }
        Ok(Session { console, token, origin, me })
    }
}

/// Fails if a form was sent from another site.
pub fn check_same_origin(headers: &HeaderMap) -> Result<(), PageError> {
    match is_same_origin(headers) {
        true => Ok(()),
        false => Err(PageError::forbidden("The form was sent from another site.")),
    }
}

/// Returns whether `Sec-Fetch-Site`, or else `Origin`, marks a request as same-origin. Requests
/// with neither header are rejected.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, host)| Some(host) == text(header::HOST))
}

/// Sets the cookie of a new session, and redirects to a page of this site.
pub fn begin(session: &Value, next: &str, options: &ConsoleOptions) -> Response {
    let cookie = SESSION.set(&plain(&session["session_token"]), options);
    let next = Redirect::to(options.site.own_page(next));
    ([(header::SET_COOKIE, cookie)], next).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (header::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn forms_of_other_sites_are_recognized() {
        for (sent, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://a"), ("host", "a")], false),
            (&[("origin", "https://a:8081"), ("host", "a:8081")], true),
            (&[("origin", "https://b"), ("host", "a")], false),
            (&[("origin", "null"), ("host", "a")], false),
            (&[("host", "a")], false),
        ] {
            assert_eq!(is_same_origin(&headers(sent)), expected, "{sent:?}");
        }
    }
}
