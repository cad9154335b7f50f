//! URLs to which events are sent.

use url::Url;

use crate::state::App;
use tollhouse_http::request::body::Fields;
use tollhouse_platform::error::Result;

/// Checks a URL of a field to which events are sent. Only development mode accepts plain HTTP: nothing is delivered there otherwise.
pub fn check_event_url(
    app: &App,
    body: &Fields,
    field: &str,
    url: Option<String>,
) -> Result<Option<String>> {
    let is_https = |url: &String| Url::parse(url).is_ok_and(|url| url.scheme() == "https");
    if !app.settings.development && !url.iter().all(is_https) {
        return Err(body.must_be(field, "an https URL"));
    }
    Ok(url)
}
