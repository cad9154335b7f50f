//! Images in requests: fetched by this host from a URL, or sent in base64.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use tokio::time::timeout;
use url::Url;

use super::catalog::LookupMethod;
use crate::state::prelude::*;
use tollhouse_http::server::concurrency::{ConcurrencyLimiter, Permit};
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};
use tollhouse_plugins::Image;

const MAX_BYTES: usize = 5 << 20;
/// Timeout from the first request to the last byte, redirects included.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 3;
/// First bytes of JPEG and PNG files.
const JPEG: &[u8] = &[0xff, 0xd8, 0xff];
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Maximum number of lookups with images in memory, each of which holds several copies.
const MAX_CONCURRENT_LOOKUPS: usize = 32;

/// Limits concurrent lookups with images on this host, and those of one company to half.
pub struct ImageLimiter(ConcurrencyLimiter);

impl Default for ImageLimiter {
    fn default() -> ImageLimiter {
        ImageLimiter(ConcurrencyLimiter::new(MAX_CONCURRENT_LOOKUPS))
    }
}

impl ImageLimiter {
    /// Acquires a permit for a lookup with an image; 503 if there is none, 429 if the company
    /// already uses its half.
    pub fn try_acquire(
        &self,
        company_id: &CompanyId,
        method: LookupMethod,
    ) -> Result<Option<Permit>> {
        match method {
            LookupMethod::Number => Ok(None),
            _ => self.0.try_acquire_for(Some(&company_id.into())).map(Some),
        }
    }
}

/// Loads an image from a URL or from base64, with or without a `data:` prefix. 400 if that fails.
pub async fn load(app: &App, image: &str) -> Result<Image> {
    let scheme = image.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let bytes = match scheme.as_deref() {
        Some("http" | "https") if app.egress.images.is_closed() => {
            let message = "this host runs with no_jobs and cannot fetch images: use another host";
            return Err(Error::Unavailable(message));
        }
        Some("http" | "https") => {
            timeout(TIMEOUT, follow_redirects(app, image)).await.map_err(|_| late())??
        }
        _ => decode(image)?,
    };
    if bytes.len() > MAX_BYTES {
        return Err(too_large());
    }
    let media_type = media_type(&bytes).ok_or_else(|| invalid_image("be a JPEG or a PNG"))?;
    Ok(Image { media_type, bytes })
}

/// Follows redirects by separate requests, so that egress checks scheme and addresses of each one.
async fn follow_redirects(app: &App, url: &str) -> Result<Bytes> {
    let unfetched = || invalid_image("be a URL that can be fetched");
    let mut url = url.to_owned();
    for _ in 0..=MAX_REDIRECTS {
        let request = EgressRequest {
            sender: "images".into(),
            method: "GET".to_owned(),
            url: url.clone(),
            headers: vec![("accept".to_owned(), "image/jpeg, image/png".to_owned())],
            body: None,
            identity: None,
            timeout: TIMEOUT,
            max_response_bytes: MAX_BYTES,
        };
        let response = app.egress.images.send(request).await.map_err(|error| match error {
            EgressError::Forbidden(_) => invalid_image("be a public https URL"),
            EgressError::TooLarge(_) => too_large(),
            EgressError::Timeout(_) => late(),
            EgressError::Connect(_) | EgressError::ConnectionLost(_) => unfetched(),
        })?;
        match response.status {
            200 => return Ok(response.body),
            301 | 302 | 303 | 307 | 308 => {
                url = redirect_target(&url, &response).ok_or_else(unfetched)?;
            }
            _ => return Err(unfetched()),
        }
    }
    Err(invalid_image(&format!("be a URL that redirects at most {MAX_REDIRECTS} times")))
}

/// Returns the target of a redirect: its `Location`, which may be relative.
fn redirect_target(url: &str, response: &EgressResponse) -> Option<String> {
    let (_, location) =
        response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    Some(Url::parse(url).ok()?.join(location).ok()?.into())
}

fn decode(text: &str) -> Result<Bytes> {
    let body = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map(|(_, body)| body),
        None => Some(text),
    };
    let letters: Option<String> =
        body.map(|body| body.chars().filter(|c| !c.is_ascii_whitespace()).collect());
    let bytes = letters.and_then(|letters| BASE64.decode(letters).ok());
    bytes.map(Bytes::from).ok_or_else(|| invalid_image("be a URL or an image in base64"))
}

/// Detects the type by content, because declared types may be wrong.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let types = [(JPEG, "image/jpeg"), (PNG, "image/png")];
    types.into_iter().find(|(first, _)| bytes.starts_with(first)).map(|(_, name)| name)
}

fn late() -> Error {
    invalid_image("be a URL that responds within 10 seconds")
}

fn too_large() -> Error {
    invalid_image("be an image of at most 5 MiB")
}

fn invalid_image(what: &str) -> Error {
    Error::invalid(format!("the image field must {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_with_or_without_a_data_prefix() {
        let jpeg = BASE64.encode([JPEG, b"..."].concat());
        for (text, expected) in [
            (jpeg.clone(), Some("image/jpeg")),
            (format!("data:image/png;base64,{jpeg}"), Some("image/jpeg")),
            (format!("{}\n {}", &jpeg[..4], &jpeg[4..]), Some("image/jpeg")),
            (BASE64.encode(PNG), Some("image/png")),
            (BASE64.encode("GIF89a"), None),
            (BASE64.encode("<svg/>"), None),
        ] {
            assert_eq!(media_type(&decode(&text).unwrap()), expected, "{text}");
        }
        for bad in ["data:image/png,abc", "ftp://a.example/x.jpg", "not base64!"] {
            let message = decode(bad).unwrap_err().to_string();
            assert_eq!(message, "the image field must be a URL or an image in base64", "{bad}");
        }
    }
}
