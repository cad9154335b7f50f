//! The message queue: delivery, retries, refunds of failed messages, and erasure of content.

use std::time::Duration;
use tollhouse_platform::store::params;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};
use tollhouse_app::{messaging::messages, state::App};
use tollhouse_platform::{background::jobs, crypto::seal::new_master_key, random::Random, store};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{MASTER_KEY, TestApp, config, reply, smtp_flags},
    codes::{
        EMAIL, PHONE, VERIFIED, balance, credit, edit_company, email_request, gateway, latest_code,
        listed_messages, messages, set_prices, sms_request, status_and_message, use_gateways,
        verify,
    },
    master_key::Host,
};

/// Sends a code one second later, so that lists order messages by the time they were sent.
async fn sent(app: &TestApp, body: Value) {
    app.advance(1).await;
    crate::codes::send_ok(app, body).await;
}

fn fail(app: &TestApp, operation: &str, kind: FaultKind, times: u32) {
    app.simulators.faults().push(Fault::new(operation, kind).times(times));
}

/// State, attempts and reason of the latest message, and whether it still has content.
async fn latest(app: &TestApp) -> (String, i64, String, bool) {
    let message = listed_messages(app).await.remove(0);
    let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let id = text("id");
    let company = app.company.id.clone();
    let (content,): (Option<String>,) = app
        .app
        .store
        .read(async |tx| {
            tx.sql("SELECT content FROM messages WHERE company_id = $1 AND id = $2")
                .params(params![&company, &id])
                .one()
                .await
        })
        .await
        .expect("the message");
    let attempts = message["attempts"].as_i64().expect("a number");
    (text("state"), attempts, text("reason"), content.is_some())
}

/// State, attempts and reason of the latest message, whose content must be erased.
async fn latest_outcome(app: &TestApp) -> (String, i64, String) {
    let (state, attempts, reason, has_content) = latest(app).await;
    assert!(!has_content, "the content of an ended message is still stored");
    (state, attempts, reason)
}

fn outcome(state: &str, attempts: i64, reason: &str) -> (String, i64, String) {
    (state.to_owned(), attempts, reason.to_owned())
}

both! {
    async fn a_delivered_message_is_erased_and_operators_see_its_delivery(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        app.post("/otp/send", sms_request(json!({}))).await;
        assert_eq!(latest(app).await, ("pending".into(), 0, String::new(), true));
        app.run_until_idle().await;
        assert_eq!(latest_outcome(app).await, outcome("delivered", 1, ""));
        let message = listed_messages(app).await.remove(0);
        for (field, value) in [
            ("channel", json!("sms")),
            ("purpose", json!("otp")),
            ("to", json!("+234***67")),
            ("via", json!("termii")),
            ("created_at", message["ended_at"].clone()),
        ] {
            assert_eq!(message[field], value, "{field}");
        }
        assert!(message["via_id"].as_str().is_some_and(|id| !id.is_empty()), "{message}");
        assert!(!message.to_string().contains(PHONE));
    }

    async fn operators_list_messages_by_state_and_channel(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        sent(app, email_request(json!({}))).await;
        sent(app, sms_request(json!({ "identifier": "other" }))).await;
        fail(app, "smtp", FaultKind::Decline, 1);
        sent(app, email_request(json!({ "identifier": "third" }))).await;
        let list = async |query: &str| {
            let path = format!("/companies/{}/messages{query}", app.company.id);
            app.operator(Method::GET, &path, Value::Null).await
        };
        for (query, total) in [
            ("", 3),
            ("?channel=email", 2),
            ("?state=delivered", 2),
            ("?state=failed", 1),
            ("?state=failed&channel=sms", 0),
            ("?limit=1&page=2", 3),
        ] {
            assert_eq!(list(query).await.data()["total"], total, "{query}");
        }
        assert_eq!(list("?state=lost").await.failure().0, 400);
    }

    async fn a_message_is_retried_after_a_failure_at_no_further_cost(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 100, "first").await;
        for (operation, to, body) in
            [("smtp", EMAIL, email_request(json!({}))), ("termii", PHONE, sms_request(json!({})))]
        {
            for (before, kind) in [FaultKind::Error500, FaultKind::Cut].into_iter().enumerate() {
                fail(app, operation, kind, 2);
                sent(app, body.clone()).await;
                let waiting = latest(app).await;
                assert_eq!((&*waiting.0, waiting.1, waiting.3), ("pending", 1, true));
                assert_eq!(messages(app, to).len(), before, "{operation} {kind:?}");
                app.advance(2 + 5).await;
                let (state, attempts, _) = latest_outcome(app).await;
                assert_eq!((&*state, attempts), ("delivered", 3), "{operation} {kind:?}");
                assert_eq!(status_and_message(&verify(app, &latest_code(app, to, 6)).await), VERIFIED);
            }
        }
        assert_eq!(balance(app).await, 100.0 - 2.0 * 2.5 - 2.0 * 4.0);
    }

    async fn a_rejected_message_is_refunded_immediately(app: TestApp) {
        use_gateways(app, &["termii", "africastalking", "twilio"]).await;
        set_prices(app).await;
        credit(app, 100, "first").await;
        fail(app, "smtp", FaultKind::Decline, 1);
        sent(app, email_request(json!({}))).await;
        let (state, attempts, reason) = latest_outcome(app).await;
        assert_eq!((&*state, attempts), ("failed", 1));
        assert!(reason.starts_with("smtp: "), "{reason}");
        assert_eq!(balance(app).await, 100);
        // Africa's Talking responds 201 even if the recipient's network rejects the message.
        for name in ["termii", "africastalking", "twilio"] {
            edit_company(app, &app.company, json!({ "sms_gateway": name })).await.data();
            fail(app, name, FaultKind::Decline, 1);
            sent(app, sms_request(json!({}))).await;
            let (state, attempts, reason) = latest_outcome(app).await;
            assert_eq!((&*state, attempts), ("failed", 1), "{name}: {reason}");
            assert!(reason.starts_with(name), "{reason}");
            assert_eq!(balance(app).await, 100);
        }
        assert!(app.simulators.mailbox().list(None).is_empty());
    }

    async fn an_expired_message_is_given_up_and_refunded(app: TestApp) {
        set_prices(app).await;
        credit(app, 100, "first").await;
        fail(app, "smtp", FaultKind::Error500, 50);
        sent(app, email_request(json!({ "exp": 1 }))).await;
        app.advance(59).await;
        assert_eq!(latest_outcome(app).await.0, "failed");
        assert_eq!(balance(app).await, 100);
        app.advance(600).await;
        assert_eq!(listed_messages(app).await[0]["attempts"], 6);
        app.simulators.faults().clear();
        // A host that resumes after the expiry does not send the message.
        app.post("/otp/send", email_request(json!({ "exp": 1 }))).await;
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(60));
        app.run_until_idle().await;
        assert_eq!(latest_outcome(app).await, outcome("failed", 0, "expired"));
        assert_eq!(balance(app).await, 100);
        assert!(messages(app, EMAIL).is_empty());
    }

    async fn a_new_code_supersedes_a_queued_message(app: TestApp) {
        set_prices(app).await;
        credit(app, 100, "first").await;
        fail(app, "smtp", FaultKind::Error500, 1);
        sent(app, email_request(json!({}))).await;
        assert_eq!(balance(app).await, 97.5);
        sent(app, email_request(json!({}))).await;
        app.advance(60).await;
        assert_eq!(messages(app, EMAIL).len(), 1);
        assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), VERIFIED);
        assert_eq!(balance(app).await, 97.5);
        let states: Vec<Value> = listed_messages(app).await.iter().map(|m| m["state"].clone()).collect();
        assert_eq!(states, ["delivered", "failed"]);
        assert_eq!(listed_messages(app).await[1]["reason"], "superseded");
    }

    async fn a_new_code_supersedes_a_message_queued_under_a_former_master_key(app: TestApp) {
        fail(app, "smtp", FaultKind::Error500, 1);
        sent(app, email_request(json!({}))).await;
        let keys = format!("{}\n{MASTER_KEY}\n", new_master_key(&Random::system()));
        let flags = smtp_flags(&app.simulators);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let host = Host::start_with(app, &keys, app.app.clock.clone(), &flags).await;
        let request = app.client.post(format!("{}/api/v1/otp/send", host.api));
        reply(request.bearer_auth(&app.company.key).json(&email_request(json!({})))).await.data();
        host.run_due().await;
        let reasons: Vec<Value> = listed_messages(app).await.iter().map(|m| m["reason"].clone()).collect();
        assert!(reasons.contains(&json!("superseded")), "{reasons:?}");
        app.advance(60).await;
        assert_eq!(messages(app, EMAIL).len(), 1);
    }

    async fn hanging_email_does_not_delay_sms(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = format!("--smtp-port={}", silent.local_addr().expect("bound").port());
        let flags = ["--smtp-host=127.0.0.1", &port, "--smtp-security=none", "--email-from=no-reply@lender.example"];
        let host = App::open(&config(&app.database, &flags), app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("a host that starts");
        // More than a host delivers at a time.
        for n in 0..70 {
            let body = email_request(json!({ "identifier": format!("{n}"), "email": format!("{n}@example.com") }));
            app.post("/otp/send", body).await.data();
        }
        jobs::start_due(&host).await.expect("jobs that start");
        app.post("/otp/send", sms_request(json!({}))).await.data();
        let delivered = async {
            while messages(app, PHONE).is_empty() {
                jobs::start_due(&host).await.expect("jobs that start");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), delivered).await.expect("a text message that is delivered");
        drop(silent);
        app.advance(600).await;
    }

    async fn ended_messages_are_deleted_after_ninety_days(app: TestApp) {
        const DAY: i64 = 24 * 3600;
        fail(app, "smtp", FaultKind::Error500, 100);
        sent(app, email_request(json!({ "exp": 60 }))).await;
        app.simulators.faults().clear();
        sent(app, email_request(json!({ "identifier": "other" }))).await;
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(90 * DAY));
        let sweep = async || messages::sweep(app.app.clone()).await.expect("a sweep");
        assert_eq!(sweep().await, 0);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(1));
        assert_eq!(sweep().await, 1);
        let states: Vec<Value> = listed_messages(app).await.iter().map(|m| m["state"].clone()).collect();
        assert_eq!(states, ["pending"], "queued messages are kept");
        app.run_until_idle().await;
    }

    async fn a_message_in_flight_when_a_new_code_is_sent_is_charged(app: TestApp) {
        set_prices(app).await;
        credit(app, 100, "first").await;
        app.post("/otp/send", email_request(json!({}))).await;
        let slow = Fault::new("smtp", FaultKind::SlowAfter).delay_ms(500);
        app.simulators.faults().push(slow);
        let again = async {
            while messages(app, EMAIL).is_empty() {
                tokio::task::yield_now().await;
            }
            app.post("/otp/send", email_request(json!({}))).await
        };
        let (run, again) = tokio::join!(jobs::run_due(&app.app), again);
        assert_eq!((run.is_ok(), again.status.as_u16()), (true, 200));
        app.run_until_idle().await;
        let states: Vec<Value> = listed_messages(app).await.iter().map(|m| m["state"].clone()).collect();
        assert_eq!(states, ["delivered", "delivered"]);
        assert_eq!((messages(app, EMAIL).len(), balance(app).await), (2, json!(95)));
    }

    async fn a_failing_gateway_is_skipped(app: TestApp) {
        use_gateways(app, &["termii", "africastalking", "twilio"]).await;
        let via = async || listed_messages(app).await[0]["via"].clone();
        let next = |n: usize| sms_request(json!({ "identifier": format!("login-{n}") }));
        sent(app, next(0)).await;
        assert_eq!(via().await, "termii");
        edit_company(app, &app.company, json!({ "sms_gateway": "twilio" })).await.data();
        sent(app, next(1)).await;
        assert_eq!(via().await, "twilio");
        // After a failure, the next gateway is tried in the same attempt.
        for (n, kind) in [FaultKind::Error500, FaultKind::Cut, FaultKind::Malformed].into_iter().enumerate() {
            app.advance(60).await;
            fail(app, "twilio", kind, 1);
            sent(app, next(2 + n)).await;
            assert_eq!((via().await, &listed_messages(app).await[0]["attempts"]), (json!("termii"), &json!(1)), "{kind:?}");
        }
        // During its cooldown the failed gateway is tried last.
        sent(app, next(5)).await;
        assert_eq!(via().await, "termii");
        app.advance(30).await;
        sent(app, next(6)).await;
        assert_eq!(via().await, "twilio");
        // A deactivated gateway is not tried at all.
        let off = json!({ "active": false });
        app.operator(Method::PUT, "/providers/twilio", off).await.data();
        sent(app, next(7)).await;
        assert_eq!(via().await, "termii");
    }

    async fn a_companys_own_gateway_account_takes_precedence(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        let (_, mut credentials) = gateway(app, "termii");
        credentials["sender"] = "OwnName".into();
        let path = format!("/companies/{}/providers/termii", app.company.id);
        app.operator(Method::PUT, &path, json!({ "credentials": credentials })).await.data();
        sent(app, sms_request(json!({}))).await;
        assert_eq!(messages(app, PHONE)[0].from, "OwnName");
        edit_company(app, &app.company, json!({ "sms_sender": "Acme2" })).await.data();
        sent(app, sms_request(json!({}))).await;
        assert_eq!(messages(app, PHONE)[0].from, "Acme2");
    }

    async fn only_an_installed_gateway_can_be_chosen(app: TestApp) {
        for name in ["termii", "provider_a", "nobody"] {
            let refused = edit_company(app, &app.company, json!({ "sms_gateway": name })).await;
            let message = "the sms_gateway field must be an installed SMS gateway";
            assert_eq!(refused.failure(), (400, message), "{name}");
        }
        use_gateways(app, &["termii"]).await;
        edit_company(app, &app.company, json!({ "sms_gateway": "termii" })).await.data();
        let refused = edit_company(app, &app.company, json!({ "payment_service": "termii" })).await;
        assert_eq!(refused.failure().0, 400);
    }

    async fn two_hosts_share_the_queue_and_send_nothing_twice(app: TestApp) {
        let smtp = smtp_flags(&app.simulators);
        let config = config(&app.database, &smtp.each_ref().map(String::as_str));
        let second = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let second = second.expect("another host");
        for n in 0..40 {
            let email = format!("to{n}@example.com");
            let body = email_request(json!({ "identifier": n.to_string(), "email": email }));
            assert_eq!(app.post("/otp/send", body).await.status, 200);
        }
        let runs = join_all([jobs::run_due(&app.app), jobs::run_due(&second)]).await;
        let runs: usize = runs.into_iter().map(|runs| runs.expect("jobs that run")).sum();
        assert_eq!(runs, 40);
        for n in 0..40 {
            assert_eq!(messages(app, &format!("to{n}@example.com")).len(), 1, "{n}");
        }
        app.run_until_idle().await;
    }

    async fn a_host_that_dies_loses_no_message(app: TestApp) {
        assert_eq!(app.post("/otp/send", email_request(json!({}))).await.status, 200);
        // The dead host had claimed the message and recorded no outcome.
        let lease = "UPDATE jobs SET lease = 'of a host that died', run_at = run_at + 120000
                     WHERE kind = 'message.email'";
        let dead: store::Result<u64> =
            app.app.store.write(async move |tx| tx.sql(lease).run().await).await;
        assert_eq!(dead.expect("a statement"), 1);
        app.advance(119).await;
        assert!(messages(app, EMAIL).is_empty());
        app.advance(1).await;
        assert_eq!(status_and_message(&verify(app, &latest_code(app, EMAIL, 6)).await), VERIFIED);
    }
}
