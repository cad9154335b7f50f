//! Fairness of background work: no company's backlog delays another's jobs, and no hanging webhook
//! endpoint delays deliveries to others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{sleep, timeout},
};
use tollhouse_app::webhooks::outgoing::{self, Event};
use tollhouse_platform::{
    background::{
        jobs::{self, Job, JobHost, JobResult, WorkerParts, Workers},
        tasks::Tasks,
    },
    clock::Timestamp,
    error::{Error, Result},
    random::Random,
    store::{self, Tx},
    values::id::CompanyId,
};

use crate::app::{Company, TestApp};

pub const KIND: &str = "test.job";
/// A kind whose jobs are never parked because they fail.
pub const MONEY_KIND: &str = "test.money";
/// The subject of a job that fails each time.
pub const POISON: &str = "poison";
const HANGS: bool = true;
const MINUTE: Duration = Duration::from_secs(60);

/// A host whose jobs run until the test ends them.
#[derive(Clone)]
pub struct Host(Arc<HostParts>);

struct HostParts {
    workers: Workers<Host>,
    started: Mutex<Vec<Job>>,
    /// Number of times that the test has ended all runs.
    ended: watch::Sender<u64>,
}

impl JobHost for Host {
    fn workers(&self) -> &Workers<Host> {
        &self.0.workers
    }

    fn for_operation(&self) -> Host {
        self.clone()
    }
}

fn run(host: Host, job: Job) -> BoxFuture<'static, Result<JobResult>> {
    async move {
        let mut ended = host.0.ended.subscribe();
        let is_poison = job.subject == POISON;
        host.0.started.lock().unwrap().push(job);
        if is_poison {
            return Err(Error::internal("bad data"));
        }
        let _ = ended.changed().await;
        Ok(JobResult::Done)
    }
    .boxed()
}

impl Host {
    pub fn new(app: &TestApp) -> Host {
        let parts = WorkerParts {
            enabled: true,
            store: app.app.store.clone(),
            clock: app.app.clock.clone(),
            random: Random::system(),
            tasks: Tasks::default(),
            parked_kinds: &[KIND],
            simulators: None,
        };
        let (workers, ended) =
            (Workers::new(&[(KIND, run), (MONEY_KIND, run)], parts), watch::Sender::new(0));
        Host(Arc::new(HostParts { workers, started: Mutex::default(), ended }))
    }

    /// Starts due jobs, and returns those that have started since the last call.
    pub async fn start(&self) -> Vec<Job> {
        jobs::start_due(self).await.expect("jobs that start");
        let leased = async |tx: &mut Tx| -> store::Result<i64> {
            tx.sql("SELECT COUNT(*) FROM jobs WHERE kind LIKE 'test.%' AND lease IS NOT NULL")
                .value()
                .await
        };
        let store = &self.0.workers.store;
        while (self.0.ended.receiver_count() as i64) < store.select(leased).await.expect("a count")
        {
            tokio::task::yield_now().await;
        }
        std::mem::take(&mut self.0.started.lock().unwrap())
    }

    /// Returns the number of runs since the last call.
    pub fn take_runs(&self) -> usize {
        std::mem::take(&mut *self.0.started.lock().unwrap()).len()
    }

    /// Ends all runs.
    pub async fn end(&self) {
        self.0.ended.send_modify(|times| *times += 1);
        jobs::wait_until_idle(self).await;
    }
}

/// Enqueues jobs of a company, due at `run_at` and later ones a millisecond apart each.
async fn enqueue(app: &TestApp, company: &str, count: i64, run_at: Timestamp) {
    let company = company.to_owned();
    let enqueued = app.app.store.write(async move |tx| -> store::Result<()> {
        tx.sql(
            "INSERT INTO jobs (company_id, kind, subject, run_at, due_at, wakes, failures)
             SELECT $1, $2, 'job-' || number, $3 + number, $3 + number, 0, 0 FROM (
                 WITH RECURSIVE numbers (number) AS (
                     SELECT CAST(0 AS BIGINT) WHERE $4 > 0 UNION ALL
                     SELECT number + 1 FROM numbers WHERE number + 1 < $4)
                 SELECT number FROM numbers) numbers",
        )
        .bind(company)
        .bind(KIND)
        .bind(run_at)
        .bind(count)
        .execute()
        .await
    });
    enqueued.await.expect("enqueued jobs");
}

pub async fn delete_jobs(app: &TestApp, kind: &'static str) {
    let delete = async move |tx: &mut Tx| -> store::Result<()> {
        tx.sql("DELETE FROM jobs WHERE kind = $1").bind(kind).execute().await
    };
    app.app.store.write(delete).await.expect("no jobs");
}

fn by_company(jobs: &[Job]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.company_id.as_str()).or_default() += 1;
    }
    counts
}

both! {
    async fn a_job_of_another_company_starts_beside_a_backlog_of_thousands(app: TestApp) {
        let (host, now) = (Host::new(app), app.app.clock.now());
        enqueue(app, "busy", 5_000, now.plus_seconds(-60)).await;
        assert_eq!(by_company(&host.start().await), [("busy", 32)].into());
        for (company, count) in [("a", 1), ("z", 10)] {
            enqueue(app, company, count, now).await;
        }
        app.app.clock.advance_to(now.plus_seconds(1));
        assert_eq!(by_company(&host.start().await), [("a", 1), ("z", 10)].into());
        host.end().await;
        // The oldest of the company are next, and no run is lost or repeated.
        let started = host.start().await;
        let subjects = started.iter().map(|job| job.subject.clone()).collect();
        let expected: BTreeSet<String> = (32..64).map(|n| format!("job-{n}")).collect();
        assert_eq!((started.len(), expected), (32, subjects));
        host.end().await;
        delete_jobs(app, KIND).await;
    }

    async fn every_company_gets_its_turn(app: TestApp) {
        for seed in 1..=6 {
            let (host, random) = (Host::new(app), Random::seeded(seed));
            let now = app.app.clock.now().plus_seconds(60);
            let mut waiting = BTreeMap::new();
            for n in 0..1 + random.up_to(180) {
                let company = format!("company-{n}");
                let count = [0, 1, 3, 400][random.up_to(3) as usize];
                enqueue(app, &company, count, now.plus_seconds(-30)).await;
                // Most companies also have a job that is not due.
                if random.up_to(3) > 0 {
                    enqueue_later(app, &company, now.plus_seconds(3_600)).await;
                }
                waiting.insert(company, count);
            }
            waiting.retain(|_, count| *count > 0);
            app.app.clock.advance_to(now);
            let (companies, mut last) = (waiting.len(), BTreeMap::<String, Timestamp>::new());
            for round in 0.. {
                let started = host.start().await;
                assert!(!started.is_empty() || waiting.is_empty(), "{seed}: nothing starts in round {round}");
                for job in started {
                    let before = last.insert(job.company_id.to_string(), job.due_at);
                    assert!(before.is_none_or(|before| before <= job.due_at), "{seed}: {job:?} is late");
                    let left = waiting.get_mut(job.company_id.as_str()).expect("a waiting company");
                    *left -= 1;
                    if *left == 0 {
                        waiting.remove(job.company_id.as_str());
                    }
                }
                host.end().await;
                // A scan visits 128 companies, of which 60 start at once.
                if round > 3 + companies / 20 {
                    let late: Vec<_> = waiting.keys().filter(|company| !last.contains_key(*company)).collect();
                    assert!(late.is_empty(), "{seed}: {late:?} of {companies} companies wait in round {round}");
                    break;
                }
            }
            delete_jobs(app, KIND).await;
        }
    }
}

async fn enqueue_later(app: &TestApp, company: &str, run_at: Timestamp) {
    let company = CompanyId::from(company);
    let enqueued = app.app.store.write(async move |tx| -> store::Result<()> {
        jobs::enqueue(tx, &company, KIND, "later", run_at).await
    });
    enqueued.await.expect("an enqueued job");
}

/// A webhook endpoint that responds at once, or hangs until it is dropped.
struct Endpoint {
    url: String,
    requests: Arc<AtomicUsize>,
    _hold: Option<watch::Sender<()>>,
}

impl Endpoint {
    async fn start(hangs: bool) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let (requests, hold) =
            (Arc::new(AtomicUsize::new(0)), hangs.then(|| watch::Sender::new(())));
        let (count, held) = (requests.clone(), hold.as_ref().map(watch::Sender::subscribe));
        let hook = async move || {
            count.fetch_add(1, SeqCst);
            if let Some(mut held) = held {
                let _ = held.changed().await;
            }
        };
        let router = axum::Router::new().route("/hook", axum::routing::post(hook));
        tokio::spawn(axum::serve(listener, router).into_future());
        Endpoint { url, requests, _hold: hold }
    }

    fn count(&self) -> usize {
        self.requests.load(SeqCst)
    }

    /// Emits events of a company to this endpoint.
    async fn emit(&self, app: &TestApp, company: &Company, count: usize) {
        let (host, company_id, url) = (app.app.clone(), company.id.clone(), self.url.clone());
        let emitted = app.app.store.write(async move |tx| -> Result<()> {
            for n in 0..count {
                let (subject_id, callback_url) = (format!("payment-{n}"), Some(url.clone()));
                let event =
                    Event { kind: "payment.success", subject_id, data: json!({}), callback_url };
                outgoing::emit(tx, &host, &company_id, event).await?;
            }
            Ok(())
        });
        emitted.await.expect("emitted events");
    }
}

/// Number of delivery attempts that have failed.
async fn failed_attempts(app: &TestApp) -> i64 {
    let count = async |tx: &mut Tx| -> store::Result<i64> {
        tx.sql("SELECT COUNT(*) FROM event_attempts WHERE status IS NULL").value().await
    };
    app.app.store.select(count).await.expect("a count")
}

both! {
    async fn hanging_endpoints_delay_no_delivery_to_others(app: TestApp) {
        let (busy, other) = (app.company.clone(), app.new_company("Beta Lending").await);
        for company in [&busy, &other] {
            let path = format!("/companies/{}", company.id);
            app.operator(Method::PATCH, &path, json!({ "event_url": null })).await.data();
        }
        let mut hanging = Vec::new();
        for _ in 0..4 {
            let endpoint = Endpoint::start(HANGS).await;
            endpoint.emit(app, &busy, 300).await;
            hanging.push(endpoint);
        }
        let [own, of_other] = [Endpoint::start(!HANGS).await, Endpoint::start(!HANGS).await];
        own.emit(app, &busy, 100).await;
        of_other.emit(app, &other, 100).await;

        let work = tokio::spawn(jobs::run_workers(app.app.clone()));
        let delivered = async {
            while own.count() + of_other.count() < 200 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(MINUTE, delivered).await.expect("deliveries to endpoints that respond");
        let attempts: usize = hanging.iter().map(Endpoint::count).sum();
        let failed = usize::try_from(failed_attempts(app).await).unwrap();
        // In progress: at most the company's half of the slow lane (128) and the quick lane (32).
        assert!((4..=failed + 160).contains(&attempts), "{attempts} attempts, {failed} failed");

        work.abort();
        drop(hanging);
        jobs::wait_until_idle(&app.app).await;
        delete_jobs(app, outgoing::DELIVER_JOB).await;
    }
}

/// Requests a list of about 600 KiB over HTTP/2, and reads only the head of the response: the
/// client's window has room for 64 KiB of it.
async fn begin_list(client: &Client, app: &TestApp, company: &Company) -> Response {
    let list = client.get(format!("{}/api/v1/user/list?limit=500", app.api));
    list.bearer_auth(&company.key).send().await.expect("a response")
}

both! {
    async fn responses_that_a_company_does_not_read_leave_room_for_others(app: TestApp, "--max-requests=4") {
        let other = app.new_company("Beta Lending").await;
        let users: Vec<Value> = (0..500)
            .map(|n| json!({
                "user_id": format!("user-{n}"), "first_name": "Ada", "last_name": "Obi",
                "email": format!("user-{n}@example.com"), "metadata": { "note": "x".repeat(1_000) },
            }))
            .collect();
        for company in [&app.company, &other] {
            let body = Some(json!({ "users": users }));
            app.request(company, Method::POST, "/user/bulk/create", body).await.data();
        }
        let clients = [(); 3].map(|()| {
            let client = Client::builder().no_proxy().http2_prior_knowledge();
            client.http2_initial_stream_window_size(65_535).build().expect("a client")
        });
        // The share of a company is 512 KiB.
        let unread = begin_list(&clients[0], app, &app.company).await;
        assert_eq!(unread.status(), 200);
        let refused = begin_list(&clients[1], app, &app.company).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
        app.get("/user/list?limit=5").await.data();
        let of_other = begin_list(&clients[2], app, &other).await;
        assert_eq!(of_other.json::<Value>().await.expect("JSON")["data"]["total"], 500);
        assert_eq!(unread.json::<Value>().await.expect("JSON")["data"]["total"], 500);
        app.get("/user/list?limit=500").await.data();
    }
}
