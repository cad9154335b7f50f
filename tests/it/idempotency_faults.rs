//! Idempotency keys when a host loses its lease or a provider fails.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{routes, state::App, wiring};
use tollhouse_http as http;
use tollhouse_http::idempotency::{
    self, Claim, ClaimOutcome, Completion, RequestKey, StoredResponse,
};
use tollhouse_platform::{random::Random, values::id::Owner};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{Reply, TestApp, reply};

/// The lease duration: the longest possible request plus a margin.
const LEASE_SECONDS: i64 = 150;

/// Builds a request of the test company to a host, with an idempotency key.
fn begin(app: &TestApp, base: &str, order: &Value) -> RequestBuilder {
    let request = app.client.post(format!("{base}/api/v1/payment/initialize"));
    request.bearer_auth(&app.company.key).header("idempotency-key", "k").json(order)
}

fn is_replay(response: &Reply) -> bool {
    response.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

async fn payments(app: &TestApp) -> Value {
    app.get("/payment/list").await.data()["total"].clone()
}

/// Starts another host on the same database. Returns its URL, and a sender that stops it when
/// dropped.
async fn another_host(app: &TestApp) -> (String, watch::Sender<bool>) {
    let config = crate::app::config(&app.database, &[]);
    let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
    let host = host.expect("another host");
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", tcp.local_addr().expect("bound"));
    let (close, closing) = watch::channel(false);
    tokio::spawn(async move {
        wiring::listen(&host, http::Listener::plain(tcp), routes::public_routes(), closing).await;
    });
    (url, close)
}

both! {
    async fn a_response_after_the_lease_was_retaken_is_not_stored(app: TestApp) {
        let claim = async |key: &str| {
            let (owner, method, path) = (&Owner::from(app.company.id.clone()), "POST", "/api/v1/payment/initialize");
            idempotency::claim(&app.app.server, RequestKey { owner, operator: "", method, path, key }, "content".to_owned()).await
        };
        let run = async |key: &str| match claim(key).await.expect("a claim") {
            ClaimOutcome::Run(claim) => claim,
            ClaimOutcome::Replay(response) => panic!("unexpected replay: {response:?}"),
        };
        let response = |body: &str| StoredResponse { status: 200, content_type: None, body: body.to_owned() };
        let keep = async |claim: &Claim, body: &str| {
            let kept = Completion::StoreResponse(response(body), None);
            idempotency::complete(&app.app.server, claim.clone(), kept).await.expect("a write");
        };
        for (key, late_first) in [("late first", true), ("late last", false)] {
            let late = run(key).await;
            app.app.clock.advance_to(app.app.clock.now().plus_seconds(LEASE_SECONDS));
            let retaken = run(key).await;
            if late_first {
                keep(&late, "late").await;
                idempotency::complete(&app.app.server, late, Completion::Release).await.expect("a write");
                assert!(claim(key).await.is_err(), "the new owner holds the lease");
                keep(&retaken, "retaken").await;
            } else {
                keep(&retaken, "retaken").await;
                keep(&late, "late").await;
                idempotency::complete(&app.app.server, late, Completion::Release).await.expect("a write");
            }
            let Ok(ClaimOutcome::Replay(kept)) = claim(key).await else { panic!("no response is stored") };
            assert_eq!(kept, response("retaken"), "{key}");
        }
    }

    async fn two_hosts_that_run_a_request_after_a_lost_lease_make_one_payment(app: TestApp) {
        let (other, _close) = another_host(app).await;
        let mut order = app.order("");
        order.as_object_mut().expect("an object").remove("reference");
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).times(1).delay_ms(1_500));
        let late = reply(begin(app, &app.api, &order));
        let retaken = async {
            while payments(app).await != 1 {}
            app.app.clock.advance_to(app.app.clock.now().plus_seconds(LEASE_SECONDS));
            reply(begin(app, &other, &order)).await
        };
        let (late, retaken) = tokio::join!(late, retaken);
        assert!(!is_replay(&late) && !is_replay(&retaken), "{} {}", late.body, retaken.body);
        for base in [&app.api, &other] {
            let again = reply(begin(app, base, &order)).await;
            assert!(is_replay(&again), "{}", again.body);
            assert_eq!(again.body, retaken.body);
        }
        assert_eq!(payments(app).await, 1);
        app.run_until_idle().await;
    }

    async fn a_rejected_rerun_keeps_the_effects_of_an_earlier_run(app: TestApp) {
        let mut order = app.order("");
        order.as_object_mut().expect("an object").remove("reference");
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Error500));
        assert_eq!(reply(begin(app, &app.api, &order)).await.failure().0, 502);
        let plan = format!("/companies/{}/subscription", app.company.id);
        app.operator(Method::PUT, &plan, json!({ "features": [] })).await.data();
        assert_eq!(reply(begin(app, &app.api, &order)).await.failure().0, 403);
        app.operator(Method::PUT, &plan, json!({ "features": ["payments"] })).await.data();
        reply(begin(app, &app.api, &order)).await.data();
        assert_eq!(payments(app).await, 1);
        app.run_until_idle().await;
    }

    async fn a_repeated_request_that_failed_after_its_effect_has_it_once(app: TestApp) {
        let order = app.order("order-1");
        // The provider opens the session, but its response is lost.
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(1));
        let failed = reply(begin(app, &app.api, &order)).await;
        assert_eq!(failed.failure().0, 502);
        assert_eq!(payments(app).await, 1);
        let pending = app.wallet().await["pending"].clone();
        assert_eq!(pending, json!(2500.5));

        let again = reply(begin(app, &app.api, &order)).await;
        assert!(!is_replay(&again) && again.data()["checkout"]["url"].is_string(), "{}", again.body);
        assert_eq!((payments(app).await, app.wallet().await["pending"].clone()), (json!(1), pending));
        let replayed = reply(begin(app, &app.api, &order)).await;
        assert!(is_replay(&replayed));
        assert_eq!(replayed.body, again.body);

        app.complete(again.data(), "success").await;
        app.run_until_idle().await;
        assert_eq!(app.wallet().await["balance"], 2362.99);
        assert_eq!(app.events(), ["payment.success"]);
    }
}
