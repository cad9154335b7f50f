//! The hosts under load, and the companies whose requests they receive.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use hyper::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Options, Result,
    client::{Client, Failure},
    host_metrics::HostMetrics,
    receiver::Receiver,
};

/// Number of payments that are fetched at random.
const RECENT_PAYMENTS: usize = 10_000;
const IDLE_PATIENCE: Duration = Duration::from_secs(300);
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// `sandbox.json`.
#[derive(Deserialize)]
pub struct Sandbox {
    pub api: String,
    pub internal: String,
    pub operator_token: String,
    /// The base URL of the simulators.
    pub sandbox: String,
}

impl Sandbox {
    pub fn read(folder: &Path) -> Result<Sandbox> {
        let file = folder.join("sandbox.json");
        let text = fs::read(&file).map_err(|error| {
            format!(
                "{}: {error}; start `cargo sandbox`, or set --sandbox to its folder",
                file.display()
            )
        })?;
        Ok(serde_json::from_slice(&text)?)
    }
}

pub struct Company {
    pub id: String,
    pub key: String,
    /// The loans of its borrowers, each of whom has a saved card.
    pub loans: Vec<String>,
    /// Whether its webhook endpoint responds.
    pub is_healthy: bool,
}

pub struct Target {
    pub client: Client,
    pub simulators: String,
    pub companies: Vec<Company>,
    pub receiver: Receiver,
    apis: Vec<String>,
    internals: Vec<String>,
    operator_token: String,
    next_api: AtomicUsize,
    next_number: AtomicU64,
    /// Company and reference.
    recent: Mutex<VecDeque<(usize, String)>>,
}

impl Target {
    /// Returns the target without companies.
    pub async fn connect(options: &Options) -> Result<Target> {
        let Sandbox { api, internal, operator_token, sandbox } = Sandbox::read(&options.sandbox)?;
        let all = |first: String, further: &[String]| {
            let further = further.iter().map(|url| url.trim_end_matches('/').to_owned());
            std::iter::once(first).chain(further).collect::<Vec<_>>()
        };
        Ok(Target {
            client: Client::new(Duration::from_secs(options.timeout_s)),
            simulators: sandbox,
            companies: Vec::new(),
            receiver: Receiver::start().await?,
            apis: all(api, &options.apis),
            internals: all(internal, &options.internals),
            operator_token,
            next_api: AtomicUsize::new(0),
            next_number: AtomicU64::new(0),
            recent: Mutex::default(),
        })
    }

    pub fn hosts(&self) -> usize {
        self.apis.len()
    }

    /// Returns a number that no other operation has.
    pub fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Relaxed)
    }

    /// Sends a request of a company to the next host, and returns `data` of the response.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        company: &Company,
        body: &Value,
    ) -> Result<Value, Failure> {
        let api = &self.apis[self.next_api.fetch_add(1, Relaxed) % self.apis.len()];
        self.client.call(method, &format!("{api}/api/v1{path}"), &company.key, body).await
    }

    pub async fn operator(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let url = format!("{}/internal/v1{path}", self.internals[0]);
        self.client.call(method, &url, &self.operator_token, body).await
    }

    /// Completes a checkout page as the payer does.
    pub async fn pay(&self, begun: &Value) -> Result<(), Failure> {
        let page = begun["checkout"]["url"].as_str().unwrap_or_default();
        let id = page.rsplit('/').next().unwrap_or_default();
        let url = format!("{}/checkout/{id}/complete", self.simulators);
        let body = serde_json::json!({ "outcome": "success" });
        self.client.send(Method::POST, &url, "", &body).await.map(drop)
    }

    /// Remembers a payment that may be fetched later.
    pub fn remember(&self, company: usize, reference: String) {
        let mut recent = self.recent();
        if recent.len() == RECENT_PAYMENTS {
            recent.pop_front();
        }
        recent.push_back((company, reference));
    }

    /// Returns company and reference of a recent payment; the same for the same number, until
    /// others are remembered.
    pub fn recall(&self, number: u64) -> Option<(usize, String)> {
        let recent = self.recent();
        let count = u64::try_from(recent.len()).ok().filter(|count| *count > 0)?;
        // Multiplied by 2^64 / φ, neighbours are far from each other.
        let n = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % count;
        recent.get(usize::try_from(n).ok()?).cloned()
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<(usize, String)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the metrics of all hosts whose internal API is known, as sums.
    pub async fn metrics(&self) -> Result<HostMetrics> {
        let mut sum = HostMetrics::default();
        for internal in &self.internals {
            let url = format!("{internal}/metrics");
            let page = self.client.send(Method::GET, &url, "", &Value::Null).await?;
            sum = sum + HostMetrics::parse(&String::from_utf8_lossy(&page));
        }
        Ok(sum)
    }

    /// Waits until the hosts have delivered all messages, which would delay those of the next step.
    pub async fn wait_until_idle(&self) -> Result<()> {
        let idle = async {
            for company in &self.companies {
                let path = format!("/companies/{}/messages?state=pending&limit=1", company.id);
                while self.operator(Method::GET, &path, &Value::Null).await?["total"] != 0 {
                    tokio::time::sleep(IDLE_POLL_INTERVAL).await;
                }
            }
            Ok(())
        };
        let waited = tokio::time::timeout(IDLE_PATIENCE, idle).await;
        waited.map_err(|_| "messages are still queued, minutes after the load")?
    }
}
