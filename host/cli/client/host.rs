//! Client of a host's internal interface, or of its API for companies.

use std::{fmt::Display, net::SocketAddr};

use reqwest::{
    Certificate, Client, RequestBuilder, StatusCode, header::RETRY_AFTER, redirect::Policy,
};
use tollhouse_platform::crypto::tls;
use url::Url;

use super::certificate::explain_tls_error;
use crate::prelude::*;

/// Timeouts of connecting and of the whole request, which includes compiling an installed plugin.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

pub struct HostClient {
    client: Client,
    pub base: Url,
    /// The first segment of all paths: `internal` or, for companies, `api`.
    root: &'static str,
    ca_file: Option<PathBuf>,
    token: String,
    random: Random,
}

impl HostClient {
    pub fn new(access: &HostAccess) -> Result<HostClient> {
        let base = access.remote.url()?;
        let token = access.operator_token.read()?;
        HostClient::build(base, access.remote.internal_ca_file.clone(), token)
    }

    /// Returns a client of a host that this process has started.
    pub fn on_loopback(address: SocketAddr, token: &str) -> Result<HostClient> {
        let base = Url::parse(&format!("http://{address}")).expect("the URL is valid");
        HostClient::build(base, None, token.to_owned())
    }

    /// Returns a client of the API with a company's key.
    pub fn of_company(base: Url, key: String) -> Result<HostClient> {
        Ok(HostClient { root: "api", ..HostClient::build(base, None, key)? })
    }

    fn build(base: Url, ca_file: Option<PathBuf>, token: String) -> Result<HostClient> {
        tls::install_provider();
        // A redirect could send the token and the request body to another server.
        let mut client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(RESPONSE_TIMEOUT);
        if let Some(file) = &ca_file {
            let wrong = |error: &dyn Display| {
                Failure::usage(format!("internal_ca_file {}: {error}", file.display()))
            };
            let pem = fs::read(file).map_err(|error| wrong(&error))?;
            let certificates =
                Certificate::from_pem_bundle(&pem).map_err(|error| wrong(&chain(&error)))?;
            if certificates.is_empty() {
                return Err(wrong(&"it contains no certificate"));
            }
            client = client.tls_certs_merge(certificates);
        }
        let client = client.build().map_err(|error| Failure::usage(chain(&error)))?;
        let random = Random::system();
        Ok(HostClient { client, base, root: "internal", ca_file, token, random })
    }

    pub async fn get(&self, path: &[&str], query: &impl Serialize) -> Result<Value> {
        self.send(self.request(Method::GET, path)?.query(query)).await
    }

    /// Reports a list, a page of one, or a part of a feed.
    pub async fn list(&self, path: &[&str], query: &impl Serialize, columns: &str) -> Result {
        Ok(Report::list(self.get(path, query).await?, columns))
    }

    pub async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Value> {
        self.send_change(self.request(method, path)?.json(body)).await
    }

    pub async fn post_bytes(
        &self,
        path: &[&str],
        query: &impl Serialize,
        body: Vec<u8>,
    ) -> Result<Value> {
        self.send_change(self.request(Method::POST, path)?.query(query).body(body)).await
    }

    pub async fn delete(&self, path: &[&str]) -> Result<Value> {
        self.send_change(self.request(Method::DELETE, path)?).await
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder> {
        // The URL parser removes these segments, even percent-encoded ones.
        if path.iter().any(|segment| ["", ".", ".."].contains(segment)) {
            return Err(Failure::usage("a name or id must not be empty, `.` or `..`"));
        }
        let mut url = self.base.clone();
        let mut segments = url.path_segments_mut().expect("http and https URLs have paths");
        segments.pop_if_empty().extend([self.root, "v1"]).extend(path);
        drop(segments);
        Ok(self.client.request(method, url))
    }

    /// Sends a change with an idempotency key, so that it takes effect once.
    async fn send_change(&self, request: RequestBuilder) -> Result<Value> {
        self.send(request.header("Idempotency-Key", self.random.token(""))).await
    }

    /// Returns the data of the response, or `null`. Retries once after a broken connection.
    async fn send(&self, request: RequestBuilder) -> Result<Value> {
        let request = request.bearer_auth(&self.token);
        let again = request.try_clone().expect("bodies are in memory");
        let (response, is_second) = match exchange(request).await {
            // The host may have received the request, and the retry may yield its response.
            Err(error) if !error.is_connect() && !error.is_timeout() && !error.is_builder() => {
                (exchange(again).await, true)
            }
            response => (response, false),
        };
        let Response { status, retry_after, body } =
            response.map_err(|error| self.no_response(error))?;
        let Ok(mut envelope) = serde_json::from_slice::<Value>(&body) else {
            let at = &self.base;
            return Err(Failure::unreachable(format!(
                "the response from {at} ({status}) is not from a Tollhouse host: check {}_url",
                self.root
            )));
        };
        if status.is_success() {
            return Ok(envelope["data"].take());
        }
        let message = envelope["message"].as_str().unwrap_or("the host rejected the request");
        // A conflict on the retry means that the first request may still be in progress.
        let is_unknown = status.is_server_error() || is_second && status == StatusCode::CONFLICT;
        let new = if is_unknown { Failure::unreachable } else { Failure::refused };
        let mut failure = new(message);
        failure.status = Some(status.as_u16());
        failure.retry_after = retry_after;
        Err(failure)
    }

    fn no_response(&self, error: reqwest::Error) -> Failure {
        let what = if error.is_connect() { "cannot be reached" } else { "did not respond" };
        let error = error.without_url();
        let advice = tls::find_error(&error)
            .filter(|_| self.root == "internal")
            .and_then(|error| explain_tls_error(error, &self.base, self.ca_file.as_deref()));
        let why = advice.unwrap_or_else(|| chain(&error));
        let at = self.base.origin().ascii_serialization(); // without user name and password
        Failure::unreachable(format!("the host at {at} {what}: {why}"))
    }
}

struct Response {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

async fn exchange(request: RequestBuilder) -> reqwest::Result<Response> {
    let response = request.send().await?;
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|at| at.to_str().ok());
    Ok(Response {
        status: response.status(),
        retry_after: retry_after.and_then(|at| at.parse().ok()).map(Duration::from_secs),
        body: response.bytes().await?.into(),
    })
}
