//! Reads bodies.

use axum::{
    body::Bytes,
    extract::{FromRequest, Multipart, Request},
    http::{StatusCode, header},
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::fields::Unread;
pub use super::object::Fields;
use crate::openapi::{Describe, Operation};
use tollhouse_platform::error::{Error, Result};

/// A JSON body. An empty one has no fields.
pub type Body<T> = Unread<Fields, T>;

impl<S: Send + Sync, T> FromRequest<S> for Body<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>> {
        let json = is_json(content_type(&request));
        let RawBody(body) = RawBody::from_request(request, state).await?;
        match serde_json::from_slice(&body) {
            _ if body.is_empty() => Ok(Fields::default().into()),
            _ if !json => Err(Error::UnsupportedMediaType("application/json")),
            Ok(Value::Object(values)) => Ok(Fields::from(values).into()),
            Ok(_) => Err(Error::invalid("the body must be a JSON object")),
            Err(_) => Err(Error::invalid("the body is not valid JSON")),
        }
    }
}

/// A JSON body, or a form with one file.
pub enum Upload<T> {
    Json(Body<T>),
    /// `None` if the form lacks the file.
    Form(Option<UploadedFile>),
}

pub struct UploadedFile {
    pub name: Option<String>,
    pub bytes: Bytes,
}

/// The form field of the file.
const FILE: &str = "csv";

impl<S: Send + Sync, T> FromRequest<S> for Upload<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Upload<T>> {
        const TYPES: &str = "application/json or multipart/form-data";
        if !content_type(&request).to_ascii_lowercase().starts_with("multipart/form-data") {
            let body = Body::from_request(request, state).await;
            return body.map(Upload::Json).map_err(|error| match error {
                Error::UnsupportedMediaType(_) => Error::UnsupportedMediaType(TYPES),
                error => error,
            });
        }
        let unreadable = || Error::invalid("the form cannot be read");
        let form = Multipart::from_request(request, state).await;
        let mut form = form.map_err(|_| unreadable())?;
        while let Some(part) = form.next_field().await.map_err(|_| unreadable())? {
            if part.name() == Some(FILE) {
                let name = part.file_name().map(str::to_owned);
                let bytes = part.bytes().await.map_err(|_| unreadable())?;
                return Ok(Upload::Form(Some(UploadedFile { name, bytes })));
            }
        }
        Ok(Upload::Form(None))
    }
}

impl<T: JsonSchema> Describe for Upload<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.request_schema::<T>();
        operation.add_body("application/json", schema, true);
        let file = json!({ "type": "string", "contentMediaType": "text/csv" });
        let form = json!({ "type": "object", "properties": { FILE: file }, "required": [FILE] });
        operation.add_body("multipart/form-data", form, true);
        operation.failures.insert(415);
    }
}

fn content_type(request: &Request) -> &str {
    let value = request.headers().get(header::CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

impl<T: JsonSchema> Describe for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        let required = operation.inline_request_schema::<T>().get("required").is_some();
        let schema = operation.request_schema::<T>();
        operation.add_body("application/json", schema, required);
        operation.failures.insert(415);
    }
}

/// A body of any type, unparsed.
pub struct RawBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<RawBody> {
        let read = Bytes::from_request(request, state).await;
        read.map(RawBody).map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge,
            _ => Error::invalid("the body could not be read"),
        })
    }
}

impl Describe for RawBody {
    fn describe(operation: &mut Operation<'_>) {
        operation.add_body("*/*", json!({}), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_a_json_object_or_empty() {
        let json = Some("application/json; charset=utf-8");
        for (content_type, body, expected) in [
            (None, "", Ok(0)),
            (json, "", Ok(0)),
            (Some("text/plain"), "", Ok(0)),
            (json, r#"{"a": 1}"#, Ok(1)),
            (Some("application/problem+json"), r#"{"a": 1}"#, Ok(1)),
            (None, r#"{"a": 1}"#, Err("the content type must be application/json")),
            (Some("text/plain"), r#"{"a": 1}"#, Err("the content type must be application/json")),
            (json, "[]", Err("the body must be a JSON object")),
            (json, "{", Err("the body is not valid JSON")),
            (json, r#"{"a": 1} x"#, Err("the body is not valid JSON")),
        ] {
            let mut request = Request::builder();
            if let Some(content_type) = content_type {
                request = request.header(header::CONTENT_TYPE, content_type);
            }
            let request = request.body(body.into()).unwrap();
            let read =
                Body::<()>::from_request(request, &()).await.map(|body| body.names().count());
            let expected = expected.map_err(str::to_owned);
            assert_eq!(read.map_err(|e| e.to_string()), expected, "{content_type:?} {body}");
        }
    }
}
