//! Calls of the internal interface in the same process.

use std::fmt::Display;

use axum::{
    Router,
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;
use url::Url;

use tollhouse_http::{ClientAddress, RequestOrigin};

/// The internal interface. Cheap to clone.
#[derive(Clone)]
pub struct Api(Router);

/// A rejected or failed call, with the message for the person.
#[derive(Debug)]
pub struct ApiFailure {
    pub status: StatusCode,
    pub message: String,
}

impl ApiFailure {
    pub fn internal() -> ApiFailure {
        let message = "The page could not be shown. Try again later.".to_owned();
        ApiFailure { status: StatusCode::INTERNAL_SERVER_ERROR, message }
    }

    /// A list that is too long for a file.
    pub fn too_many(most: usize) -> ApiFailure {
        let message = format!("The list has more than {most} records. Use a narrower filter.");
        ApiFailure { status: StatusCode::BAD_REQUEST, message }
    }

    /// Returns the status of a form that is shown again: browsers ask for a password after 401.
    pub fn form_status(&self) -> StatusCode {
        match self.status {
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            status => status,
        }
    }
}

pub type ApiResult<T = Value> = Result<T, ApiFailure>;

impl Api {
    pub fn new(interface: Router) -> Api {
        Api(interface)
    }

    /// Calls a route, and returns the `data` of its response.
    pub async fn call(
        &self,
        origin: &RequestOrigin,
        token: Option<&str>,
        (method, path): (Method, &str),
        body: Option<&Value>,
    ) -> ApiResult {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/internal/v1{path}"))
            .header("x-request-id", &origin.request_id);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(address) = origin.address {
            request = request.extension(ClientAddress(address));
        }
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let request = request.map_err(unexpected)?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(unexpected)?.to_bytes();
        let mut envelope: Value = serde_json::from_slice(&body).map_err(unexpected)?;
        match status.is_success() {
            true => Ok(envelope["data"].take()),
            false => {
                let message = envelope["message"].as_str().unwrap_or("The request failed.");
                Err(ApiFailure { status, message: sentence(message) })
            }
        }
    }
}

/// Reads what a page shows from the data of a response.
pub fn read<T: DeserializeOwned>(data: Value) -> ApiResult<T> {
    serde_json::from_value(data).map_err(unexpected)
}

/// Logs an error that a working internal interface never causes.
pub fn unexpected(error: impl Display) -> ApiFailure {
    tracing::error!(%error, "a call of the internal interface failed unexpectedly");
    ApiFailure::internal()
}

/// Returns a path of these segments, percent-encoded, with a query of the values that are not
/// empty.
pub fn path(segments: &[&str], query: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://localhost").expect("the URL is valid");
    url.path_segments_mut().expect("http URLs have paths").extend(segments);
    let query: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
    if !query.is_empty() {
        let mut pairs = url.query_pairs_mut();
        pairs.extend_pairs(query);
    }
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Turns a message of the interface into a sentence.
pub fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded() {
        assert_eq!(path(&["companies", "a/b"], &[]), "/companies/a%2Fb");
        let query = [("q", "ada@example.com"), ("page", "")];
        assert_eq!(path(&["search"], &query), "/search?q=ada%40example.com");
    }

    #[test]
    fn messages_become_sentences() {
        assert_eq!(sentence("payment not found"), "Payment not found.");
    }
}
