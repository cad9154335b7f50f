//! Provider accounts that operators set up, and the audit log of their actions.

mod debts;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::routes::internal_routes;
use tollhouse_http::Access;

use self::debts::{dispute_actions, lending_actions, reconciliation_actions};
use crate::{
    app::{OPERATOR_TOKEN, PAYSTACK_KEY, Reply, TestApp},
    disputes::open_dispute,
    event_endpoints,
    exceptions::insert_exception,
    lending::{SUCCESS_CARD, create_user, fail_card_refund, saved_card},
    plugins::try_install,
    portal, principals,
    reconciliation::insert_difference,
    sprout::repack,
};

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect(field)
}

/// A path of the harness's own company.
fn own(app: &TestApp, path: &str) -> String {
    format!("/companies/{}{path}", app.company.id)
}

async fn fetch(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data().clone()
}

/// Sets up the company's own account.
async fn set(app: &TestApp, body: Value) -> Reply {
    app.operator(Method::PUT, &own(app, "/providers/provider_a"), body).await
}

fn credentials(app: &TestApp, key: &str) -> Value {
    json!({ "secret_key": key, "base_url": format!("{}/paystack", app.simulators.url()) })
}

/// Initializes a payment. A rejected one leaves no record.
async fn try_to_pay(app: &TestApp, reference: &str) -> Reply {
    app.post("/payment/initialize", app.order(reference)).await
}

both! {
    async fn credentials_are_stored_and_never_returned(app: TestApp) {
        let secret = "sk_test_nobody_reads_this";
        let response = set(app, json!({ "credentials": credentials(app, secret), "active": true })).await;
        let account = text(response.data(), "account");
        assert!(account.len() >= 40, "{account} can be guessed");
        assert_eq!(response.data(), &json!({
            "provider": "provider_a", "account": account, "mode": "test", "active": true, "has_credentials": true, "reconciled": true,
            "notification_url": format!("{}/api/v1/notifications/provider_a/{account}", app.api),
            "created_at": app.app.clock.now(), "updated_at": app.app.clock.now(),
        }));
        assert_eq!(fetch(app, &own(app, "/providers")).await, json!([response.data()]));
        let mut seen = response.body.to_string();
        for path in [&*own(app, ""), &own(app, "/providers"), &own(app, "/audit"), "/providers", "/audit", "/companies"] {
            seen += &fetch(app, path).await.to_string();
        }
        for hidden in [secret, PAYSTACK_KEY] {
            assert!(!seen.contains(&hidden["sk_test_".len()..]), "{seen}");
        }

        // Omitted fields stay. So does the account's id, which is in the URL of the provider's
        // webhooks.
        for (body, active, has) in [
            (json!({ "active": false }), false, true),
            (json!({}), false, true),
            (json!({ "credentials": credentials(app, "sk_test_other") }), false, true),
            (json!({ "credentials": null }), false, false),
            (json!({ "active": true }), true, false),
        ] {
            let changed = set(app, body.clone()).await.data().clone();
            assert_eq!((&changed["active"], &changed["has_credentials"]), (&json!(active), &json!(has)), "{body}");
            assert_eq!(changed["account"], account);
        }
    }

    async fn invalid_credentials_are_rejected_with_the_wrong_field(app: TestApp) {
        let with = |name: &str, value: Value| {
            let mut all = credentials(app, "sk_test_own");
            all[name] = value;
            json!({ "credentials": all })
        };
        for (body, message) in [
            (json!({ "credentials": {} }), "the credentials.secret_key field is required"),
            (with("secret_key", json!("")), "the credentials.secret_key field is required"),
            (with("secret_key", Value::Null), "the credentials.secret_key field is required"),
            (with("secret_key", json!(5)), "the credentials.secret_key field must be a string"),
            (with("secret", json!("x")), "the credentials.secret field must be one that provider_a uses"),
            (json!({ "credentials": { "secret_key": "", "word": "x", "key": "y", "base_url": "http://x.example" } }), "the credentials.secret_key field is required; the credentials.key and credentials.word fields must be ones that provider_a uses; the credentials.base_url field must be an absolute https URL"),
            (with("base_url", json!("api.paystack.co")), "the credentials.base_url field must be an absolute https URL"),
            (with("base_url", json!("http://api.paystack.co")), "the credentials.base_url field must be an absolute https URL"),
            (with("base_url", json!("file:///etc/passwd")), "the credentials.base_url field must be an absolute https URL"),
            (with("base_url", json!("https://10.0.0.1/paystack")), "the credentials.base_url field must be a URL of a public address"),
            (with("base_url", json!("https://ada:word@api.paystack.co")), "the credentials.base_url field must be a URL without user name and password"),
            (with("base_url", json!("https://api.paystack.co/?key=1")), "the credentials.base_url field must be a URL without query and fragment"),
            (json!({ "credentials": "sk_test_own" }), "the credentials field must be an object"),
            (json!({ "credentials": ["sk_test_own"] }), "the credentials field must be an object"),
            (json!({ "credentials": credentials(app, "sk_test_own"), "active": "yes" }), "the active field must be a boolean"),
        ] {
            assert_eq!(set(app, body.clone()).await.failure(), (400, message), "{body}");
        }
        let good = json!({ "credentials": credentials(app, "sk_test_own") });
        for (path, message) in [
            (own(app, "/providers/provider_x"), "provider not found"),
            ("/providers/provider_x".to_owned(), "provider not found"),
            ("/companies/000000000000000000000000/providers/provider_a".to_owned(), "company not found"),
        ] {
            assert_eq!(app.operator(Method::PUT, &path, good.clone()).await.failure(), (404, message));
        }
        assert_eq!(fetch(app, &own(app, "/providers")).await, json!([]));
        assert_eq!(fetch(app, "/providers").await.as_array().map(Vec::len), Some(1));
    }

    async fn a_provider_is_deactivated_for_one_company_or_for_all(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let (off, on) = (json!({ "active": false }), json!({ "active": true }));
        let refused = (400, "provider_a has been deactivated");
        set(app, off.clone()).await.data();
        assert_eq!(try_to_pay(app, "order-1").await.failure(), refused);
        let order = Some(app.order("order-1"));
        app.request(&other, Method::POST, "/payment/initialize", order).await.data();
        set(app, on.clone()).await.data();
        try_to_pay(app, "order-1").await.data();

        app.operator(Method::PUT, "/providers/provider_a", off).await.data();
        assert_eq!(try_to_pay(app, "order-2").await.failure(), refused);
        app.operator(Method::PUT, "/providers/provider_a", on).await.data();
        let none = json!({ "credentials": null });
        app.operator(Method::PUT, "/providers/provider_a", none).await.data();
        assert_eq!(try_to_pay(app, "order-2").await.failure(), (400, "payment service key not found"));
        assert_eq!(app.get("/payment/list").await.data()["total"], 1);
        assert_eq!(app.wallet().await["pending"], json!(2500.5));

        set(app, json!({ "credentials": credentials(app, "sk_test_own") })).await.data();
        try_to_pay(app, "order-2").await.data(); // its own account does not need the service account
    }

    async fn concurrent_setups_result_in_one_working_account(app: TestApp) {
        let body = json!({ "credentials": credentials(app, "sk_test_own") });
        for round in 0..5 {
            let company = app.new_company("Beta Lending").await;
            let path = format!("/companies/{}/providers/provider_a", company.id);
            let set = || app.operator(Method::PUT, &path, body.clone());
            let responses = futures::future::join_all((0..8).map(|_| set())).await;
            let accounts: Vec<&Value> = responses.iter().map(|response| &response.data()["account"]).collect();
            assert!(accounts.iter().all(|account| *account == accounts[0]), "{accounts:?}");
            // Its credentials open.
            let order = Some(app.order(&format!("order-{round}")));
            app.request(&company, Method::POST, "/payment/initialize", order).await.data();
        }
    }
}

// ---- the audit log ------------------------------------------------------------------------------

/// The audit log that records an action.
#[derive(Clone, Copy, PartialEq)]
enum Log {
    Company,
    Service,
    /// The log of the company that the action creates.
    New,
}

type Action = (&'static str, &'static str, Value, &'static str, Log);

/// Every route by which operators change a company: method, path, body, recorded action and its
/// log.
fn actions(app: &TestApp) -> Vec<Action> {
    let money = |key: &str| json!({ "amount": 5, "key": key });
    let policy = json!({ "route": { "providers": [{ "provider": "provider_a" }] } });
    let account =
        json!({ "credentials": credentials(app, "sk_test_hidden_from_logs"), "active": true });
    let company = json!({ "name": "Beta Lending", "server": "live" });
    let price = json!({ "otp.email": 2.5, "otp.sms": null });
    vec![
        ("post", "/companies", company, "company.create", Log::New),
        (
            "patch",
            "/companies/{company}",
            json!({ "name": "Acme Credit" }),
            "company.edit",
            Log::Company,
        ),
        (
            "post",
            "/companies/{company}/event-secret/rotate",
            json!({}),
            "company.event_secret.rotate",
            Log::Company,
        ),
        ("post", "/companies/{company}/keys", json!({ "label": "x" }), "key.create", Log::Company),
        ("post", "/companies/{company}/keys/{key}/rotate", json!({}), "key.rotate", Log::Company),
        ("delete", "/companies/{company}/keys/{key}", Value::Null, "key.revoke", Log::Company),
        (
            "put",
            "/companies/{company}/subscription",
            json!({ "active": true }),
            "company.subscription",
            Log::Company,
        ),
        ("put", "/companies/{company}/providers/{provider}", account, "provider.set", Log::Company),
        ("put", "/companies/{company}/routing", policy, "company.routing", Log::Company),
        ("delete", "/companies/{company}/routing", Value::Null, "company.routing", Log::Company),
        ("patch", "/companies/{company}/prices", price, "price.set", Log::Company),
        (
            "post",
            "/companies/{company}/wallet/credit",
            money("in"),
            "operator.credit",
            Log::Company,
        ),
        ("post", "/companies/{company}/wallet/debit", money("out"), "operator.debit", Log::Company),
        (
            "post",
            "/companies/{company}/events/{event}/redeliver",
            json!({}),
            "event.redeliver",
            Log::Company,
        ),
        (
            "post",
            "/companies/{company}/payments/{payment}/verify",
            json!({}),
            "payment.verify",
            Log::Company,
        ),
        (
            "post",
            "/companies/{company}/payments/{payment}/refund",
            json!({}),
            "payment.refund",
            Log::Company,
        ),
    ]
}

/// Like [`actions`], for members.
fn member_actions() -> Vec<Action> {
    let log = Log::Company;
    let (all, one) = ("/companies/{company}/members", "/companies/{company}/members/{member}");
    let invite = "/companies/{company}/members/{member}/invite";
    let new = json!({ "email": "eve@acme.example", "role": "company-developer" });
    vec![
        ("post", all, new, "member.create", log),
        ("patch", one, json!({ "role": "company-finance" }), "member.edit", log),
        ("post", invite, json!({}), "member.invite", log),
    ]
}

/// Like [`actions`], for events and their endpoints.
fn event_endpoint_actions() -> Vec<Action> {
    let (log, new) = (Log::Company, json!({ "url": "https://b.example/", "active": false }));
    let trigger = "/companies/{company}/events/trigger";
    let (one, rotate) = (
        "/companies/{company}/event-endpoints/{endpoint}",
        "/companies/{company}/event-endpoints/{endpoint}/secret/rotate",
    );
    vec![
        ("post", "/companies/{company}/event-endpoints", new, "event_endpoint.create", log),
        ("patch", one, json!({ "description": "books" }), "event_endpoint.edit", log),
        ("post", rotate, json!({}), "event_endpoint.secret.rotate", log),
        ("delete", one, Value::Null, "event_endpoint.delete", log),
        ("post", trigger, json!({ "type": "payment.failed" }), "event.trigger", log),
    ]
}

/// Like [`actions`], for the service, and for settings of both the service and a company.
fn service_actions(app: &TestApp) -> Vec<Action> {
    let account = json!({ "credentials": credentials(app, PAYSTACK_KEY) });
    let (price, switch) =
        (json!({ "otp.email": 2.5, "otp.sms": null }), json!({ "active": false }));
    vec![
        ("put", "/providers/{provider}", account, "provider.set", Log::Service),
        ("post", "/providers/{provider}/test", json!({}), "provider.test", Log::Service),
        (
            "post",
            "/companies/{company}/providers/{provider}/test",
            json!({}),
            "provider.test",
            Log::Company,
        ),
        ("patch", "/prices", price, "price.set", Log::Service),
        ("put", "/identities/{country}/{identity}", switch, "identity.switch", Log::Service),
        (
            "put",
            "/companies/{company}/identities/{country}/{identity}",
            json!({ "active": true }),
            "identity.switch",
            Log::Company,
        ),
        ("post", "/jobs/retry", json!({}), "job.retry", Log::Service),
        ("post", "/master-key/rotate", Value::Null, "master_key.rotate", Log::Service),
        (
            "put",
            "/publishers/{publisher}",
            json!({ "keys": [PUBLIC_KEY] }),
            "publisher.trust",
            Log::Service,
        ),
        ("delete", "/publishers/{publisher}", Value::Null, "publisher.distrust", Log::Service),
    ]
}

/// Like [`actions`], for operators and roles.
fn operator_actions() -> Vec<Action> {
    let log = Log::Service;
    let (role, none) = (json!({ "permissions": ["wallet.read"] }), Value::Null);
    let new = json!({ "name": "ada", "roles": ["support-read"] });
    let view = json!({ "filters": { "state": "open" } });
    let edit = json!({ "name": "eve", "email": "eve@lender.example" });
    vec![
        ("post", "/operators", new, "operator.create", log),
        ("patch", "/operators/{operator}", edit, "operator.edit", log),
        ("put", "/me/views/{list}/{view}", view, "view.save", log),
        ("delete", "/me/views/{list}/{view}", Value::Null, "view.delete", log),
        ("post", "/operators/{operator}/tokens", json!({}), "operator.token.create", log),
        ("delete", "/operators/{operator}/tokens/{token}", none, "operator.token.revoke", log),
        ("post", "/operators/{operator}/invite", json!({}), "operator.invite", log),
        ("put", "/roles/{role}", role, "role.put", log),
        ("delete", "/roles/{role}", Value::Null, "role.delete", log),
    ]
}

/// Like [`actions`], for a plugin. `digest` is another version of it, which receives no calls.
fn plugin_actions(digest: &str) -> Vec<Action> {
    let log = Log::Service;
    let canary = json!({ "digest": digest, "percent": 1 });
    vec![
        ("post", "/plugins", Value::Null, "plugin.install", log),
        ("post", "/plugins/{plugin}/canary", canary, "plugin.canary", log),
        ("post", "/plugins/{plugin}/rollback", json!({}), "plugin.rollback", log),
        ("post", "/plugins/{plugin}/deactivate", json!({}), "plugin.deactivate", log),
        ("post", "/plugins/{plugin}/activate", json!({}), "plugin.activate", log),
        ("delete", "/plugins/{plugin}/{digest}", Value::Null, "plugin.uninstall", log),
    ]
}

/// The key of a plugin author: RFC 8032, 7.1, test 1.
const PUBLIC_KEY: &str = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// Routes without a lasting effect outside tests and development.
const NOT_RECORDED: &[(&str, &str)] = &[
    ("post", "/clock/advance"),
    ("post", "/plugins/examine"),
    ("post", "/companies/{company}/collection-policy/simulate"),
];

/// Routes that need a second operator or a session: `approvals.rs` and `sign_in.rs` check their
/// entries.
const RECORDED_ELSEWHERE: &[(&str, &str)] = &[
    ("post", "/approvals/{approval}/approve"),
    ("post", "/approvals/{approval}/reject"),
    ("post", "/sign-out"),
];

/// The entries of a log, newest first.
async fn log_entries(app: &TestApp, path: &str) -> Vec<Value> {
    fetch(app, path).await["docs"].as_array().expect("a list").clone()
}

/// Number of entries in the logs of the harness's company and of the service.
async fn count_entries(app: &TestApp) -> usize {
    log_entries(app, &own(app, "/audit")).await.len() + log_entries(app, "/audit").await.len()
}

both! {
    async fn every_operator_action_is_logged_once_without_secrets(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let key = app.operator(Method::POST, &own(app, "/keys"), json!({})).await.data().clone();
        let event = fetch(app, &own(app, "/events")).await["docs"][0].clone();
        let endpoint = event_endpoints::create(app, &app.company, json!({ "active": false })).await;
        app.install(artifacts::NIGERIA).await;
        create_user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let refund = fail_card_refund(app, &app.company.id, &card["id"]).await;
        let exception = insert_exception(app, &app.company.id).await;
        let [difference, account] = insert_difference(app).await;
        let dispute = open_dispute(app, &app.company.id, &payment).await;
        let clerk = principals::create(app, "clerk", &["support-read"]).await;
        let next = repack(artifacts::NIGERIA, |manifest| manifest["version"] = json!("9.0.0"));
        let next = text(&try_install(app, next, "grant=true&activate=false").await.data().clone(), "digest").to_owned();
        let member = portal::invite(app, &app.company, "ben@acme.example", "company-support").await;
        let rows = [dispute_actions(), actions(app), member_actions(), event_endpoint_actions(), lending_actions(), reconciliation_actions(), service_actions(app), plugin_actions(&next), operator_actions()].concat();
        for route in internal_routes().iter().filter(|route| matches!(route.access, Access::Operator(_)) && route.method != "get") {
            let path = route.path.strip_prefix("/internal/v1").expect("the prefix");
            let row = rows.iter().filter(|row| (row.0, row.1) == (route.method, path)).count();
            let excepted = [NOT_RECORDED, RECORDED_ELSEWHERE].concat().contains(&(route.method, path));
            assert_eq!(row + usize::from(excepted), 1, "{} {path} needs one line above", route.method);
        }
        let mut secrets = vec![app.company.key.clone(), text(&key, "api_key").to_owned(), OPERATOR_TOKEN.to_owned()];
        secrets.extend([app.company.event_secret.clone(), PAYSTACK_KEY.to_owned(), "hidden_from_logs".to_owned()]);
        for (method, template, body, action, log) in rows {
            let path = template
                .replace("{company}", &app.company.id)
                .replace("{key}", text(&key, "id"))
                .replace("{event}", text(&event, "id"))
                .replace("{endpoint}", text(&endpoint, "id"))
                .replace("{member}", text(&member, "id"))
                .replace("{payment}", text(&payment, "id"))
                .replace("{loan}", "loan-1")
                .replace("{direct_debit}", "dd-1")
                .replace("{refund}", &refund)
                .replace("{exception}", &exception)
                .replace("{service_exception}", &difference)
                .replace("{account}", &account)
                .replace("{day}", "2020-01-01")
                .replace("{dispute}", &dispute)
                .replace("{provider}", "provider_a")
                .replace("{plugin}", "nigeria")
                .replace("{publisher}", "acme")
                .replace("{operator}", &clerk.id)
                .replace("{token}", &clerk.token_id)
                .replace("{role}", "teller")
                .replace("{list}/{view}", "payments/failed")
                .replace("{digest}", &next)
                .replace("{country}/{identity}", "nigeria/bvn");
            let before = count_entries(app).await;
            let data = if template == "/plugins" {
                app.install(artifacts::PROVIDER_A).await
            } else {
                let method = method.to_uppercase().parse().expect("a method");
                let response = app.operator(method, &path, body).await;
                assert_eq!(response.status, 200, "{template}: {}", response.body);
                response.body["data"].clone()
            };
            secrets.extend(["api_key", "event_secret", "secret", "operator_token", "invitation"].iter().filter_map(|name| data[name].as_str()).map(str::to_owned));
            let entries = log_entries(app, &match log {
                Log::Company => own(app, "/audit"),
                Log::Service => "/audit".to_owned(),
                Log::New => format!("/companies/{}/audit", text(&data, "id")),
            })
            .await;
            assert_eq!(count_entries(app).await, before + usize::from(log != Log::New), "{template}");
            let found = entries.iter().filter(|entry| entry["action"] == action && entry["actor"] == "operator");
            assert!(found.count() > 0 && (log != Log::New || entries.len() == 1), "{template}: {entries:?}");
            let leaked = secrets.iter().find(|secret| entries.iter().any(|entry| entry.to_string().contains(*secret)));
            assert_eq!(leaked, None, "{template}");
        }
        app.run_until_idle().await;
    }

    async fn rejected_and_repeated_actions_are_not_logged(app: TestApp) {
        let credit = json!({ "amount": 5, "key": "in" });
        app.operator(Method::POST, &own(app, "/wallet/credit"), credit.clone()).await.data();
        let before = count_entries(app).await;
        for (method, path, body, status) in [
            (Method::POST, "/companies".to_owned(), json!({ "name": "Beta" }), 400),
            (Method::PATCH, own(app, ""), json!({ "name": "" }), 400),
            (Method::POST, own(app, "/keys"), json!({ "label": 5 }), 400),
            (Method::POST, own(app, "/event-endpoints"), json!({ "url": "https://b.example/", "types": ["payment.sucess"] }), 400),
            (Method::PATCH, own(app, "/event-endpoints/nothing"), json!({}), 404),
            (Method::DELETE, own(app, "/event-endpoints/nothing"), Value::Null, 404),
            (Method::POST, own(app, "/event-endpoints/nothing/secret/rotate"), Value::Null, 404),
            (Method::DELETE, own(app, "/keys/nothing"), Value::Null, 404),
            (Method::POST, own(app, "/keys/nothing/rotate"), Value::Null, 404),
            (Method::POST, own(app, "/payments/nothing/verify"), Value::Null, 404),
            (Method::PUT, own(app, "/subscription"), json!({ "active": 1 }), 400),
            (Method::PUT, own(app, "/providers/provider_a"), json!({ "credentials": {} }), 400),
            (Method::PUT, own(app, "/providers/nothing"), json!({ "active": true }), 404),
            (Method::PUT, "/providers/provider_a".to_owned(), json!({ "active": 1 }), 400),
            (Method::POST, own(app, "/providers/provider_a/test"), json!({}), 400),
            (Method::PATCH, own(app, "/prices"), json!({ "otp.emial": 1 }), 400),
            (Method::PATCH, "/companies/nothing/prices".to_owned(), json!({ "otp.email": 1 }), 404),
            (Method::PATCH, "/prices".to_owned(), json!({ "otp.email": -1 }), 400),
            (Method::POST, own(app, "/wallet/credit"), json!({ "amount": 0, "key": "x" }), 400),
            (Method::POST, own(app, "/wallet/debit"), json!({ "amount": 6, "key": "x" }), 400),
            (Method::POST, own(app, "/wallet/credit"), json!({ "amount": 6, "key": "in" }), 409),
            (Method::POST, own(app, "/wallet/credit"), credit, 200),
            (Method::POST, own(app, "/events/nothing/redeliver"), Value::Null, 404),
            (Method::POST, "/plugins".to_owned(), json!({}), 400),
            (Method::PATCH, "/companies/nothing".to_owned(), json!({ "name": "x" }), 404),
            (Method::POST, "/companies/nothing/keys".to_owned(), json!({}), 404),
            (Method::POST, "/companies/nothing/event-secret/rotate".to_owned(), Value::Null, 404),
            (Method::POST, "/companies/nothing/wallet/credit".to_owned(), json!({ "amount": 5, "key": "x" }), 404),
        ] {
            let response = app.operator(method, &path, body.clone()).await;
            assert_eq!(response.status.as_u16(), status, "{path} {body}: {}", response.body);
            assert_eq!(count_entries(app).await, before, "{path} {body}");
        }
    }
}
