//! Requests to forbidden URLs, too many requests, and secrets where others could see them.

use serde_json::{Value, json};
use tollhouse_plugin::checkout::CheckoutOrder;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::settings;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::vault::{self, Step};

use crate::{Outcome, SECRET};

/// Sends a request to the URL; `raw` is `{"status", "body"}`.
pub(crate) fn fetch(url: &str) -> Result<Outcome, Fault> {
    let response = Request::get(url).send()?;
    Outcome::raw(json!({"status": response.status, "body": response.text()}).to_string())
}

/// Repeats the same request; `raw` is the count.
pub(crate) fn send_many(times: u64) -> Result<Outcome, Fault> {
    for _ in 0..times {
        get("/ping")?;
    }
    Outcome::raw(times.to_string())
}

/// Sends a request with this many headers; `raw` is the count.
pub(crate) fn send_headers(count: u64) -> Result<Outcome, Fault> {
    let url = settings::url("base_url", "/ping")?;
    let value = "v".repeat(100);
    let with = |request: Request, n| request.header(&format!("x-{n}"), value.as_str());
    (0..count).fold(Request::get(url), with).send()?;
    Outcome::raw(count.to_string())
}

/// Sends the caller's text verbatim in a request body, after creating a placeholder: text that
/// looks like a placeholder must not be replaced. `raw` is the response.
pub(crate) fn send_verbatim(words: &str) -> Result<Outcome, Fault> {
    vault::secret(SECRET)?;
    let response = Request::post(settings::url("base_url", "/echo")?).body(words).send()?;
    Outcome::raw(response.text())
}

/// Builds JSON by concatenation, a mistake: the caller's text is not escaped.
pub(crate) fn send_concatenated_json(words: &str) -> Result<Outcome, Fault> {
    let url = settings::url("base_url", "/orders")?;
    let body = format!("{{\"narration\":\"{words}\"}}");
    let response =
        Request::post(url).header("content-type", "application/json").body(body).send()?;
    Outcome::raw(response.text())
}

/// Waits for a slow upstream.
pub(crate) fn call_slow_upstream() -> Result<Outcome, Fault> {
    Outcome::raw(get("/slow")?.text())
}

/// Sends the secret to an upstream that echoes it; the placeholder is the session's URL, `raw` the
/// response.
pub(crate) fn echo_secret() -> Result<Outcome, Fault> {
    let placeholder = vault::secret(SECRET)?;
    let response = Request::post(settings::url("base_url", "/echo")?)
        .bearer(&placeholder)
        .header("x-secret", placeholder.as_str())
        .body(format!("secret={placeholder}"))
        .send()?;
    Ok(Outcome { url: placeholder, raw: response.text() })
}

/// Sends transformations of the secret to an upstream that echoes them; a placeholder is the
/// session's URL, `raw` the response.
pub(crate) fn send_transformed() -> Result<Outcome, Fault> {
    let template = format!("1{}2", vault::secret(SECRET)?);
    let encoded = vault::transform(template.as_str(), &[Step::base64()])?;
    let signed = vault::transform("text", &[Step::hmac_sha256(SECRET), Step::hex()])?;
    let response = Request::post(settings::url("base_url", "/echo")?)
        .header("x-secret", encoded.as_str())
        .header("x-signature", signed.as_str())
        .send()?;
    Ok(Outcome { url: encoded, raw: response.text() })
}

/// Sends a JWT that the secret, a private key, signs.
pub(crate) fn send_jwt() -> Result<Outcome, Fault> {
    let encode = |part: Value| vault::transform(part.to_string(), &[Step::base64url()]);
    let header = encode(json!({"alg": "RS256", "typ": "JWT"}))?;
    let claims = encode(json!({"iss": "tollhouse", "aud": "https://bank.example"}))?;
    let token = format!("{header}.{claims}");
    let signature =
        vault::transform(token.as_str(), &[Step::rsa_sha256(SECRET), Step::base64url()])?;
    let url = settings::url("base_url", "/token")?;
    let response = Request::post(url).bearer(&format!("{token}.{signature}")).send()?;
    Outcome::raw(response.text())
}

/// Sends the secret in one place of a request, or in the header of this name; `raw` is the
/// response.
pub(crate) fn send_secret(place: &str, order: &CheckoutOrder) -> Result<Outcome, Fault> {
    let secret = vault::secret(SECRET)?;
    let url = |path: &str| settings::url("base_url", path);
    let post = |body: String| Ok::<_, Fault>(Request::post(url("/orders")?).body(body));
    let request = match place {
        "path" => Request::get(url(&format!("/{secret}/x"))?),
        "query" => Request::get(url(&format!("/x?key={secret}"))?),
        "encoded-query" => {
            let hidden = secret.replace('v', "%76").replace('-', "%2D");
            Request::get(url(&format!("/x?key={hidden}"))?)
        }
        "method" => Request::new(&secret, url("/x")?),
        "header-name" => Request::get(url("/x")?).header(&secret.to_uppercase(), "1"),
        "body" => post(secret)?,
        "success_url" => {
            post(json!({"callback": format!("{}?k={secret}", order.success_url)}).to_string())?
        }
        "metadata" => {
            post(json!({"metadata": {"order": order.metadata, "key": secret}}).to_string())?
        }
        "form" => post(format!("back=https%3A%2F%2Fshop.example%2F%3Fk%3D{secret}"))?,
        "basic-body" => post(vault::basic(SECRET, SECRET)?)?,
        "elsewhere" => Request::get(settings::url("other_url", "/x")?).header("x-key", secret),
        header => Request::get(url("/x")?).header(header, secret),
    };
    Outcome::raw(request.send()?.text())
}

fn get(path: &str) -> Result<Response, Fault> {
    Request::get(settings::url("base_url", path)?).send()
}
