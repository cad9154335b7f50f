//! The connection to the API for companies.

use tollhouse_platform::{config::secrets, outbound::is_loopback};
use url::Url;

use crate::prelude::*;

// Not settings: the settings file is for operators.
#[derive(Args)]
pub struct ApiAccess {
    /// URL of the host's API. Default: TOLLHOUSE_API_URL, else http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// File with the company's API key. Default: the key in TOLLHOUSE_API_KEY
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

impl ApiAccess {
    pub fn client(&self) -> Result<HostClient> {
        let source = ("--api-key-file", "TOLLHOUSE_API_KEY");
        let key = secrets::read(self.api_key_file.as_deref(), source)?;
        let key = key.ok_or_else(|| {
            Failure::usage("set TOLLHOUSE_API_KEY to the company's API key, or --api-key-file")
        })?;
        HostClient::of_company(self.url()?, key)
    }

    /// Rejects a URL over which the key would cross the network in clear text.
    fn url(&self) -> Result<Url> {
        let variable = std::env::var("TOLLHOUSE_API_URL").ok().filter(|url| !url.is_empty());
        let given = self.api_url.clone().or(variable);
        let url = http_url(given.as_deref().unwrap_or(DEFAULT_URL), "--api-url")?;
        match url.scheme() == "https" || url.host_str().is_some_and(is_loopback) {
            true => Ok(url),
            false => Err(Failure::usage(
                "--api-url would send the API key over the network in the clear: use https",
            )),
        }
    }
}

/// Parses an http or https URL of an argument.
pub fn http_url(text: &str, argument: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    url.ok_or_else(|| Failure::usage(format!("{argument} must be an http or https URL")))
}
