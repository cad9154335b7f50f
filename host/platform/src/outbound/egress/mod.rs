//! Egress: all outgoing HTTP of plugins, events, image downloads and sign-ins.
//!
//! Addresses are checked after name resolution, when the connection is made, so that no name leads
//! to the internal network. Redirects are never followed. Connections are pooled per purpose.

mod addresses;
mod base;
pub mod metrics;

use std::{
    collections::HashMap,
    error::Error as _,
    iter::successors,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use reqwest::{
    Method,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderName, HeaderValue},
};
use tracing::{Instrument, Span};
use url::{Host, Url};

use self::{
    addresses::is_public,
    metrics::{EgressMetrics, status_class},
};
use crate::{
    crypto::tls::{self, ClientIdentity},
    telemetry::spans,
};

/// Destinations that are permitted in addition to public addresses over https.
#[derive(Clone, Debug, Default)]
pub struct EgressPolicy {
    /// Development: http and https to loopback.
    pub allow_loopback: bool,
    /// Host names or addresses that the operator permits although they are private.
    pub allow_private: Vec<String>,
}

/// Egress per purpose. They share no connections: a pooled connection to an address that one
/// purpose permits would serve the others too.
#[derive(Clone)]
pub struct EgressByPurpose {
    pub plugins: Egress,
    pub events: Egress,
    pub images: Egress,
    /// To the OpenID provider of operators.
    pub sign_in: Egress,
}

impl EgressByPurpose {
    /// Takes the policies in the order of the fields. With `closed`, every request is refused,
    /// except those for signing in.
    pub fn new(
        closed: bool,
        [plugins, events, images]: [EgressPolicy; 3],
        sign_in: EgressPolicy,
    ) -> Result<EgressByPurpose, reqwest::Error> {
        let metrics = EgressMetrics::default();
        let open = |policy| {
            let egress = Egress::new(policy)?;
            Ok::<_, reqwest::Error>(Egress { metrics: metrics.clone(), ..egress })
        };
        let egress = |policy: EgressPolicy| match closed {
            true => {
                let egress = Egress::over(Transport::Closed, policy.into());
                Ok(Egress { metrics: metrics.clone(), ..egress })
            }
            false => open(policy),
        };
        Ok(EgressByPurpose {
            plugins: egress(plugins)?,
            events: egress(events)?,
            images: egress(images)?,
            sign_in: open(sign_in)?,
        })
    }
}

/// Maximum number of clients with certificates, each with its connections.
const MAX_IDENTITIES: usize = 200;

const RESERVED_HEADERS: [&str; 6] =
    ["accept-encoding", "connection", "content-length", "host", "range", "transfer-encoding"];

#[derive(Clone)]
pub struct Egress {
    pub metrics: EgressMetrics,
    transport: Transport,
    policy: Arc<EgressPolicy>,
    /// Clients by certificate: they must not share connections.
    identities: Arc<Mutex<HashMap<ClientIdentity, reqwest::Client>>>,
}

#[derive(Clone)]
enum Transport {
    Network(reqwest::Client),
    Script(Arc<Script>),
    Closed,
}

/// A replacement for the network: returns responses or errors.
pub type Script = dyn Fn(&EgressRequest) -> Result<EgressResponse, EgressError> + Send + Sync;

#[derive(Debug)]
pub struct EgressRequest {
    /// Label in metrics: name of a plugin, `events`, `images` or `sign_in`.
    pub sender: Arc<str>,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Bytes>,
    /// The certificate to present, if the server asks for one.
    pub identity: Option<ClientIdentity>,
    pub timeout: Duration,
    pub max_response_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// Nothing was sent.
    #[error("the request is not permitted: {0}")]
    Forbidden(String),
    /// Nothing was sent.
    #[error("no connection to {0}")]
    Connect(String),
    /// The request may have arrived.
    #[error("no response in time from {0}")]
    Timeout(String),
    /// The request may have arrived.
    #[error("the connection to {0} was lost before the response was complete")]
    ConnectionLost(String),
    /// The request has arrived.
    #[error("the response of {0} is larger than allowed")]
    TooLarge(String),
}

impl EgressError {
    /// Returns whether bytes of the request may have reached the upstream.
    pub fn may_have_reached_upstream(&self) -> bool {
        !matches!(self, EgressError::Forbidden(_) | EgressError::Connect(_))
    }
}

impl Egress {
    pub fn new(policy: EgressPolicy) -> Result<Egress, reqwest::Error> {
        let policy = Arc::new(policy);
        let client = build_client(tls::http_client(), &policy)?;
        Ok(Egress::over(Transport::Network(client), policy))
    }

    fn over(transport: Transport, policy: Arc<EgressPolicy>) -> Egress {
        let (metrics, identities) = (EgressMetrics::default(), Arc::default());
        Egress { metrics, transport, policy, identities }
    }

    /// Returns the client that presents a certificate.
    fn client_as(&self, identity: &ClientIdentity) -> Result<reqwest::Client, EgressError> {
        let clients = || self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients().get(identity) {
            return Ok(client.clone());
        }
        let invalid = || forbidden("the client certificate or its key is invalid");
        let builder = tls::http_client_as(identity).map_err(|_| invalid())?;
        let client = build_client(builder, &self.policy).map_err(|_| invalid())?;
        let mut clients = clients();
        if clients.len() >= MAX_IDENTITIES
            && let Some(other) = clients.keys().next().cloned()
        {
            clients.remove(&other); // requests in progress keep their connections
        }
        clients.insert(identity.clone(), client.clone());
        Ok(client)
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.transport, Transport::Closed)
    }

    /// Creates an egress that sends nothing, for measurements and inspection: `script` responds.
    pub fn scripted(script: Arc<Script>) -> Egress {
        Egress::over(Transport::Script(script), Arc::default())
    }

    /// Like [`Egress::scripted`], under the policy of this egress.
    pub fn with_script(&self, script: Arc<Script>) -> Egress {
        Egress::over(Transport::Script(script), self.policy.clone())
    }

    pub fn is_scripted(&self) -> bool {
        matches!(self.transport, Transport::Script(_))
    }

    /// Sends one request and returns its response. Refuses reserved headers, among them those that
    /// request a partial or compressed response: secrets could not be found in it.
    pub async fn send(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        let (began, sender) = (Instant::now(), request.sender.clone());
        let span = spans::egress(&sender, &request.method);
        let sent = self.exchange(request).instrument(span.clone()).await;
        self.metrics.observe(&sender, outcome(&sent), began.elapsed());
        match &sent {
            Ok(response) => spans::record_status(&span, response.status),
            Err(_) => {
                span.record("error.type", outcome(&sent));
                spans::mark_failed(&span);
            }
        }
        sent
    }

    async fn exchange(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        let url = self.check_url(&request.url)?;
        let to = url.host_str().unwrap_or_default().to_owned();
        Span::current().record("server.address", &*to);
        let (timeout, most) = (request.timeout, request.max_response_bytes);
        let outgoing = build_request(url, &request)?;
        let client = match &self.transport {
            Transport::Network(client) => match &request.identity {
                None => client.clone(),
                Some(identity) => self.client_as(identity)?,
            },
            Transport::Closed => return Err(forbidden("the host runs with no_jobs")),
            Transport::Script(script) => {
                let response = script(&request)?;
                let is_small = response.body.len() <= most;
                return if is_small { Ok(response) } else { Err(EgressError::TooLarge(to)) };
            }
        };
        let exchange = async {
            let response = client.execute(outgoing).await.map_err(|error| classify(&error, &to))?;
            read_response(response, &to, most).await
        };
        tokio::time::timeout(timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(EgressError::Timeout(to.clone())))
    }

    /// Checks a URL as far as possible before name resolution.
    fn check_url(&self, url: &str) -> Result<Url, EgressError> {
        let url = Url::parse(url).map_err(|_| forbidden("the URL is invalid"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(forbidden("the URL contains credentials"));
        }
        let Some(host) = url.host_str() else { return Err(forbidden("the URL has no host")) };
        let literal = literal_ip(&url);
        if literal.is_some_and(|ip| !self.policy.permits(host, ip)) {
            return Err(forbidden("the address is not public"));
        }
        let to_loopback = literal.is_some_and(|ip| ip.is_loopback()) || host == "localhost";
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.policy.allow_loopback && to_loopback => Ok(url),
            _ => Err(forbidden("only https is allowed")),
        }
    }
}

fn build_client(
    builder: reqwest::ClientBuilder,
    policy: &Arc<EgressPolicy>,
) -> reqwest::Result<reqwest::Client> {
    builder
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("tollhouse/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(policy.clone())
        .build()
}

fn forbidden(what: &str) -> EgressError {
    EgressError::Forbidden(what.to_owned())
}

fn literal_ip(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
        Host::Domain(_) => None,
    }
}

impl EgressPolicy {
    fn permits(&self, host: &str, ip: IpAddr) -> bool {
        is_public(ip)
            || (self.allow_loopback && ip.is_loopback())
            || self.allow_private.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Builds the request. Refuses invalid HTTP and reserved headers.
fn build_request(url: Url, request: &EgressRequest) -> Result<reqwest::Request, EgressError> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| forbidden("the method is not an HTTP method"))?;
    let mut outgoing = reqwest::Request::new(method, url);
    for (name, value) in &request.headers {
        if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(forbidden("a header is reserved for the host"));
        }
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| forbidden("a header name is invalid"))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| forbidden("a header value is invalid"))?;
        outgoing.headers_mut().append(name, value);
    }
    *outgoing.body_mut() = request.body.clone().map(reqwest::Body::from);
    Ok(outgoing)
}

async fn read_response(
    response: reqwest::Response,
    to: &str,
    most: usize,
) -> Result<EgressResponse, EgressError> {
    let status = response.status().as_u16();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    let mut body = BytesMut::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| EgressError::ConnectionLost(to.to_owned()))?;
        if body.len() + chunk.len() > most {
            return Err(EgressError::TooLarge(to.to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(EgressResponse { status, headers, body: body.freeze() })
}

fn outcome(sent: &Result<EgressResponse, EgressError>) -> &'static str {
    match sent {
        Ok(response) => status_class(response.status),
        Err(EgressError::Forbidden(_)) => "forbidden",
        Err(EgressError::Connect(_)) => "connect",
        Err(EgressError::Timeout(_)) => "timeout",
        Err(EgressError::ConnectionLost(_)) => "cut",
        Err(EgressError::TooLarge(_)) => "too_large",
    }
}

fn classify(error: &reqwest::Error, to: &str) -> EgressError {
    let mut causes = successors(error.source(), |&cause| cause.source());
    let is_refused = error.is_request() && causes.any(|cause| cause.is::<NoPermittedAddress>());
    if error.is_builder() || is_refused {
        forbidden("the request or its address is not allowed")
    } else if error.is_connect() {
        EgressError::Connect(to.to_owned())
    } else if error.is_timeout() {
        EgressError::Timeout(to.to_owned())
    } else {
        EgressError::ConnectionLost(to.to_owned())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0} has no permitted address")]
struct NoPermittedAddress(String);

/// Resolves names to the addresses that the policy permits.
impl Resolve for EgressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|address| policy.permits(&host, address.ip())).collect();
            if allowed.is_empty() {
                return Err(NoPermittedAddress(host).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_before_name_resolution() {
        let judge = |allow_loopback, url: &str| {
            let policy = EgressPolicy { allow_loopback, ..EgressPolicy::default() };
            Egress::new(policy).unwrap().check_url(url).is_ok()
        };
        for (url, strict, development) in [
            ("https://api.example.com/x", true, true),
            ("http://api.example.com/x", false, false),
            ("http://127.0.0.1:9/x", false, true),
            ("http://[::1]:9/x", false, true),
            ("https://169.254.169.254/latest", false, false),
            ("https://0x7f.1/", false, true),
            ("https://user:word@api.example.com/", false, false),
            ("file:///etc/passwd", false, false),
            ("not a url", false, false),
        ] {
            assert_eq!((judge(false, url), judge(true, url)), (strict, development), "{url}");
        }
    }

    fn request(url: &str, (name, value): (&str, &str)) -> EgressRequest {
        EgressRequest {
            sender: "test".into(),
            method: "GET".into(),
            url: url.to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            body: None,
            identity: None,
            timeout: Duration::from_secs(5),
            max_response_bytes: 2,
        }
    }

    #[tokio::test]
    async fn reserved_headers_are_refused() {
        let egress = Egress::new(EgressPolicy::default()).unwrap();
        for name in ["Accept-Encoding", "Range", "host", "Transfer-Encoding"] {
            let refused = egress.send(request("https://api.example.com/", (name, "x"))).await;
            assert!(matches!(refused, Err(EgressError::Forbidden(_))), "{name}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused() {
        let egress = Egress::new(EgressPolicy::default()).unwrap();
        let refused = egress.send(request("https://localhost:9/", ("x-a", "b"))).await.unwrap_err();
        assert!(matches!(refused, EgressError::Forbidden(_)), "{refused:?}");
        assert!(!refused.may_have_reached_upstream());
    }

    #[tokio::test]
    async fn a_script_receives_only_permitted_requests() {
        let response =
            EgressResponse { status: 200, headers: vec![], body: Bytes::from_static(b"ok") };
        let egress = Egress::scripted(Arc::new(move |_| Ok(response.clone())));
        let url = "https://api.example.com/";
        let response = egress.send(request(url, ("x-a", "é b"))).await;
        assert_eq!(response.map(|response| response.status), Ok(200));
        let small = EgressRequest { max_response_bytes: 1, ..request(url, ("x-a", "b")) };
        let too_large = EgressError::TooLarge("api.example.com".to_owned());
        assert_eq!(egress.send(small).await, Err(too_large));
        for (url, header) in [
            ("http://api.example.com/", ("x-a", "b")),
            (url, ("host", "b")),
            (url, ("x-a", "b\r\nx-c: d")),
            (url, ("x a", "b")),
        ] {
            let refused = egress.send(request(url, header)).await.unwrap_err();
            assert!(matches!(refused, EgressError::Forbidden(_)), "{header:?}: {refused:?}");
        }
    }
}
