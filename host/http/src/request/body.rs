//! Reads bodies.

use std::{marker::PhantomData, ops::Deref};

use axum::{
    body::Bytes,
    extract::{FromRequest, Multipart, Request},
    http::{StatusCode, header},
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::fields::ReadFrom;
pub use super::object::Fields;
use crate::openapi::{Describe, Operation};
use tollhouse_platform::error::{Error, Result};

/// A JSON body of the fields that `T` declares by [`fields!`](super::fields). An empty body has no
/// fields.
pub struct Body<T> {
    fields: Fields,
    declared: PhantomData<fn() -> T>,
}

impl<T: ReadFrom<Fields>> Body<T> {
    /// Reads the fields in order.
    pub fn read(&self) -> Result<T> {
        T::read_from(&self.fields)
    }
}

impl<T> Deref for Body<T> {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

impl<T> Clone for Body<T> {
    fn clone(&self) -> Body<T> {
        Body { fields: self.fields.clone(), declared: PhantomData }
    }
}

impl<S: Send + Sync, T> FromRequest<S> for Body<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>> {
        let json = is_json(&request);
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let fields = match serde_json::from_slice(&body) {
            _ if body.is_empty() => Fields::default(),
            _ if json != Some(true) => return Err(Error::UnsupportedMediaType("application/json")),
            Ok(Value::Object(values)) => Fields::from(values),
            Ok(_) => return Err(Error::invalid("the body must be a JSON object")),
            Err(_) => return Err(Error::invalid("the body is not valid JSON")),
        };
        Ok(Body { fields, declared: PhantomData })
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
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !content_type.to_ascii_lowercase().starts_with("multipart/form-data") {
            let body = Body::from_request(request, state).await;
            return body.map(Upload::Json).map_err(|error| match error {
                Error::UnsupportedMediaType(_) => Error::UnsupportedMediaType(TYPES),
                error => error,
            });
        }
        let unreadable = |_| Error::invalid("the form cannot be read");
        let form = Multipart::from_request(request, state).await;
        let mut form = form.map_err(|_| Error::invalid("the form cannot be read"))?;
        while let Some(part) = form.next_field().await.map_err(unreadable)? {
            if part.name() == Some(FILE) {
                let name = part.file_name().map(str::to_owned);
                let bytes = part.bytes().await.map_err(unreadable)?;
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
        operation.add_failures(&[415]);
    }
}

/// Returns whether the content type is JSON; `None` without one.
fn is_json(request: &Request) -> Option<bool> {
    let value = request.headers().get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(essence == "application/json" || essence.ends_with("+json"))
}

impl<T: JsonSchema> Describe for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        let required = operation.inline_request_schema::<T>().get("required").is_some();
        let schema = operation.request_schema::<T>();
        operation.add_body("application/json", schema, required);
        operation.add_failures(&[415]);
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
