//! Rules of charges that hold for payments, cards and recollections alike.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::store::{self, Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp, reply},
    charges::{by_checkout, pay_lost_page, refunds},
    codes::merged,
    lending::{
        SUCCESS_CARD, charge_instrument, complete_page, create_card, create_loan,
        create_recollection, create_user, direct_debit, saved_card,
    },
    references::open_checkouts,
    telemetry::{metric_value, scrape},
};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Its refunds stay pending.
const NEEDS_ATTENTION_CARD: &str = "4084080000671902";
const VERIFY: &str = "/transaction/verify/";

/// Changes the response to a request with this path.
type Change = Box<dyn Fn(&str, &mut StatusCode, &mut Value) + Send + Sync>;

/// Paystack with changed responses: requests go on to the simulator.
#[derive(Clone)]
struct ChangedPaystack {
    base_url: String,
    client: reqwest::Client,
    change: Arc<Mutex<Option<Change>>>,
}

impl ChangedPaystack {
    /// Starts it and points the service account to it.
    async fn start(app: &TestApp) -> ChangedPaystack {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let base_url = format!("{}/paystack", app.simulators.url());
        let changed =
            ChangedPaystack { base_url, client: app.client.clone(), change: Arc::default() };
        let router = Router::new().fallback(forward).with_state(changed.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        let set = json!({ "credentials": { "secret_key": PAYSTACK_KEY, "base_url": url } });
        app.operator(Method::PUT, "/providers/provider_a", set).await.data();
        changed
    }

    fn change(&self, change: impl Fn(&str, &mut StatusCode, &mut Value) + Send + Sync + 'static) {
        *self.change.lock().unwrap() = Some(Box::new(change));
    }

    /// Changes `data` in the response to a verification.
    fn change_verification(&self, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.change(move |path, status, body| {
            if path.starts_with(VERIFY) && status.is_success() {
                change(&mut body["data"]);
            }
        });
    }

    fn stop(&self) {
        *self.change.lock().unwrap() = None;
    }
}

async fn forward(
    State(paystack): State<ChangedPaystack>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let url = format!("{}{}{query}", paystack.base_url, uri.path());
    let mut request = paystack.client.request(method, url).body(body);
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let Ok(response) = request.send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let mut status = response.status();
    let mut body: Value = response.json().await.unwrap_or_default();
    if let Some(change) = &*paystack.change.lock().unwrap() {
        change(uri.path(), &mut status, &mut body);
    }
    (status, Json(body)).into_response()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Payment,
    Card,
    Recollection,
}

use Kind::{Card, Payment, Recollection};

const KINDS: [Kind; 3] = [Payment, Card, Recollection];

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Requests the page of the only record of its kind, again if there is one.
    async fn open(self, app: &TestApp) -> Reply {
        match self {
            Payment => app.post("/payment/initialize", app.order(&self.name())).await,
            Recollection => {
                let order = by_checkout(&self.name(), json!({ "amount": 100 }));
                create_recollection(app, order).await
            }
            Card => {
                let order = json!({
                    "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://a.example/" },
                });
                let request = app.client.post(format!("{}/api/v1/card/create", app.api));
                let request = request.bearer_auth(&app.company.key);
                reply(request.header("idempotency-key", "card").json(&order)).await
            }
        }
    }

    async fn fetch(self, app: &TestApp) -> Value {
        let name = self.name();
        match self {
            Card => app.get("/card/list/ada").await.data()[0].clone(),
            Payment | Recollection => {
                app.get(&format!("/{name}/fetch/reference/{name}")).await.data().clone()
            }
        }
    }

    /// The reference of its last charge.
    async fn service_ref(self, app: &TestApp) -> String {
        let kind = self.name();
        let read = async move |tx: &mut Tx| -> store::Result<(String,)> {
            tx.sql("SELECT service_ref FROM charges WHERE owner_kind = $1 ORDER BY number DESC LIMIT 1")
                .bind(kind)
                .one()
                .await
        };
        app.app.store.select(read).await.expect("a charge").0
    }

    async fn succeeded(self, app: &TestApp) -> bool {
        let shown = self.fetch(app).await;
        shown["status"] == "success" || shown["valid"] == true
    }

    async fn verify(self, app: &TestApp) -> Reply {
        let name = self.name();
        let subject = match self {
            Card => self.fetch(app).await["id"].as_str().expect("an id").to_owned(),
            Payment | Recollection => name.clone(),
        };
        app.post(&format!("/{name}/verify/{subject}"), json!({})).await
    }

    /// Opens a page whose URL no payer receives. Returns its path.
    async fn lose_page(self, app: &TestApp) -> String {
        let before = open_checkouts(app).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        assert_eq!(self.open(app).await.failure().0, 502, "{self:?}");
        let after = open_checkouts(app).await;
        after.into_iter().find(|path| !before.contains(path)).expect("a page")
    }
}

async fn set_up(app: &TestApp) {
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(60, 1_000.0)]).await;
}

/// Pays a page without a webhook.
async fn pay_silently(app: &TestApp, page: &Value) {
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    complete_page(app, page, "success", SUCCESS_CARD).await;
}

fn skip(app: &TestApp, seconds: i64) {
    app.app.clock.advance_to(app.app.clock.now().plus_seconds(seconds));
}

async fn run(app: &TestApp, sql: &'static str) -> u64 {
    let changed: store::Result<u64> =
        app.app.store.write(async move |tx: &mut Tx| tx.sql(sql).run().await).await;
    changed.expect("a statement of ours")
}

/// Number of open exceptions of a kind.
async fn exceptions(app: &TestApp, kind: &str) -> usize {
    let listed = app.operator(Method::GET, "/exceptions?state=open", Value::Null).await;
    let listed = listed.data()["exceptions"].as_array().expect("a list").clone();
    listed.iter().filter(|exception| exception["kind"] == kind).count()
}

pub fn requests(app: &TestApp, method: &str, path: &str) -> usize {
    let requests = app.simulators.paystack().requests().into_iter();
    requests.filter(|(by, at)| by == method && at.starts_with(path)).count()
}

/// Waits until a request has taken the only scripted fault.
async fn until_taken(app: &TestApp) {
    while !app.simulators.faults().list().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Verifies a card whose charge was partly refunded at the provider, which refuses its refund.
async fn verify_partly_refunded_card(app: &TestApp, user_id: &str) {
    create_user(app, user_id).await;
    let card = create_card(app, user_id).await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
    complete_page(app, &card, "success", SUCCESS_CARD).await;
    let part = json!({ "transaction": card["service_ref"], "amount": 1_000 });
    let refund = app.client.post(format!("{}/paystack/refund", app.simulators.url()));
    let refund = refund.bearer_auth(PAYSTACK_KEY).json(&part).send().await;
    assert_eq!(refund.expect("a response").status(), 200);
    app.simulators.run_until_idle().await;
    app.simulators.faults().clear();
    let path = format!("/card/verify/{}", card["id"].as_str().expect("an id"));
    app.post(&path, json!({})).await.data();
}

async fn card_refunds(app: &TestApp, status: &str) -> usize {
    let path = format!("/card-refunds?status={status}");
    let listed = app.operator(Method::GET, &path, Value::Null).await;
    listed.data()["refunds"].as_array().expect("a list").len()
}

// ---- verification -------------------------------------------------------------------------------

both! {
    async fn an_error_about_one_charge_does_not_stop_the_verification_of_another(app: TestApp) {
        set_up(app).await;
        for kind in KINDS {
            kind.lose_page(app).await;
            let page = kind.open(app).await.data().clone();
            pay_silently(app, &page).await;
            assert!(!kind.succeeded(app).await, "{kind:?}");
            app.simulators.faults().push(Fault::new("verify", FaultKind::Error500));
            let verified = kind.verify(app).await;
            assert_eq!(verified.status, 200, "{kind:?}: {}", verified.body);
            assert!(kind.succeeded(app).await && app.simulators.faults().list().is_empty(), "{kind:?}");
        }
        app.run_until_idle().await;
    }

    async fn a_page_opened_late_is_verified_as_often_as_a_new_one(app: TestApp) {
        set_up(app).await;
        for kind in KINDS {
            app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut));
            assert_eq!(kind.open(app).await.failure().0, 502, "{kind:?}");
            // Between the hourly checks after the first request.
            app.advance(20 * HOUR + 600).await;
            let page = kind.open(app).await.data().clone();
            pay_silently(app, &page).await;
            app.advance(60).await;
            assert!(kind.succeeded(app).await, "{kind:?}: {}", kind.fetch(app).await);
        }
    }

    async fn the_reference_that_was_queried_decides_not_the_reported_one(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        app.initialize("other").await;
        paystack.change_verification(|data| data["reference"] = json!("other"));
        for kind in KINDS {
            let page = kind.open(app).await.data().clone();
            complete_page(app, &page, "success", SUCCESS_CARD).await;
            assert!(kind.succeeded(app).await, "{kind:?}: {}", kind.fetch(app).await);
        }
        assert_eq!(run(app, "UPDATE charges SET counts = counts WHERE service_ref = 'other'").await, 1);
        assert_eq!(app.fetch("other").await["status"], "pending");
        app.run_until_idle().await;
    }

    async fn metadata_that_names_another_record_makes_a_charge_foreign(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        paystack.change_verification(|data| data["metadata"] = json!({ "tollhouse_payment": "another" }));
        for (n, kind) in KINDS.into_iter().enumerate() {
            let page = kind.open(app).await.data().clone();
            complete_page(app, &page, "success", SUCCESS_CARD).await;
            assert!(!kind.succeeded(app).await, "{kind:?}");
            assert_eq!(exceptions(app, "foreign_payment").await, n + 1, "{kind:?}");
        }
        assert_eq!(app.wallet().await["balance"], json!(0));
        paystack.stop();
    }

    async fn without_metadata_a_reference_of_the_host_suffices_and_a_callers_needs_a_session(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        paystack.change_verification(|data| data["metadata"] = Value::Null);
        for kind in KINDS {
            let lost = kind.lose_page(app).await;
            pay_lost_page(app, &lost).await;
            assert_eq!(kind.succeeded(app).await, kind != Payment, "{kind:?}: {}", kind.fetch(app).await);
        }
        assert_eq!(exceptions(app, "foreign_payment").await, 1);
        // With a session, the caller's reference is this payment's.
        let page = app.initialize("with-session").await;
        complete_page(app, &page, "success", SUCCESS_CARD).await;
        assert_eq!(app.fetch("with-session").await["status"], "success");
    }

    async fn the_mismatch_of_an_earlier_page_is_reported(app: TestApp) {
        set_up(app).await;
        for kind in KINDS {
            let lost = kind.lose_page(app).await;
            let first = kind.service_ref(app).await;
            let page = kind.open(app).await.data().clone();
            assert_ne!(kind.service_ref(app).await, first, "{kind:?}");
            assert!(app.simulators.paystack().tamper(&first, 100, "NGN"));
            pay_lost_page(app, &lost).await;
            assert_eq!(kind.verify(app).await.failure(), (400, "amount mismatch"), "{kind:?}");
            // The payer can still pay the page that they have.
            complete_page(app, &page, "success", SUCCESS_CARD).await;
            assert!(kind.succeeded(app).await, "{kind:?}");
        }
        app.run_until_idle().await;
    }
}

// ---- requests -----------------------------------------------------------------------------------

both! {
    async fn a_late_rejection_of_an_invalid_first_page_deletes_nothing(app: TestApp) {
        let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ädä@example.com" });
        app.post("/user/create", user).await.data();
        create_loan(app, "loan-1", "ada", &[(60, 1_000.0)]).await;
        let open = async |kind: Kind| match kind {
            Payment => {
                let order = merged(app.order(&kind.name()), json!({ "email": "ädä@example.com" }));
                app.post("/payment/initialize", order).await
            }
            Card | Recollection => kind.open(app).await,
        };
        for kind in KINDS {
            let faults = app.simulators.faults();
            faults.push(Fault::new("initialize", FaultKind::SlowAfter).delay_ms(500));
            let resumed = async {
                until_taken(app).await;
                let claim = "UPDATE charges SET fence = fence + 1 WHERE lease_until = (SELECT MAX(lease_until) FROM charges)";
                assert_eq!(run(app, claim).await, 1);
            };
            let (refused, ()) = futures::future::join(open(kind), resumed).await;
            assert_eq!(refused.status, 400, "{kind:?}: {}", refused.body);
            assert!(kind.fetch(app).await["id"].is_string(), "{kind:?}");
            skip(app, 21);
            // A later rejection ends no record that a client knows.
            let refused = open(kind).await;
            assert_eq!(refused.status, 400, "{kind:?}: {}", refused.body);
            assert!(kind.fetch(app).await["id"].is_string(), "{kind:?}");
        }
        app.run_until_idle().await;
    }

    async fn a_reference_of_another_record_that_the_provider_returns_is_502(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        app.initialize("other").await;
        for kind in KINDS {
            paystack.change(|path, _, body| {
                if path == "/transaction/initialize" {
                    body["data"]["reference"] = json!("other");
                }
            });
            let refused = kind.open(app).await;
            assert_eq!(refused.failure(), (502, "provider_a returned an unusable response"), "{kind:?}");
            paystack.stop();
            let page = kind.open(app).await.data().clone();
            complete_page(app, &page, "success", SUCCESS_CARD).await;
            assert!(kind.succeeded(app).await, "{kind:?}");
        }
        assert_eq!(app.fetch("other").await["status"], "pending");
        app.run_until_idle().await;
    }

    async fn a_duplicate_reference_of_a_lost_page_leads_to_another_reference(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        for kind in KINDS {
            kind.lose_page(app).await;
            let first = kind.service_ref(app).await;
            // The provider does not show the page yet.
            paystack.change(|path, status, body| {
                if path.starts_with(VERIFY) {
                    *status = StatusCode::NOT_FOUND;
                    *body = json!({ "status": false, "message": "Transaction reference not found.", "type": "api_error", "code": "transaction_not_found" });
                }
            });
            let page = kind.open(app).await.data().clone();
            assert_ne!(kind.service_ref(app).await, first, "{kind:?}");
            paystack.stop();
            complete_page(app, &page, "success", SUCCESS_CARD).await;
            assert!(kind.succeeded(app).await, "{kind:?}");
        }
        app.run_until_idle().await;
    }

    async fn a_debit_without_an_outcome_holds_up_its_loan_for_thirty_days(app: TestApp) {
        set_up(app).await;
        direct_debit(app, "dd-1", "ada").await;
        let debit = |reference: &str| json!({
            "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "amount": 100, "reference": reference,
        });
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        charge_instrument(app, debit("r-1")).await;
        charge_instrument(app, debit("r-2")).await;
        let status = async |reference: &str| {
            app.get(&format!("/recollection/fetch/reference/{reference}")).await.data()["status"].clone()
        };
        app.advance(30 * DAY - HOUR).await;
        assert_eq!((status("r-2").await, exceptions(app, "unverified_charge").await), (json!("pending"), 0));
        app.advance(HOUR).await;
        app.advance(60).await;
        assert_eq!((status("r-2").await, exceptions(app, "unverified_charge").await), (json!("success"), 1));
        assert_eq!(status("r-1").await, "pending");
    }
}

// ---- money and refunds --------------------------------------------------------------------------

both! {
    async fn the_fees_of_a_failure_are_not_stored(app: TestApp) {
        set_up(app).await;
        let paystack = ChangedPaystack::start(app).await;
        paystack.change_verification(|data| {
            assert_eq!(data["status"], "failed");
            data["fees"] = json!(5_000);
        });
        for kind in [Payment, Recollection] {
            let page = kind.open(app).await.data().clone();
            complete_page(app, &page, "failed", SUCCESS_CARD).await;
            app.advance(60).await;
            assert_eq!(kind.fetch(app).await["status"], "failed", "{kind:?}");
        }
        for table in ["UPDATE payments SET message = message WHERE fees_minor <> 0", "UPDATE recollections SET message = message WHERE fees_minor <> 0"] {
            assert_eq!(run(app, table).await, 0, "{table}");
        }
    }

    async fn the_error_of_a_cards_refund_keeps_its_certainty(app: TestApp) {
        create_user(app, "ada").await;
        // Unknown: still requested, and found when it is requested again.
        let card = create_card(app, "ada").await;
        let faults = app.simulators.faults();
        faults.push(Fault::new("notification", FaultKind::Cut).times(9));
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        faults.push(Fault::new("refund", FaultKind::CutAfter));
        Card.verify(app).await.data();
        app.run_until_idle().await;
        assert_eq!((card_refunds(app, "requested").await, card_refunds(app, "failed").await), (1, 0));
        faults.clear();
        app.advance(2 * HOUR).await;
        assert_eq!((card_refunds(app, "done").await, requests(app, "POST", "/refund")), (1, 1));
        // Certain: refused at once, because a part was already refunded at the provider.
        verify_partly_refunded_card(app, "bola").await;
        app.run_until_idle().await;
        assert_eq!((card_refunds(app, "failed").await, card_refunds(app, "requested").await), (1, 0));
        assert_eq!(refunds(app, "?state=refused").await.len(), 1);
    }

    async fn a_late_refusal_of_a_cards_refund_ends_no_newer_request(app: TestApp) {
        verify_partly_refunded_card(app, "ada").await;
        app.simulators.faults().push(Fault::new("refund_list", FaultKind::SlowAfter).delay_ms(500));
        let retaken = async {
            until_taken(app).await;
            assert_eq!(run(app, "UPDATE charge_refunds SET fence = fence + 1").await, 1);
        };
        let ((), ()) = futures::future::join(app.run_until_idle(), retaken).await;
        assert_eq!(refunds(app, "?state=requested").await.len(), 1);
        app.advance(120).await;
        assert_eq!(refunds(app, "?state=refused").await.len(), 1);
    }

    async fn a_refund_pending_for_thirty_days_is_polled_daily(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", NEEDS_ATTENTION_CARD).await;
        let polls = || requests(app, "GET", "/refund/");
        app.advance(2 * HOUR).await;
        // As if it had been accepted 29 days ago.
        run(app, "UPDATE charge_refunds SET created_at = created_at - 29 * CAST(86400000 AS BIGINT)").await;
        app.advance(DAY).await;
        let alarm = async || metric_value(&scrape(app).await, r#"tollhouse_alarms_total{alarm="refund still pending"}"#);
        assert_eq!(alarm().await, Some(1.0));
        let before = polls();
        app.advance(40 * DAY).await;
        let checks = 2; // of the charge, after 7 and 30 days
        assert_eq!((card_refunds(app, "pending").await, polls() - before - checks, alarm().await), (1, 40, Some(1.0)));
    }

    async fn a_webhook_about_a_refunded_card_charge_wakes_the_refund(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        assert_eq!(card_refunds(app, "pending").await, 1);
        // The provider completes it in seconds; it is polled hourly.
        app.advance(60).await;
        assert_eq!(card_refunds(app, "done").await, 1);
    }
}
