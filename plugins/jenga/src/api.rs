//! Requests to Jenga: access tokens, signatures and error codes.

use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::vault::{self, Step};
use tollhouse_plugin::{cache, loose, settings};

/// Cache key of the access token.
const TOKEN: &str = "access-token";
/// TTL of a cached token. Jenga's tokens are valid for 15 minutes.
const TOKEN_SECONDS: u32 = 600;

/// Error code: the reference is in use.
const DUPLICATE_REFERENCE: &str = "400101";
/// Error code: the reference has no transaction.
const UNKNOWN_REFERENCE: &str = "111102";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    access_token: String,
}

/// The fields that errors and responses have in common.
#[derive(Deserialize)]
struct Envelope {
    status: bool,
    code: Value,
    #[serde(default)]
    message: String,
}

/// Sends a request with a signature over `signed`: the documented fields, concatenated in order.
///
/// If a cached token is rejected, the request is repeated once with a new token.
pub(crate) fn send(request: impl Fn() -> Request, signed: &str) -> Result<Response, Fault> {
    let signature = vault::transform(signed, &[Step::rsa_sha256("private_key"), Step::base64()])?;
    let send = |token: &str| request().bearer(token).header("signature", &signature).send();
    if let Some(cached) = cache::get(TOKEN) {
        let response = send(&cached)?;
        if response.status != 401 {
            return accepted(response);
        }
    }
    accepted(send(&log_in()?)?)
}

/// Requests an access token and caches it.
fn log_in() -> Result<String, Fault> {
    let body = json!({
        "merchantCode": settings::required("merchant_code")?,
        "consumerSecret": vault::secret("consumer_secret")?,
    });
    let url = settings::url("base_url", "/authentication/api/v3/authenticate/merchant")?;
    let request = Request::post(url).header("api-key", vault::secret("api_key")?).json(&body);
    let Token { access_token } = accepted(request.send()?)?.json()?;
    cache::put(TOKEN, &access_token, TOKEN_SECONDS);
    Ok(access_token)
}

/// Returns a successful response; any other becomes a fault.
fn accepted(response: Response) -> Result<Response, Fault> {
    let status = response.status;
    match status {
        200..300 => match response.json::<Envelope>() {
            // Without an HTTP error, an unlisted code does not prove that nothing happened.
            Ok(envelope) if !envelope.status => Err(envelope.listed_fault().unwrap_or_else(|| {
                Fault::unavailable(&envelope.message).with_code(&envelope.code())
            })),
            _ => Ok(response),
        },
        400 | 404 | 409 | 422 => {
            let envelope: Envelope = response.json()?;
            let refused = || Fault::refused(&envelope.code(), &envelope.message);
            Err(envelope.listed_fault().unwrap_or_else(refused))
        }
        401 | 403 => Err(match response.json::<Envelope>() {
            Ok(envelope) => Fault::misconfigured(&envelope.message).with_code(&envelope.code()),
            Err(_) => Fault::misconfigured("Jenga does not accept the credentials"),
        }),
        _ => Err(Fault::unavailable(format!("Jenga returned {status}"))),
    }
}

impl Envelope {
    fn code(&self) -> String {
        loose::text(&self.code)
    }

    /// Returns the fault of a code whose meaning is documented.
    fn listed_fault(&self) -> Option<Fault> {
        let code = self.code();
        match &*code {
            DUPLICATE_REFERENCE => Some(Fault::refused("duplicate-reference", &self.message)),
            UNKNOWN_REFERENCE => Some(Fault::not_found("Jenga has no such transaction")),
            // 9001…: the signature does not match the key. 401…: no permission for the service.
            _ if code.len() == 6 && (code.starts_with("9001") || code.starts_with("401")) => {
                Some(Fault::misconfigured(&self.message).with_code(&code))
            }
            _ => None,
        }
    }
}
