//! Where developers look around: the listener's OpenAPI document, and a viewer of it that takes nothing from elsewhere.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::Config;

use super::{
    Route,
    lookups::with_lookups,
    openapi::{Describe, Operation, document},
    path::Path,
};
use crate::{
    app::App,
    error::{Error, Result},
    identity,
    plugins::{Plugins, Registers},
};

/// Only this host's own scripts, and requests to nowhere else. The viewer writes styles into its page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// Its addresses are relative, so that it works behind a proxy's prefix, too.
const PAGE: &str = r#"<!doctype html>
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
pub struct Document(Arc<Inner>);

struct Inner {
    /// Of the routes.
    routes: Value,
    /// For the countries that were installed last time.
    latest: Mutex<Option<(Vec<String>, Written)>>,
}

#[derive(Clone)]
struct Written {
    json: Bytes,
    etag: HeaderValue,
}

impl Document {
    #[must_use]
    pub fn of(routes: &[Route]) -> Document {
        Document(Arc::new(Inner { routes: document(routes), latest: Mutex::default() }))
    }

    /// With the lookups of the countries that are installed now.
    fn now(&self, plugins: &Plugins) -> Written {
        let digest = |registers: &Registers| registers.digest().to_owned();
        let countries: Vec<String> = plugins.all_registers().iter().map(digest).collect();
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((known, written)) if *known == countries => written.clone(),
            _ => {
                let mut document = self.0.routes.clone();
                with_lookups(&mut document, identity::documented(plugins));
                let written = Written::new(&document);
                *latest = Some((countries, written.clone()));
                written
            }
        }
    }
}

impl Written {
    fn new(document: &Value) -> Written {
        let json = document.to_string();
        let etag = format!("\"{}\"", hex::encode(Sha256::digest(&json)));
        let etag = HeaderValue::from_str(&etag).expect("hexadecimal digits are a header's value");
        Written { json: json.into(), etag }
    }
}

/// The document, or that it is the one that the caller has.
pub struct Described(Response);

impl IntoResponse for Described {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for Described {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers("application/json", json!({ "type": "object" }));
    }
}

pub async fn openapi(
    State(app): State<App>,
    Extension(document): Extension<Document>,
    headers: HeaderMap,
) -> Described {
    let document = document.now(&app.plugins);
    let fresh = [
        (header::ETAG, document.etag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    if headers.get(header::IF_NONE_MATCH) == Some(&document.etag) {
        return Described((StatusCode::NOT_MODIFIED, fresh).into_response());
    }
    let json = [(header::CONTENT_TYPE, "application/json")];
    Described((fresh, json, document.json).into_response())
}

/// A file of the viewer.
pub struct File {
    content_type: String,
    bytes: Bytes,
}

impl IntoResponse for File {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.content_type.as_str()),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "max-age=3600"),
        ];
        (headers, self.bytes).into_response()
    }
}

impl Describe for File {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers("*/*", json!({}));
    }
}

pub async fn page() -> File {
    File { content_type: "text/html; charset=utf-8".to_owned(), bytes: PAGE.into() }
}

pub async fn file(Path(file): Path<String>) -> Result<File> {
    static CONFIG: LazyLock<Arc<Config<'static>>> =
        LazyLock::new(|| Arc::new(Config::new(["openapi.json"]).use_base_layout()));
    let found = utoipa_swagger_ui::serve(&file, CONFIG.clone());
    let found = found.map_err(|error| Error::internal(error.to_string()))?;
    let found = found.ok_or_else(|| Error::not_found("there is nothing at this path"))?;
    let bytes = match found.bytes {
        Cow::Borrowed(built_in) => Bytes::from_static(built_in),
        Cow::Owned(made) => made.into(),
    };
    Ok(File { content_type: found.content_type, bytes })
}
