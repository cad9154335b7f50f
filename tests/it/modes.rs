//! Test companies use test accounts only, and live companies live ones, at every route and job that
//! calls a plugin.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, extract::State, http::StatusCode};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_app::routes;
use tollhouse_http::Access;
use tollhouse_platform::store::Tx;

use crate::{
    app::{Company, Engine, Reply, TestApp, postgres, reply},
    codes::{EMAIL, PHONE, credit, gateway, merged},
    conformance::monnify::account_order,
    events::production_host,
    identity::{BVN, account},
    lending::{
        OTHER_CARD, SUCCESS_CARD, create_card, create_loan, create_recollection, direct_debit_body,
        saved_card,
    },
    mandates,
    telemetry::scrape,
};

const DAY: i64 = 86_400;
const NO_KEY: (u16, &str) = (400, "payment service key not found");

/// Every route of companies that calls a plugin, or queues a job that does; each is called by
/// [`call_all`].
const CALLS_A_PLUGIN: &[&str] = &[
    "/api/v1/account/banks/{provider}/{currency}",
    "/api/v1/account/resolve",
    "/api/v1/card/create",
    "/api/v1/card/delete/{card}",
    "/api/v1/card/verify/{card}",
    "/api/v1/direct-debit/create",
    "/api/v1/direct-debit/delete/{direct_debit}",
    "/api/v1/kyc/uid/send-verification/{uid_id}",
    "/api/v1/kyc/{country}/{*path}",
    "/api/v1/otp/send",
    "/api/v1/payment/initialize",
    "/api/v1/payment/verify/{reference}",
    "/api/v1/recollection/create",
    "/api/v1/recollection/verify/{reference}",
    "/api/v1/user/phone-verification/send/{user_id}",
    "/api/v1/virtual-account/create",
    "/api/v1/virtual-account/delete/{virtual_account}",
];

/// Every other route of companies.
const CALLS_NO_PLUGIN: &[&str] = &[
    "/api/v1/event/list",
    "/api/v1/event/trigger",
    "/api/v1/card/default/set/{card}",
    "/api/v1/card/fetch/{card}",
    "/api/v1/card/list/{user_id}",
    "/api/v1/direct-debit/fetch/{direct_debit}",
    "/api/v1/direct-debit/list/{user_id}",
    "/api/v1/kyc/identity/list",
    "/api/v1/kyc/uid/list/{user_id}",
    "/api/v1/kyc/uid/verify/{uid_id}",
    "/api/v1/otp/verify",
    "/api/v1/payment/fetch/reference/{reference}",
    "/api/v1/payment/fetch/{id}",
    "/api/v1/payment/list",
    "/api/v1/recollection/fetch/reference/{reference}",
    "/api/v1/recollection/fetch/{recollection}",
    "/api/v1/recollection/list",
    "/api/v1/user/bulk/create",
    "/api/v1/user/create",
    "/api/v1/user/edit/{user_id}",
    "/api/v1/user/email-verification/send/{user_id}",
    "/api/v1/user/email-verification/verify/{user_id}",
    "/api/v1/user/export",
    "/api/v1/user/fetch/{email_or_id}",
    "/api/v1/user/list",
    "/api/v1/user/phone-verification/verify/{user_id}",
    "/api/v1/user/sample-csv",
    "/api/v1/virtual-account/fetch/{virtual_account}",
    "/api/v1/virtual-account/list/{user_id}",
];

/// An upstream that counts requests.
#[derive(Clone)]
struct Upstream {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Upstream {
    async fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let requests = Arc::new(AtomicUsize::new(0));
        let count = async |State(requests): State<Arc<AtomicUsize>>| {
            requests.fetch_add(1, Ordering::SeqCst);
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let router = Router::new().fallback(count).with_state(requests.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        Upstream { url, requests }
    }
}

fn key_of(mode: &str) -> String {
    format!("sk_{mode}_of_the_service")
}

/// The service accounts, with their credentials at the simulators.
fn accounts(app: &TestApp, mode: &str) -> [(&'static str, Value); 4] {
    let base_url = format!("{}/paystack", app.simulators.url());
    let monnify = json!({
        "api_key": format!("MK_TEST_{}MODE", mode.to_uppercase()), "secret_key": key_of(mode),
        "contract_code": "4934121686", "base_url": format!("{}/monnify", app.simulators.url()),
    });
    [
        ("provider_a", json!({ "secret_key": key_of(mode), "base_url": base_url })),
        ("termii", gateway(app, "termii").1),
        ("nigeria", account(app, "nigeria")["credentials"].clone()),
        ("provider_c", monnify),
    ]
}

async fn set(app: &TestApp, provider: &str, mode: &str, credentials: Value) -> Value {
    let body = json!({ "credentials": credentials, "active": true, "mode": mode });
    let path = format!("/providers/{provider}");
    let account = app.operator(Method::PUT, &path, body).await.data().clone();
    assert_eq!(account["mode"], mode, "{account}");
    account
}

/// Sets up the service accounts of a mode at the simulators.
async fn set_up(app: &TestApp, mode: &str) {
    app.install(artifacts::PROVIDER_C).await;
    for (provider, credentials) in accounts(app, mode) {
        let account = set(app, provider, mode, credentials).await;
        if provider == "provider_a" {
            let url = account["notification_url"].as_str().expect("a URL");
            app.simulators.paystack().set_webhook(&key_of(mode), url);
        }
    }
}

/// Sets up the service accounts of a mode at an upstream that counts requests. Returns the account
/// at Paystack.
async fn set_up_elsewhere(app: &TestApp, mode: &str, upstream: &Upstream) -> String {
    let mut paystack = String::new();
    for (provider, mut credentials) in accounts(app, mode) {
        for (name, value) in credentials.as_object_mut().expect("an object") {
            if name.ends_with("url") {
                *value = json!(upstream.url);
            }
        }
        let account = set(app, provider, mode, credentials).await;
        if provider == "provider_a" {
            account["account"].as_str().expect("an id").clone_into(&mut paystack);
        }
    }
    paystack
}

async fn company(app: &TestApp, server: &str) -> Company {
    let event_url = format!("{}/events", app.simulators.url());
    let body = json!({ "name": "Acme Lending", "server": server, "event_url": event_url });
    let made = app.operator(Method::POST, "/companies", body).await.data().clone();
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    app.simulators.set_event_secret(&text("id"), &text("event_secret"));
    Company { id: text("id").into(), key: text("api_key"), event_secret: text("event_secret") }
}

/// Number of calls of all plugins.
async fn calls(app: &TestApp) -> u64 {
    let page = scrape(app).await;
    let series = page.lines().filter(|line| line.starts_with("tollhouse_plugin_calls_total{"));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

fn repay(channel: &str) -> Value {
    let checkout = json!({ "success_url": "https://lender.example/" });
    json!({ "loan": "loan-1", "with_provider": true, "payment_channel": channel, "amount": 5, "checkout": checkout })
}

async fn move_cards_to(app: &TestApp, account: String) {
    let company = app.company.id.clone();
    let moved = async move |tx: &mut Tx| {
        let sql = "UPDATE cards SET account_id = $2
                   WHERE company_id = $1 AND status = 'valid' AND removed_at IS NULL";
        tx.sql(sql).bind(company).bind(account).run().await
    };
    app.app.store.write(moved).await.expect("moved cards");
}

/// Records that exist before the service accounts lose their credentials.
struct Records {
    payment: Value,
    paid: Value,
    card: Value,
    /// The card to delete.
    second_card: Value,
    recollection: Value,
    uid: Value,
    virtual_account: Value,
    mandate: Value,
}

async fn records(app: &TestApp) -> Records {
    credit(app, 10_000, "all").await;
    let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": EMAIL, "phone": PHONE });
    app.post("/user/create", user).await.data();
    create_loan(app, "loan-1", "ada", &[(2, 100.0), (20, 100.0)]).await;
    saved_card(app, "ada", SUCCESS_CARD).await;
    let path = format!("/companies/{}/direct-debits/dd-1", app.company.id);
    let debit = merged(
        direct_debit_body("ada", "AUTH_mandate"),
        json!({ "active": true, "default": true }),
    );
    app.operator(Method::PUT, &path, debit).await.data();
    let second_card = saved_card(app, "ada", OTHER_CARD).await;
    let paid = app.paid_payment("paid").await;
    let before = Records {
        payment: app.initialize("before").await,
        paid,
        card: create_card(app, "ada").await,
        second_card,
        recollection: create_recollection(app, repay("checkout")).await.data().clone(),
        uid: app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": BVN })).await.data().clone(),
        virtual_account: app
            .post("/virtual-account/create", account_order(None))
            .await
            .data()
            .clone(),
        mandate: app.post("/direct-debit/create", mandates::order("ada")).await.data().clone(),
    };
    app.run_until_idle().await;
    before
}

/// Calls each route that calls a plugin, and the refund of operators. Returns the responses.
async fn call_all(app: &TestApp, before: &Records) -> Vec<(&'static str, Reply)> {
    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
    let card = json!({
        "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/" },
    });
    let otp = json!({ "identifier": "login", "channels": ["sms"], "phone": PHONE });
    let image = format!("{}/images/match-{BVN}.jpg", app.simulators.url());
    let refund = format!("/companies/{}/payments/{}/refund", app.company.id, id(&before.paid));
    let recollection = before.recollection["reference"].as_str().expect("a reference");
    let delete = format!("/card/delete/{}", id(&before.second_card));
    let cancel = format!("/direct-debit/delete/{}", id(&before.mandate));
    let close = format!("/virtual-account/delete/{}", id(&before.virtual_account));
    let holder = json!({
        "bank_code": "058", "account_number": "0123456789", "payment_service": "provider_c",
    });
    assert_eq!(before.payment["status"], "pending");
    vec![
        ("initialize", app.post("/payment/initialize", app.order("order-1")).await),
        ("verify", app.post("/payment/verify/before", json!({})).await),
        ("refund", app.operator(Method::POST, &refund, Value::Null).await),
        ("card", app.post("/card/create", card).await),
        ("verify card", app.post(&format!("/card/verify/{}", id(&before.card)), json!({})).await),
        ("delete card", app.request(&app.company, Method::DELETE, &delete, None).await),
        ("by page", create_recollection(app, repay("checkout")).await),
        ("by card", create_recollection(app, repay("card")).await),
        ("by debit", create_recollection(app, repay("direct_debit")).await),
        (
            "verify recollection",
            app.post(&format!("/recollection/verify/{recollection}"), json!({})).await,
        ),
        ("mandate", app.post("/direct-debit/create", mandates::order("ada")).await),
        ("cancel mandate", app.request(&app.company, Method::DELETE, &cancel, None).await),
        ("open account", app.post("/virtual-account/create", account_order(Some("loan-1"))).await),
        ("close account", app.request(&app.company, Method::DELETE, &close, None).await),
        ("banks", app.get("/account/banks/provider_c/NGN").await),
        ("holder", app.post("/account/resolve", holder).await),
        ("otp", app.post("/otp/send", otp).await),
        ("phone", app.get("/user/phone-verification/send/ada").await),
        ("number", app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": BVN })).await),
        (
            "face",
            app.post("/kyc/nigeria/bvn/lookup/with-face", json!({ "bvn": BVN, "image": image }))
                .await,
        ),
        (
            "document",
            app.post("/kyc/nigeria/drivers-license/lookup/image", json!({ "image": image })).await,
        ),
        ("uid", app.get(&format!("/kyc/uid/send-verification/{}", id(&before.uid))).await),
    ]
}

fn expected(what: &str) -> (u16, &'static str) {
    match what {
        // The jobs that call the plugins wait for an account.
        "delete card" => (200, "Card deleted successfully"),
        "cancel mandate" => (200, "Direct debit deleted successfully"),
        "close account" => (200, "Virtual account deleted successfully"),
        // The e-mail is sent.
        "uid" => (200, "Verification token sent successfully"),
        _ => NO_KEY,
    }
}

/// Tests a company of the mode `server` with service accounts of the mode `other` only.
async fn check_with_other_accounts(engine: Engine, server: &str, other: &str) {
    let mut app = TestApp::start(engine).await;
    app.install(gateway(&app, "termii").0).await;
    app.install(artifacts::NIGERIA).await;
    set_up(&app, server).await;
    app.company = company(&app, server).await;
    let before = records(&app).await;

    let upstream = Upstream::start().await;
    let elsewhere = set_up_elsewhere(&app, other, &upstream).await;
    for (provider, _) in accounts(&app, server) {
        set(&app, provider, server, Value::Null).await;
    }
    let called = calls(&app).await;
    for (what, reply) in call_all(&app, &before).await {
        let actual = (reply.status.as_u16(), reply.body["message"].as_str().expect("a message"));
        assert_eq!(actual, expected(what), "{what}");
    }
    // Like a card saved before accounts had modes.
    move_cards_to(&app, elsewhere).await;
    assert_eq!(create_recollection(&app, repay("card")).await.failure(), NO_KEY);
    // The first installment is due.
    app.advance(2 * DAY).await;
    app.advance(120).await;
    let path = "/events?kind=loan.not_collected";
    let not_collected = app.operator(Method::GET, path, Value::Null).await.data().clone();
    assert_eq!(not_collected["events"][0]["data"]["reason"], NO_KEY.1, "{not_collected}");
    assert_eq!(upstream.requests.load(Ordering::SeqCst), 0);
    assert_eq!(calls(&app).await, called);
    let texts = app.simulators.mailbox().list(Some(PHONE));
    assert!(texts.is_empty(), "{texts:?}");

    set_up(&app, server).await;
    app.initialize("after").await;
    assert_eq!(create_recollection(&app, repay("card")).await.failure(), NO_KEY);
    assert_eq!(app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": BVN })).await.status, 200);
    assert_eq!(upstream.requests.load(Ordering::SeqCst), 0);
    app.run_until_idle().await;
    app.finish().await;
}

#[tokio::test]
async fn a_test_company_uses_no_live_account_on_sqlite() {
    check_with_other_accounts(Engine::Sqlite, "test", "live").await;
}

#[tokio::test]
async fn a_test_company_uses_no_live_account_on_postgres() {
    let Some(server) = postgres() else { return };
    check_with_other_accounts(Engine::Postgres(server), "test", "live").await;
}

#[tokio::test]
async fn a_live_company_uses_no_test_account_on_sqlite() {
    check_with_other_accounts(Engine::Sqlite, "live", "test").await;
}

#[tokio::test]
async fn a_live_company_uses_no_test_account_on_postgres() {
    let Some(server) = postgres() else { return };
    check_with_other_accounts(Engine::Postgres(server), "live", "test").await;
}

/// A new route fails this until it is in one of the lists, and in [`call_all`] if it calls a
/// plugin.
#[test]
fn every_company_route_is_classified_by_whether_it_calls_a_plugin() {
    let routes = routes::public_routes();
    let of_companies = routes.iter().filter(|route| matches!(route.access, Access::Company(_)));
    let mut paths: Vec<&str> = of_companies.map(|route| route.path).collect();
    let mut classified = [CALLS_A_PLUGIN, CALLS_NO_PLUGIN].concat();
    paths.sort_unstable();
    classified.sort_unstable();
    assert_eq!(classified, paths);
}

both! {
    async fn a_deactivated_account_and_a_missing_one_cause_different_errors(app: TestApp) {
        app.install(gateway(app, "termii").0).await;
        app.install(artifacts::NIGERIA).await;
        let not_set_up = (503, "text messages are not configured: contact the operator of this service");
        let unavailable = (502, "bvn service is unavailable, please try again later");
        let code = json!({ "identifier": "login", "channels": ["sms"], "phone": PHONE });
        let send = async || app.post("/otp/send", code.clone()).await;
        // The wallet is empty: the account is checked before the balance.
        let look_up = async || app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": BVN })).await;
        assert_eq!((send().await.failure(), look_up().await.failure()), (NO_KEY, NO_KEY));
        set_up(app, "test").await;
        let activate = async |provider: &str, active: bool| {
            let body = json!({ "active": active, "mode": "test" });
            app.operator(Method::PUT, &format!("/providers/{provider}"), body).await.data();
        };
        for provider in ["termii", "nigeria"] {
            activate(provider, false).await;
        }
        assert_eq!((send().await.failure(), look_up().await.failure()), (not_set_up, unavailable));
        // Of two gateways, one has no account and the other is deactivated.
        app.install(gateway(app, "africastalking").0).await;
        assert_eq!(send().await.failure(), not_set_up);
        activate("termii", true).await;
        set(app, "termii", "test", Value::Null).await;
        assert_eq!(send().await.failure(), NO_KEY);
    }

    async fn the_service_has_one_account_per_provider_and_mode(app: TestApp) {
        let path = "/providers/provider_a";
        let list = async || app.operator(Method::GET, "/providers", Value::Null).await.data().clone();
        // In development the default mode is `test`.
        let test = list().await[0].clone();
        assert_eq!((&test["mode"], list().await.as_array().map(Vec::len)), (&json!("test"), Some(1)));
        let [(_, credentials), ..] = accounts(app, "live");
        let live = set(app, "provider_a", "live", credentials.clone()).await;
        assert_ne!(live["account"], test["account"]);
        let listed = list().await;
        let listed: Vec<(&Value, &Value)> = listed.as_array().expect("a list").iter().map(|one| (&one["mode"], &one["account"])).collect();
        assert_eq!(listed, [(&json!("live"), &live["account"]), (&json!("test"), &test["account"])]);
        // A change of one account leaves the other unchanged.
        let off = app.operator(Method::PUT, path, json!({ "active": false, "mode": "live" })).await;
        assert_eq!((&off.data()["active"], &off.data()["account"]), (&json!(false), &live["account"]));
        app.initialize("order-1").await;
        let beta = company(app, "live").await;
        let order = Some(app.order("order-1"));
        let refused = app.request(&beta, Method::POST, "/payment/initialize", order).await;
        assert_eq!(refused.failure(), (400, "provider_a has been deactivated"));
        let wrong = app.operator(Method::PUT, path, json!({ "mode": "sandbox" })).await;
        assert_eq!(wrong.failure(), (400, "the mode field must be one of test, live"));
        let log = app.operator(Method::GET, "/audit", Value::Null).await.data()["docs"].clone();
        let noted = |mode: &str| {
            let entries = log.as_array().expect("a list").iter();
            entries.filter(|entry| entry["action"] == "provider.set" && entry["detail"]["mode"] == mode).count()
        };
        assert_eq!((noted("test"), noted("live")), (1, 2));
    }

    async fn a_companys_own_account_has_the_mode_of_its_server(app: TestApp) {
        let [(_, credentials), ..] = accounts(app, "live");
        let live = company(app, "live").await;
        for (company, mode, other) in [(&app.company, "test", "live"), (&live, "live", "test")] {
            let path = format!("/companies/{}/providers/provider_a", company.id);
            let put = async |body: Value| app.operator(Method::PUT, &path, body).await;
            let refused = put(json!({ "credentials": credentials, "mode": other })).await;
            let message = format!("the mode field must be {mode}, the mode of the company");
            assert_eq!(refused.failure(), (400, &*message));
            let account = put(json!({ "credentials": credentials })).await.data().clone();
            assert_eq!(account["mode"], mode);
            assert_eq!(put(json!({ "mode": mode })).await.data()["account"], account["account"]);
            let listed = app.operator(Method::GET, &format!("/companies/{}/providers", company.id), Value::Null).await;
            assert_eq!(listed.data()[0]["mode"], mode);
            let order = Some(app.order("order-1"));
            let begun = app.request(company, Method::POST, "/payment/initialize", order).await;
            assert_eq!(begun.data()["status"], "pending");
        }
    }

    async fn a_live_company_is_credited_for_payments_on_the_service_account(app: TestApp) {
        app.install(gateway(app, "termii").0).await;
        app.install(artifacts::NIGERIA).await;
        set_up(app, "live").await;
        let beta = company(app, "live").await;
        let order = Some(app.order("order-1"));
        let payment = app.request(&beta, Method::POST, "/payment/initialize", order).await;
        app.complete(payment.data(), "success").await;
        app.run_until_idle().await;
        let fetched = app.request(&beta, Method::GET, "/payment/fetch/reference/order-1", None).await;
        assert_eq!(fetched.data()["status"], "success");
        let wallet = app.operator(Method::GET, &format!("/companies/{}/wallet", beta.id), Value::Null).await;
        assert!(wallet.data()["balance"].as_f64().is_some_and(|balance| balance > 0.0), "{}", wallet.body);
    }

    async fn service_accounts_are_live_by_default_outside_development(app: TestApp) {
        let (_, internal) = production_host(app).await;
        let url = format!("{internal}/internal/v1/providers/provider_a");
        let put = app.client.put(url).bearer_auth(crate::app::OPERATOR_TOKEN);
        let account = reply(put.json(&json!({ "active": true }))).await;
        assert_eq!((&account.data()["mode"], &account.data()["has_credentials"]), (&json!("live"), &json!(false)));
    }
}
