//! Client of a host's internal interface.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use reqwest::{Certificate, Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tollhouse_app::state::config::Remote;
use tollhouse_platform::{config::secrets::OperatorToken, crypto::tls, random::Random};
use url::Url;

use super::certificate::explain_tls_error;
use crate::terminal::failure::{Failure, chain};

/// Timeouts of connecting and of the whole request, which includes compiling an installed plugin.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

/// The connection settings of a command.
#[derive(Args)]
pub struct HostAccess {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    operator_token: OperatorToken,
}

/// The page of a list.
#[derive(Args)]
pub struct PageArgs {
    /// Page number, from 1
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// Maximum number of records per page, at most 1000
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl PageArgs {
    pub fn query(&self) -> Vec<(&'static str, String)> {
        vec![("page", self.page.to_string()), ("limit", self.limit.to_string())]
    }
}

/// The cursor and limit of a feed.
#[derive(Args)]
pub struct CursorArgs {
    /// Cursor that the previous response returned
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of records, at most 1000
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

impl CursorArgs {
    pub fn query(self) -> Vec<(&'static str, String)> {
        let after = self.after.map(|after| ("after", after));
        after.into_iter().chain([("limit", self.limit.to_string())]).collect()
    }
}

/// Returns the name of a choice, which the API uses too.
pub fn choice_name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

pub struct HostClient {
    client: Client,
    base: Url,
    ca_file: Option<PathBuf>,
    token: String,
    random: Random,
}

impl HostClient {
    pub fn new(access: &HostAccess) -> Result<HostClient, Failure> {
        let remote = &access.remote;
        let base = remote.url()?;
        let token = access.operator_token.read()?;
        tls::install_provider();
        // A redirect could send the token and the request body to another server.
        let mut client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(RESPONSE_TIMEOUT);
        if let Some(file) = &remote.internal_ca_file {
            let wrong = |error: String| {
                Failure::Usage(format!("internal_ca_file {}: {error}", file.display()))
            };
            let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let certificates =
                Certificate::from_pem_bundle(&pem).map_err(|error| wrong(chain(&error)))?;
            if certificates.is_empty() {
                return Err(wrong("it contains no certificate".to_owned()));
            }
            client = client.tls_certs_merge(certificates);
        }
        let client = client.build().map_err(|error| Failure::Usage(chain(&error)))?;
        let ca_file = remote.internal_ca_file.clone();
        Ok(HostClient { client, base, ca_file, token, random: Random::system() })
    }

    /// Returns a client of a host that this process has started.
    pub fn on_loopback(address: SocketAddr, token: &str) -> Result<HostClient, Failure> {
        tls::install_provider();
        let client = Client::builder().no_proxy().timeout(RESPONSE_TIMEOUT).build();
        let client = client.map_err(|error| Failure::Usage(chain(&error)))?;
        let base = Url::parse(&format!("http://{address}")).expect("the URL is valid");
        let token = token.to_owned();
        Ok(HostClient { client, base, ca_file: None, token, random: Random::system() })
    }

    pub fn base(&self) -> &Url {
        &self.base
    }

    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, Failure> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send(self.client.get(url)).await
    }

    pub async fn send_json(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<Value, Failure> {
        self.send_change(self.client.request(method, self.url(path)?).json(body)).await
    }

    pub async fn post_bytes(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Value, Failure> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send_change(self.client.post(url).body(body)).await
    }

    pub async fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        self.send_change(self.client.delete(self.url(path)?)).await
    }

    fn url(&self, path: &[&str]) -> Result<Url, Failure> {
        // The URL parser removes these segments, even percent-encoded ones.
        if path.iter().any(|segment| ["", ".", ".."].contains(segment)) {
            return Err(Failure::Usage(
                "a name or id must not be empty or consist of dots".to_owned(),
            ));
        }
        let mut url = self.base.clone();
        let mut segments = url.path_segments_mut().expect("http and https URLs have paths");
        segments.pop_if_empty().extend(["internal", "v1"]).extend(path);
        drop(segments);
        Ok(url)
    }

    /// Sends a change with an idempotency key, so that it takes effect once.
    async fn send_change(&self, request: RequestBuilder) -> Result<Value, Failure> {
        self.send(request.header("Idempotency-Key", self.random.token(""))).await
    }

    /// Returns the data of the response, or `null`. Retries once after a broken connection.
    async fn send(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let request = request.bearer_auth(&self.token);
        let again = request.try_clone().expect("bodies are in memory");
        let (answer, is_second) = match exchange(request).await {
            Err(error) if is_connection_lost(&error) => (exchange(again).await, true),
            answer => (answer, false),
        };
        let (status, body) = answer.map_err(|error| self.no_response(error))?;
        let Ok(mut envelope) = serde_json::from_slice::<Value>(&body) else {
            let at = &self.base;
            return Err(Failure::unreachable(format!(
                "{at} responded with {status} and is not a Tollhouse host: check internal_url"
            )));
        };
        if status.is_success() {
            return Ok(envelope["data"].take());
        }
        let message =
            envelope["message"].as_str().unwrap_or("the host rejected the request").to_owned();
        // A conflict on the retry means that the first request may still be in progress.
        let is_unknown = status.is_server_error() || is_second && status == StatusCode::CONFLICT;
        let status = Some(status.as_u16());
        Err(match is_unknown {
            true => Failure::Unreachable { status, message },
            false => Failure::Refused { status, message },
        })
    }

    fn no_response(&self, error: reqwest::Error) -> Failure {
        let what = if error.is_connect() { "cannot be reached" } else { "did not respond" };
        let error = error.without_url();
        let advice = tls::find_error(&error)
            .and_then(|error| explain_tls_error(error, &self.base, self.ca_file.as_deref()));
        let why = advice.unwrap_or_else(|| chain(&error));
        let at = self.base.origin().ascii_serialization(); // without user name and password
        Failure::unreachable(format!("the host at {at} {what}: {why}"))
    }
}

async fn exchange(request: RequestBuilder) -> reqwest::Result<(StatusCode, Vec<u8>)> {
    let answer = request.send().await?;
    Ok((answer.status(), answer.bytes().await?.into()))
}

/// Returns whether the host may have received the request and a retry may yield its response.
fn is_connection_lost(error: &reqwest::Error) -> bool {
    !error.is_connect() && !error.is_timeout() && !error.is_builder()
}
