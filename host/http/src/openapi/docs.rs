//! The OpenAPI document of a listener, and a viewer that loads nothing from elsewhere.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use axum::{
    Extension,
    body::Bytes,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::Config;

use super::{Describe, Operation, documented_path};
use crate::{Route, request::path::Path};
use tollhouse_platform::error::{Error, Result};

/// Scripts and requests of this host only. The viewer writes styles into its page.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// Links are relative, to work behind a proxy's prefix.
const VIEWER_HTML: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tollhouse</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/index.css">
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/swagger-ui-standalone-preset.js"></script>
<script src="docs/swagger-initializer.js"></script>
</html>
"#;

/// The document of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Document {
    routes: &'static Value,
    operations: Arc<dyn RuntimeOperations>,
    latest: Arc<Mutex<Option<RenderedDocument>>>,
}

/// Operations that are known only at run time.
pub trait RuntimeOperations: Send + Sync + 'static {
    /// Returns identifiers of the current operations.
    fn versions(&self) -> Vec<String>;

    /// Adds the current operations to a document.
    fn add_to(&self, document: &mut Value);
}

#[derive(Clone)]
struct RenderedDocument {
    /// The versions of its runtime operations.
    versions: Vec<String>,
    json: Bytes,
    etag: HeaderValue,
}

impl Document {
    /// `routes` is the document of the routes, which all hosts of a process share: see
    /// [`document`](super::document).
    #[must_use]
    pub fn new(routes: &'static Value, operations: impl RuntimeOperations) -> Document {
        Document { routes, operations: Arc::new(operations), latest: Arc::default() }
    }

    /// Returns the names of a route's query parameters. One that takes a key, such as
    /// `metadata.tier`, is listed by its prefix `metadata.`.
    pub fn query_parameters<S>(&self, route: &Route<S>) -> Arc<[String]> {
        let operation = &self.routes["paths"][documented_path(route.path)][route.method];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let name = |parameter: &Value| {
            let has_keys = parameter["schema"]["type"] == "object";
            Some(format!("{}{}", parameter["name"].as_str()?, if has_keys { "." } else { "" }))
        };
        parameters.filter(|parameter| parameter["in"] == "query").filter_map(name).collect()
    }

    /// Returns the names of the fields of a route's query string and body. A field of an object is
    /// prefixed by the object's name and a dot; a field of list items has no prefix.
    pub fn field_names<S>(&self, route: &Route<S>) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.query_parameters(route).iter().cloned().collect();
        let operation = &self.routes["paths"][documented_path(route.path)][route.method];
        let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
        for (_, body) in bodies {
            self.add_field_names(&body["schema"], "", &mut names);
        }
        names
    }

    fn add_field_names(&self, schema: &Value, path: &str, names: &mut BTreeSet<String>) {
        let named = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
        let named = named.and_then(|path| self.routes.pointer(path));
        let schema = named.unwrap_or(schema);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let name = format!("{path}{name}");
            self.add_field_names(field, &format!("{name}."), names);
            names.insert(name);
        }
        let either = schema["anyOf"].as_array().into_iter().flatten();
        either.for_each(|either| self.add_field_names(either, path, names));
        if schema["items"].is_object() {
            self.add_field_names(&schema["items"], "", names);
        }
    }

    fn current(&self) -> RenderedDocument {
        let versions = self.operations.versions();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = latest.as_ref().filter(|latest| latest.versions == versions) {
            return latest.clone();
        }
        let mut document = self.routes.clone();
        self.operations.add_to(&mut document);
        let json = document.to_string();
        let etag = format!("\"{}\"", hex::encode(Sha256::digest(&json)));
        let etag = HeaderValue::from_str(&etag).expect("hexadecimal digits are a header's value");
        latest.insert(RenderedDocument { versions, json: json.into(), etag }).clone()
    }
}

/// The document, or 304 if the client already has it.
pub struct DocumentResponse(Response);

impl IntoResponse for DocumentResponse {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for DocumentResponse {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response("application/json", json!({ "type": "object" }));
    }
}

pub async fn openapi(
    Extension(document): Extension<Document>,
    headers: HeaderMap,
) -> DocumentResponse {
    let document = document.current();
    let fresh = [
        (header::ETAG, document.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    if headers.get(header::IF_NONE_MATCH) == Some(&document.etag) {
        return DocumentResponse((StatusCode::NOT_MODIFIED, fresh).into_response());
    }
    let json = [(header::CONTENT_TYPE, "application/json")];
    DocumentResponse((fresh, json, document.json).into_response())
}

/// A file of the viewer.
pub struct ViewerFile {
    content_type: String,
    bytes: Bytes,
}

impl IntoResponse for ViewerFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.content_type.as_str()),
            (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "max-age=3600"),
        ];
        (headers, self.bytes).into_response()
    }
}

impl Describe for ViewerFile {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response("*/*", json!({}));
    }
}

pub async fn page() -> ViewerFile {
    ViewerFile { content_type: "text/html; charset=utf-8".to_owned(), bytes: VIEWER_HTML.into() }
}

pub async fn file(Path(file): Path<String>) -> Result<ViewerFile> {
    static CONFIG: LazyLock<Arc<Config<'static>>> =
        LazyLock::new(|| Arc::new(Config::new(["openapi.json"]).use_base_layout()));
    let found = utoipa_swagger_ui::serve(&file, CONFIG.clone());
    let found = found.map_err(|error| Error::internal(error.to_string()))?;
    let found = found.ok_or_else(|| Error::not_found("path not found"))?;
    let bytes = match found.bytes {
        Cow::Borrowed(built_in) => Bytes::from_static(built_in),
        Cow::Owned(made) => made.into(),
    };
    Ok(ViewerFile { content_type: found.content_type, bytes })
}
