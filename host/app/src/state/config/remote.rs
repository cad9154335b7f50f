//! Settings of the command line's connection to a running host.

use std::path::PathBuf;

use url::Url;

use tollhouse_platform::{
    config::{ConfigError, settings},
    outbound::is_loopback,
};

settings! {
    "Connection to the host" Remote;
    /// URL of the internal interface of the host that commands use
    internal_url: String, "TOLLHOUSE_INTERNAL_URL", "URL", global = true,
        default_value = "http://127.0.0.1:8081";
    /// Allows plain HTTP, with the operator token, to a host that is not on loopback. Only for a
    /// private network
    flag internal_url_plain_http, "TOLLHOUSE_INTERNAL_URL_PLAIN_HTTP", global = true;
    /// PEM file with CA certificates to trust for that host in addition to those of the system
    internal_ca_file: Option<PathBuf>, "TOLLHOUSE_INTERNAL_CA_FILE", "file", global = true;
}

impl Remote {
    /// Rejects a URL over which the operator token would cross the network in clear text.
    pub fn url(&self) -> Result<Url, ConfigError> {
        let url = Url::parse(&self.internal_url).ok();
        let url = url.filter(|url| ["http", "https"].contains(&url.scheme()));
        let url = url.ok_or_else(|| {
            let what = "internal_url must be an http or https URL, like http://127.0.0.1:8081";
            ConfigError(what.to_owned())
        })?;
        if url.scheme() == "https"
            || self.internal_url_plain_http
            || url.host_str().is_some_and(is_loopback)
        {
            return Ok(url);
        }
        let host = url.host_str().unwrap_or_default();
        Err(ConfigError(format!(
            "internal_url would send the operator token to {host} in the clear: use https, or set internal_url_plain_http if the network in between is private"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_needs_loopback_or_the_explicit_setting() {
        for (url, plain_http, refused) in [
            ("http://127.0.0.1:8081", false, None),
            ("http://127.1.2.3", false, None),
            ("http://[::1]:8081", false, None),
            ("http://[::ffff:127.0.0.1]:8081", false, None),
            ("http://LOCALHOST:8081", false, None),
            ("https://host.example", false, None),
            ("http://10.0.0.5:8081", true, None),
            ("http://10.0.0.5:8081", false, Some("to 10.0.0.5 in the clear: use https, or")),
            ("http://0.0.0.0:8081", false, Some("internal_url_plain_http")),
            ("http://localhost.example", false, Some("localhost.example")),
            ("http://127.0.0.1.example", false, Some("127.0.0.1.example")),
            ("http://[2001:db8::1]:8081", false, Some("[2001:db8::1]")),
            ("host:8081", true, Some("must be an http or https URL")),
        ] {
            let remote = Remote {
                internal_url: url.to_owned(),
                internal_url_plain_http: plain_http,
                internal_ca_file: None,
            };
            match (remote.url(), refused) {
                (Ok(_), None) => {}
                (Err(error), Some(part)) if error.0.contains(part) => {}
                (found, _) => panic!("{url} {plain_http}: {found:?}"),
            }
        }
    }
}
