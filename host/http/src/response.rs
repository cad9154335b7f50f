//! The envelope of JSON responses: `{error, message, data?}`, in this order.

use std::{any::Any, io, marker::PhantomData};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{Response, header},
    response::IntoResponse,
};
use futures::stream::BoxStream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::{Describe, Operation};
use tollhouse_platform::{
    clock::Timestamp,
    error::{self, Error, Result},
};

/// A success with data. Serialized on creation, so that errors surface where the data was made.
pub struct DataResponse<T> {
    json: Vec<u8>,
    replay_until: Option<ReplayUntil>,
    data: PhantomData<fn() -> T>,
}

/// Response extension: the time when replays must end, because the content is erased.
#[derive(Clone, Copy)]
pub struct ReplayUntil(pub Timestamp);

impl<T: Serialize> DataResponse<T> {
    pub fn data(data: T, message: &str) -> Result<DataResponse<T>> {
        #[derive(Serialize)]
        struct Success<'m, T> {
            error: bool,
            message: &'m str,
            data: T,
        }
        let success = Success { error: false, message, data };
        let json = serde_json::to_vec(&success).map_err(Error::internal)?;
        Ok(DataResponse { json, replay_until: None, data: PhantomData })
    }
}

impl<T> DataResponse<T> {
    /// Limits how long the response is stored for an `Idempotency-Key`.
    #[must_use]
    pub fn replay_until(self, at: Timestamp) -> DataResponse<T> {
        DataResponse { replay_until: Some(ReplayUntil(at)), ..self }
    }
}

impl<T> IntoResponse for DataResponse<T> {
    fn into_response(self) -> axum::response::Response {
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (json, self.json).into_response();
        if let Some(until) = self.replay_until {
            response.extensions_mut().insert(until);
        }
        response
    }
}

impl<T: JsonSchema> Describe for DataResponse<T> {
    fn describe(operation: &mut Operation<'_>) {
        let data = operation.response_schema::<T>();
        let mut success = success_schema();
        success["properties"]["data"] = data;
        success["required"] = json!(["error", "message", "data"]);
        operation.set_response("application/json", success);
    }
}

/// A download of a CSV file, streamed.
pub struct Attachment {
    pub name: &'static str,
    pub bytes: BoxStream<'static, io::Result<Bytes>>,
}

impl IntoResponse for Attachment {
    fn into_response(self) -> axum::response::Response {
        let name = format!("attachment; filename=\"{}\"", self.name);
        let headers =
            [(header::CONTENT_TYPE, "text/csv".to_owned()), (header::CONTENT_DISPOSITION, name)];
        (headers, Body::from_stream(self.bytes)).into_response()
    }
}

impl Describe for Attachment {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response("text/csv", json!({ "type": "string" }));
    }
}

/// A success without data.
pub struct MessageResponse(pub &'static str);

impl IntoResponse for MessageResponse {
    fn into_response(self) -> axum::response::Response {
        Json(json!({ "error": false, "message": self.0 })).into_response()
    }
}

impl Describe for MessageResponse {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response("application/json", success_schema());
    }
}

fn success_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "error": { "type": "boolean", "const": false },
            "message": { "type": "string" },
        },
        "required": ["error", "message"],
    })
}

/// Converts a panic to a response: it fails only its own request.
pub fn panic_response(panic: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    error::from_panic(panic).into_response()
}
