//! The lease of a request that calls a provider: other requests wait at most five seconds for it,
//! and the lease of a dead host expires.

use std::time::Duration;

use reqwest::{Method, header::RETRY_AFTER};
use serde_json::{Value, json};
use tollhouse_platform::{clock::Timestamp, store::Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp},
    codes::merged,
    lending::{create_loan, create_recollection, create_user},
    sprout::{SproutUpstream, sprout_order},
};

/// Longer than any test, for a provider that never responds.
const FOREVER_MS: u64 = 600_000;
const IN_PROGRESS: (u16, &str) = (409, "another request with this reference is in progress");

/// Waits until `is` returns true.
async fn until(is: impl AsyncFn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let so = async {
        while !is().await {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), so).await.expect("the condition holds in time");
}

/// Sends a request whose provider never responds, and disconnects when the provider has received
/// it: the host drops the request as if it had crashed.
async fn drop_during_provider_call(
    app: &TestApp,
    operation: &str,
    request: impl Future<Output = Reply>,
) {
    let faults = app.simulators.faults();
    faults.push(Fault::new(operation, FaultKind::Slow).delay_ms(FOREVER_MS));
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let taken = async {
        while !faults.list().is_empty() {
            looks.tick().await;
        }
    };
    tokio::select! {
        reply = request => panic!("{}", reply.body),
        () = taken => {}
    }
}

async fn write(app: &TestApp, sql: &'static str, until: Timestamp) {
    let write = async move |tx: &mut Tx| tx.sql(sql).bind(until).run().await;
    assert_eq!(app.app.store.write(write).await.expect("a statement of ours"), 1);
}

/// Remaining lease of the only payment, in seconds.
async fn seconds_left(app: &TestApp) -> i64 {
    let read = async |tx: &mut Tx| {
        tx.sql("SELECT lease_until FROM charges WHERE lease_until IS NOT NULL").one().await
    };
    let (until,): (i64,) = app.app.store.select(read).await.expect("a payment");
    (until - app.app.clock.now().0) / 1_000
}

fn checkout_recollection(reference: &str) -> Value {
    json!({
        "loan": "loan-1", "with_provider": true, "payment_channel": "checkout", "reference": reference,
        "checkout": { "success_url": "https://a.example/" },
    })
}

/// Starts the upstream of the company's default provider. It holds back responses while its `gate`
/// is locked for writing.
async fn sprout(app: &TestApp) -> SproutUpstream {
    let upstream = SproutUpstream::start().await;
    app.install(artifacts::SPROUT).await;
    upstream.configure_account(app).await;
    let path = format!("/companies/{}", app.company.id);
    let default = json!({ "payment_service": "sprout" });
    app.operator(Method::PATCH, &path, default).await.data();
    upstream
}

async fn wait_for_sessions(upstream: &SproutUpstream, count: usize) {
    let mut began = upstream.began.subscribe();
    let begun = began.wait_for(|began| *began == count);
    tokio::time::timeout(Duration::from_secs(60), begun)
        .await
        .expect("sessions in time")
        .expect("a sender");
}

/// Advances the clock by five seconds until a request that waits for another one gets a response.
async fn wait_in_vain(app: &TestApp, request: impl Future<Output = Reply>) -> Reply {
    let mut request = Box::pin(request);
    loop {
        if let Ok(reply) = tokio::time::timeout(Duration::from_millis(1_500), &mut request).await {
            return reply;
        }
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(5));
    }
}

/// Sends another request for a payment in progress and advances the clock until it gets a response.
async fn initialize_concurrently(app: &TestApp, reference: &str) -> Reply {
    let mut request = Box::pin(app.post("/payment/initialize", sprout_order(app, reference)));
    loop {
        if let Ok(reply) = tokio::time::timeout(Duration::from_millis(1_500), &mut request).await {
            return reply;
        }
        // The first request is still running: it extends its lease before it expires.
        until(async || seconds_left(app).await >= 5).await;
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(5));
    }
}

both! {
    async fn a_payment_of_a_dead_host_is_initialized_again_when_its_lease_expires(app: TestApp) {
        let begin = || app.post("/payment/initialize", app.order("order-1"));
        drop_during_provider_call(app, "initialize", begin()).await;
        assert_eq!(app.fetch("order-1").await["checkout"]["url"], Value::Null);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(21));
        let payment = begin().await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_request_that_waits_for_another_gets_409_after_five_seconds(app: TestApp) {
        let upstream = sprout(app).await;
        let gate = upstream.gate.write().await;
        let first = app.post("/payment/initialize", sprout_order(app, "order-1"));
        let others = async {
            wait_for_sessions(&upstream, 1).await;
            // In total longer than a lease without extensions.
            for _ in 0..3 {
                let refused = initialize_concurrently(app, "order-1").await;
                assert_eq!(refused.failure(), IN_PROGRESS);
                let seconds: i64 = refused.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
                assert!((1..=20).contains(&seconds), "{seconds}");
                until(async || seconds_left(app).await >= 5).await;
            }
            drop(gate);
        };
        let (first, ()) = futures::future::join(first, others).await;
        assert_eq!(first.data()["checkout"]["url"], format!("{}/pay/order-1", upstream.url));
        assert_eq!(*upstream.began.borrow(), 1);
        let again = app.post("/payment/initialize", sprout_order(app, "order-1")).await;
        assert_eq!(again.data(), first.data());
        app.run_until_idle().await;
    }

    async fn a_checkout_session_that_arrives_after_its_lease_was_lost_is_dropped(app: TestApp) {
        let upstream = sprout(app).await;
        for (reference, take) in [
            ("order-1", "UPDATE charges SET fence = fence + 1, lease_until = $1 WHERE lease_until IS NOT NULL"),
            ("order-2", "UPDATE charges SET fence = fence + 1, lease_until = $1, unsure = TRUE WHERE lease_until IS NOT NULL"),
        ] {
            let began = *upstream.began.borrow();
            let gate = upstream.gate.write().await;
            let mut first = Box::pin(app.post("/payment/initialize", sprout_order(app, reference)));
            let taken = async {
                wait_for_sessions(&upstream, began + 1).await;
                write(app, take, app.app.clock.now().plus_seconds(70)).await;
                drop(gate);
            };
            let refused = tokio::select! {
                reply = &mut first => reply,
                () = async {
                    taken.await;
                    loop {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        app.app.clock.advance_to(app.app.clock.now().plus_seconds(5));
                    }
                } => unreachable!(),
            };
            assert_eq!(refused.failure(), IN_PROGRESS, "{reference}");
            assert_eq!(app.fetch(reference).await["checkout"]["url"], Value::Null, "{reference}");
            app.advance(70).await;
            let begun = app.post("/payment/initialize", sprout_order(app, reference)).await;
            assert!(begun.data()["checkout"]["url"].is_string(), "{}", begun.body);
        }
    }

    async fn a_recollection_of_a_dead_host_is_created_again_when_its_lease_expires(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        drop_during_provider_call(app, "initialize", create_recollection(app, checkout_recollection("r-1"))).await;
        let refused = wait_in_vain(app, create_recollection(app, checkout_recollection("r-1"))).await;
        assert_eq!(refused.failure(), IN_PROGRESS);
        assert_eq!(refused.headers[RETRY_AFTER], "15");
        // Not the same repayment: another channel, another loan.
        create_loan(app, "loan-2", "ada", &[(10, 1_000.0)]).await;
        for change in [json!({ "with_provider": false, "payment_channel": "cash" }), json!({ "loan": "loan-2" })] {
            let other = create_recollection(app, merged(checkout_recollection("r-1"), change.clone())).await;
            assert_eq!(other.failure(), (400, "reference already exists"), "{change}");
        }
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(21));
        assert!(create_recollection(app, checkout_recollection("r-1")).await.data()["checkout"]["url"].is_string());
        app.run_until_idle().await;
    }

    async fn a_recollection_session_that_arrives_after_its_lease_was_lost_is_dropped(app: TestApp) {
        let upstream = sprout(app).await;
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        let gate = upstream.gate.write().await;
        let first = create_recollection(app, checkout_recollection("r-1"));
        let taken = async {
            wait_for_sessions(&upstream, 1).await;
            let take = "UPDATE charges SET fence = fence + 1, lease_until = $1";
            write(app, take, app.app.clock.now().plus_seconds(10)).await;
            drop(gate);
        };
        let (first, ()) = futures::future::join(first, taken).await;
        assert_eq!(first.failure(), IN_PROGRESS);
        let found = app.get("/recollection/fetch/reference/r-1").await.data().clone();
        assert_eq!(found["checkout"]["url"], Value::Null);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(21));
        assert!(create_recollection(app, checkout_recollection("r-1")).await.data()["checkout"]["url"].is_string());
        app.run_until_idle().await;
    }

    async fn a_refund_of_a_dead_host_is_requested_again_a_minute_after_its_request(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
        let refund = || app.operator(Method::POST, &path, Value::Null);
        drop_during_provider_call(app, "refund_list", refund()).await;
        let busy = refund().await;
        assert_eq!(busy.failure(), (409, "another request for this refund is in progress"));
        // The request may still be processed when the lease ends after 20 s.
        assert_eq!(busy.headers[RETRY_AFTER], "60");
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(61));
        assert_eq!(refund().await.data()["status"], "refunded");
        app.advance(3_600).await;
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn a_rejection_that_arrives_after_its_lease_was_lost_releases_no_money(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let balance = app.wallet().await["balance"].clone();
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
        // The provider rejects the refund, because a part was already refunded there.
        let part = json!({ "transaction": "order-1", "amount": 1_000 });
        let refunded = app.client.post(format!("{}/paystack/refund", app.simulators.url()));
        let refunded = refunded.bearer_auth(crate::app::PAYSTACK_KEY).json(&part).send().await;
        assert!(refunded.expect("a response").status().is_success());
        app.simulators.faults().push(Fault::new("refund_list", FaultKind::Slow).delay_ms(700));
        let refund = app.operator(Method::POST, &path, Value::Null);
        let taken = async {
            until(async || app.simulators.faults().list().is_empty()).await;
            let take = "UPDATE charge_refunds SET fence = fence + 1, lease_until = $1";
            write(app, take, app.app.clock.now().plus_seconds(10)).await;
        };
        let (refund, ()) = futures::future::join(refund, taken).await;
        assert_eq!(refund.failure().0, 502);
        // The money stays held: the owner of the lease may have refunded it.
        let status = async || app.operator(Method::GET, &path, Value::Null).await.data()["status"].clone();
        assert_eq!((status().await, app.wallet().await["balance"].clone()), (json!("requested"), json!(0)));
        app.advance(3_600).await;
        assert_eq!((status().await, app.wallet().await["balance"].clone()), (json!("failed"), balance));
    }
}
