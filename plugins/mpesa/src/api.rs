//! Requests to Daraja: the access token, and the mapping of errors to faults.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::vault::Step;
use tollhouse_plugin::{cache, loose, settings, vault};

const CACHE_KEY: &str = "access_token";
const EXPIRY_MARGIN_SECONDS: u32 = 60;
/// Error codes: the token is unknown or has expired.
const INVALID_TOKEN: [&str; 3] = ["404.001.03", "400.003.01", "401.002.01"];

#[derive(Deserialize)]
struct Login {
    access_token: String,
    /// The lifetime in seconds; a string in production.
    #[serde(default)]
    expires_in: Value,
}

/// The body of an error.
#[derive(Deserialize)]
struct ErrorBody {
    #[serde(rename = "errorCode")]
    code: String,
    #[serde(default, rename = "errorMessage")]
    message: String,
}

/// An error that Daraja documents, for callers that know its meaning.
pub(crate) struct ApiError {
    pub status: u16,
    pub code: String,
    pub message: String,
}

impl ApiError {
    pub(crate) fn says(&self, words: &str) -> bool {
        self.message.to_lowercase().contains(words)
    }

    /// Returns the fault of an error that means the same for all requests.
    pub(crate) fn into_fault(self) -> Fault {
        if self.says("wrong credentials") || self.says("merchant does not exist") {
            return Fault::misconfigured("Daraja does not accept shortcode and passkey")
                .with_code(&self.code);
        }
        if INVALID_TOKEN.contains(&&*self.code) {
            return Fault::misconfigured("Daraja does not accept its own access token")
                .with_code(&self.code);
        }
        match self.status {
            400 => Fault::refused(&self.code, self.message),
            status => Fault::unavailable(format!("Daraja returned {status}: {}", self.message))
                .with_code(&self.code),
        }
    }
}

/// The result of a request: a response, or a documented error.
pub(crate) type ApiResult<T> = Result<Result<T, ApiError>, Fault>;

/// Sends a POST request. A token may expire early; the request was not executed then, so it is
/// repeated once with a new token.
pub(crate) fn post<T: DeserializeOwned>(path: &str, body: &Value) -> ApiResult<(T, String)> {
    let request = Request::post(settings::url("base_url", path)?).json(body);
    let token = cache::get(CACHE_KEY).map_or_else(log_in, Ok)?;
    let mut response = request.clone().bearer(&token).send()?;
    if let Some(error) = read_error(&response)
        && INVALID_TOKEN.contains(&&*error.code)
    {
        response = request.bearer(&log_in()?).send()?;
    }
    match read_error(&response) {
        Some(error) => Ok(Err(error)),
        None if response.is_success() => Ok(Ok((response.json()?, response.text()))),
        None => Err(unexpected(&response)),
    }
}

fn read_error(response: &Response) -> Option<ApiError> {
    if response.is_success() {
        return None;
    }
    let ErrorBody { code, message } = serde_json::from_slice(&response.body).ok()?;
    Some(ApiError { status: response.status, code, message })
}

fn unexpected(response: &Response) -> Fault {
    let status = response.status;
    Fault::unavailable(format!("Daraja returned {status} without an error code"))
        .with_code(&format!("http-{status}"))
}

/// Obtains a token and replaces the cached one.
fn log_in() -> Result<String, Fault> {
    let url = settings::url("base_url", "/oauth/v1/generate?grant_type=client_credentials")?;
    let credentials = vault::basic("consumer_key", "consumer_secret")?;
    let response = Request::get(url).basic(&credentials).send()?;
    if matches!(response.status, 400 | 401 | 403) {
        return Err(Fault::misconfigured("Daraja does not accept consumer key and secret"));
    }
    if !response.is_success() {
        return Err(unexpected(&response));
    }
    let Login { access_token, expires_in } = response.json()?;
    let seconds = loose::text(&expires_in).parse::<u32>().unwrap_or(0);
    let kept = seconds.saturating_sub(EXPIRY_MARGIN_SECONDS);
    if kept > 0 {
        cache::put(CACHE_KEY, &access_token, kept);
    }
    Ok(access_token)
}

/// Returns a placeholder for the password of a request: shortcode, passkey and timestamp in base64.
pub(crate) fn password(shortcode: &str, timestamp: &str) -> Result<String, Fault> {
    let passkey = vault::secret("passkey")?;
    vault::transform(format!("{shortcode}{passkey}{timestamp}"), &[Step::base64()])
}
