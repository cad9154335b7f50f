//! What operators set up at providers, and the log of all that they do.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::routes::internal_routes;
use tollhouse_http::Access;

use crate::{
    app::{OPERATOR_TOKEN, PAYSTACK_KEY, Reply, TestApp},
    lending::{SUCCESS_CARD, failed_refund, mandate, saved_card, small_loan, user},
    plugins::try_install,
    sprout::repack,
};

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect(field)
}

/// A path of the harness's own company.
fn own(app: &TestApp, path: &str) -> String {
    format!("/companies/{}{path}", app.company.id)
}

async fn see(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data().clone()
}

/// Sets up the company's own account.
async fn set(app: &TestApp, body: Value) -> Reply {
    app.operator(Method::PUT, &own(app, "/providers/provider_a"), body).await
}

fn credentials(app: &TestApp, key: &str) -> Value {
    json!({ "secret_key": key, "base_url": format!("{}/paystack", app.simulators.url()) })
}

/// What a payment is answered, which nothing is left of when it is refused.
async fn try_to_pay(app: &TestApp, reference: &str) -> Reply {
    app.post("/payment/initialize", app.order(reference)).await
}

both! {
    async fn credentials_go_in_and_never_come_out(app: TestApp) {
        let secret = "sk_test_nobody_reads_this";
        let answer = set(app, json!({ "credentials": credentials(app, secret), "active": true })).await;
        let account = text(answer.data(), "account");
        assert!(account.len() >= 40, "{account} can be guessed");
        assert_eq!(answer.data(), &json!({
            "provider": "provider_a", "account": account, "mode": "test", "active": true, "has_credentials": true,
            "notification_url": format!("{}/api/v1/notifications/provider_a/{account}", app.api),
            "created_at": app.app.clock.now(), "updated_at": app.app.clock.now(),
        }));
        assert_eq!(see(app, &own(app, "/providers")).await, json!([answer.data()]));
        let mut seen = answer.body.to_string();
        for path in [&*own(app, ""), &own(app, "/providers"), &own(app, "/audit"), "/providers", "/audit", "/companies"] {
            seen += &see(app, path).await.to_string();
        }
        for hidden in [secret, PAYSTACK_KEY] {
            assert!(!seen.contains(&hidden["sk_test_".len()..]), "{seen}");
        }

        // What is not named stays: the account's id, too, which the provider was told.
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

    async fn credentials_that_the_provider_has_no_use_for_are_named(app: TestApp) {
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
        assert_eq!(see(app, &own(app, "/providers")).await, json!([]));
        assert_eq!(see(app, "/providers").await.as_array().map(Vec::len), Some(1));
    }

    async fn a_provider_is_switched_off_for_one_company_or_for_all(app: TestApp) {
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
        try_to_pay(app, "order-2").await.data(); // its own, which needs nothing of the service
    }

    async fn an_account_that_is_set_up_by_many_at_once_works(app: TestApp) {
        let body = json!({ "credentials": credentials(app, "sk_test_own") });
        for round in 0..5 {
            let company = app.new_company("Beta Lending").await;
            let path = format!("/companies/{}/providers/provider_a", company.id);
            let set = || app.operator(Method::PUT, &path, body.clone());
            let answers = futures::future::join_all((0..8).map(|_| set())).await;
            let accounts: Vec<&Value> = answers.iter().map(|answer| &answer.data()["account"]).collect();
            assert!(accounts.iter().all(|account| *account == accounts[0]), "{accounts:?}");
            // Its credentials open.
            let order = Some(app.order(&format!("order-{round}")));
            app.request(&company, Method::POST, "/payment/initialize", order).await.data();
        }
    }
}

// ---- the log ------------------------------------------------------------------------------------

/// Where an action is noted.
#[derive(Clone, Copy, PartialEq)]
enum Log {
    Company,
    Service,
    /// With the company that it made.
    New,
}

type Action = (&'static str, &'static str, Value, &'static str, Log);

/// Every route by which operators change something of a company: what is sent, and what is noted where.
fn actions(app: &TestApp) -> Vec<Action> {
    let money = |key: &str| json!({ "amount": 5, "key": key });
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

/// What neighbouring systems put here, and what is looked after of it.
fn actions_of_debts() -> Vec<Action> {
    vec![
        ("put", "/companies/{company}/loans/{loan}", small_loan("ada"), "loan.put", Log::Company),
        (
            "put",
            "/companies/{company}/direct-debits/{direct_debit}",
            mandate("ada", "AUTH_hidden_from_logs"),
            "direct_debit.put",
            Log::Company,
        ),
        (
            "post",
            "/companies/{company}/card-refunds/{refund}/retry",
            json!({}),
            "card_refund.retry",
            Log::Company,
        ),
    ]
}

/// The same of the service, and of what is switched for everyone or for a company.
fn actions_of_the_service(app: &TestApp) -> Vec<Action> {
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

/// Of a plugin that has another version, which serves nobody.
fn actions_of_plugins(digest: &str) -> Vec<Action> {
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

/// An author's: RFC 8032, 7.1, test 1.
const PUBLIC_KEY: &str = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// Routes that change nothing which outlives a test or a development environment.
const NOT_NOTED: &[(&str, &str)] = &[("post", "/clock/advance"), ("post", "/plugins/examine")];

/// The entries of a log, newest first.
async fn noted(app: &TestApp, path: &str) -> Vec<Value> {
    see(app, path).await["docs"].as_array().expect("a list").clone()
}

/// The harness's company and the service's logs together: what an action adds to.
async fn all_noted(app: &TestApp) -> usize {
    noted(app, &own(app, "/audit")).await.len() + noted(app, "/audit").await.len()
}

both! {
    async fn every_action_of_an_operator_is_noted_once_and_without_secrets(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.settle().await;
        let key = app.operator(Method::POST, &own(app, "/keys"), json!({})).await.data().clone();
        let event = see(app, &own(app, "/events")).await["docs"][0].clone();
        app.install(artifacts::NIGERIA).await;
        user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let refund = failed_refund(app, &app.company.id, &card["id"]).await;
        let next = repack(artifacts::NIGERIA, |manifest| manifest["version"] = json!("9.0.0"));
        let next = text(&try_install(app, next, "grant=true&activate=false").await.data().clone(), "digest").to_owned();
        let rows = [actions(app), actions_of_debts(), actions_of_the_service(app), actions_of_plugins(&next)].concat();
        for route in internal_routes().iter().filter(|route| route.access == Access::Operator && route.method != "get") {
            let path = route.path.strip_prefix("/internal/v1").expect("the prefix");
            let row = rows.iter().filter(|row| (row.0, row.1) == (route.method, path)).count();
            let excepted = NOT_NOTED.contains(&(route.method, path));
            assert_eq!(row + usize::from(excepted), 1, "{} {path} needs one line above", route.method);
        }
        let mut secrets = vec![app.company.key.clone(), text(&key, "api_key").to_owned(), OPERATOR_TOKEN.to_owned()];
        secrets.extend([app.company.event_secret.clone(), PAYSTACK_KEY.to_owned(), "hidden_from_logs".to_owned()]);
        for (method, template, body, action, log) in rows {
            let path = template
                .replace("{company}", &app.company.id)
                .replace("{key}", text(&key, "id"))
                .replace("{event}", text(&event, "id"))
                .replace("{payment}", text(&payment, "id"))
                .replace("{loan}", "loan-1")
                .replace("{direct_debit}", "dd-1")
                .replace("{refund}", &refund)
                .replace("{provider}", "provider_a")
                .replace("{plugin}", "nigeria")
                .replace("{publisher}", "acme")
                .replace("{digest}", &next)
                .replace("{country}/{identity}", "nigeria/bvn");
            let before = all_noted(app).await;
            let data = if template == "/plugins" {
                app.install(artifacts::PROVIDER_A).await
            } else {
                let method = method.to_uppercase().parse().expect("a method");
                let answer = app.operator(method, &path, body).await;
                assert_eq!(answer.status, 200, "{template}: {}", answer.body);
                answer.body["data"].clone()
            };
            secrets.extend(["api_key", "event_secret"].iter().filter_map(|name| data[name].as_str()).map(str::to_owned));
            let entries = noted(app, &match log {
                Log::Company => own(app, "/audit"),
                Log::Service => "/audit".to_owned(),
                Log::New => format!("/companies/{}/audit", text(&data, "id")),
            })
            .await;
            assert_eq!(all_noted(app).await, before + usize::from(log != Log::New), "{template}");
            let found = entries.iter().filter(|entry| entry["action"] == action && entry["actor"] == "operator");
            assert!(found.count() > 0 && (log != Log::New || entries.len() == 1), "{template}: {entries:?}");
            let leaked = secrets.iter().find(|secret| entries.iter().any(|entry| entry.to_string().contains(*secret)));
            assert_eq!(leaked, None, "{template}");
        }
        app.settle().await;
    }

    async fn what_is_refused_or_done_already_is_not_noted(app: TestApp) {
        let credit = json!({ "amount": 5, "key": "in" });
        app.operator(Method::POST, &own(app, "/wallet/credit"), credit.clone()).await.data();
        let before = all_noted(app).await;
        for (method, path, body, status) in [
            (Method::POST, "/companies".to_owned(), json!({ "name": "Beta" }), 400),
            (Method::PATCH, own(app, ""), json!({ "name": "" }), 400),
            (Method::POST, own(app, "/keys"), json!({ "label": 5 }), 400),
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
            let answer = app.operator(method, &path, body.clone()).await;
            assert_eq!(answer.status.as_u16(), status, "{path} {body}: {}", answer.body);
            assert_eq!(all_noted(app).await, before, "{path} {body}");
        }
    }
}
