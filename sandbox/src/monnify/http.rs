//! The response envelope, errors, authentication and bodies of all Monnify endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, OriginalUri, Request},
    http::{StatusCode, header, request::Parts},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::Monnify;
use crate::{
    fields::{Fields, email},
    money,
};

/// The result of an endpoint.
pub(super) type ApiResult = Result<Reply, ApiError>;

/// Default number of rows per page.
const PAGE_SIZE: usize = 10;

/// The `responseBody`.
pub(super) struct Reply(pub Value);

impl Reply {
    /// Returns a page of all rows, by the query parameters `page`, which begins at 0, and `size`.
    pub(super) fn page(all: Vec<Value>, [page, size]: [Option<usize>; 2]) -> Reply {
        let (page, size) = (page.unwrap_or_default(), size.unwrap_or(PAGE_SIZE).max(1));
        let (total, pages) = (all.len(), all.len().div_ceil(size));
        let skipped = page.saturating_mul(size);
        let content: Vec<Value> = all.into_iter().skip(skipped).take(size).collect();
        let sort = json!({ "sorted": true, "unsorted": false, "empty": false });
        Reply(json!({
            "pageable": {
                "sort": sort, "pageSize": size, "pageNumber": page, "offset": skipped,
                "unpaged": false, "paged": true,
            },
            "totalElements": total,
            "totalPages": pages,
            "last": page.saturating_add(1) >= pages,
            "sort": sort,
            "first": page == 0,
            "numberOfElements": content.len(),
            "size": size,
            "number": page,
            "empty": content.is_empty(),
            "content": content,
        }))
    }
}

/// Returns whether a time is within the milliseconds of a list's query. Both are inclusive.
pub(super) fn is_within(at: Timestamp, from: Option<i64>, to: Option<i64>) -> bool {
    from.is_none_or(|from| from <= at.0) && to.is_none_or(|to| at.0 <= to)
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let body = json!({
            "requestSuccessful": true, "responseMessage": "success", "responseCode": "0",
            "responseBody": self.0,
        });
        Json(body).into_response()
    }
}

#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError { status, code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "99", message)
    }

    pub(super) fn missing(field: &str) -> ApiError {
        ApiError::invalid(format!("{field} is required"))
    }

    pub(super) fn not_found(message: &str) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "99", message)
    }

    pub(super) fn transaction_not_found() -> ApiError {
        ApiError::not_found("There is no transaction with the supplied reference")
    }

    pub(super) fn unauthorized(message: &str) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "99", message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({
            "requestSuccessful": false, "responseMessage": self.message, "responseCode": self.code,
        });
        (self.status, Json(body)).into_response()
    }
}

/// The API key of the access token, which identifies the account.
pub(super) struct ApiKey(pub String);

impl FromRequestParts<Monnify> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, monnify: &Monnify) -> Result<ApiKey, ApiError> {
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let token = token.ok_or_else(|| ApiError::unauthorized("Access token is missing"))?;
        let holder = monnify.0.find_map(|account, env| {
            account.has_valid_token(token, env.clock.now()).then(|| account.api_key.clone())
        });
        let refused = || ApiError::unauthorized("Access token is invalid or has expired");
        holder.map(ApiKey).ok_or_else(refused)
    }
}

/// The fields of a JSON body.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let unreadable = || ApiError::invalid("Request body could not be read");
        let body = String::from_request(request, state).await.map_err(|_| unreadable())?;
        Fields::parse(&body).map(Params).ok_or_else(unreadable)
    }
}

impl Params {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.text(name)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.flag(name)
    }

    pub(super) fn required(&self, name: &str) -> Result<String, ApiError> {
        self.text(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Returns a positive amount in minor units.
    pub(super) fn amount(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let amount = money::minor(value).filter(|amount| *amount > 0);
        amount.map(Some).ok_or_else(|| ApiError::invalid(format!("{name} is not a valid amount")))
    }

    pub(super) fn required_amount(&self, name: &str) -> Result<u64, ApiError> {
        self.amount(name)?.ok_or_else(|| ApiError::missing(name))
    }

    /// Returns the address in lower case, if it is valid.
    pub(super) fn email(&self, name: &str) -> Result<String, ApiError> {
        let text = self.required(name)?;
        email(&text).ok_or_else(|| ApiError::invalid(format!("{name} is not a valid email")))
    }
}

/// Rejects an unencoded `|`, as the real server does: references contain it, so it must be sent as
/// `%7C`.
pub(super) async fn reject_unencoded_bars(
    uri: OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    let bare = uri.path_and_query().is_some_and(|target| target.as_str().contains('|'));
    if bare {
        return (StatusCode::BAD_REQUEST, Html("<h1>HTTP Status 400 – Bad Request</h1>"))
            .into_response();
    }
    next.run(request).await
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::not_found("There is no such endpoint")
}
