//! Approvals: actions above configured limits need a second operator.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{routes::internal_routes, state::App, wiring};
use tollhouse_http::Listener;
use tollhouse_platform::random::Random;

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, config, reply},
    exceptions::insert_exception,
    principals::{TestOperator, call, create, create_by, entries},
};

/// Asserts that the action waits, and returns the id of its approval.
fn waiting(response: &Reply) -> String {
    let (status, message) = response.failure();
    let (text, id) = message.rsplit_once(' ').expect("an id");
    let expected =
        "a second operator must approve this action before you repeat the request: approval";
    assert_eq!((status, text), (409, expected));
    id.to_owned()
}

async fn decide(app: &TestApp, by: &TestOperator, approval: &str, decision: &str) -> Reply {
    let path = format!("/approvals/{approval}/{decision}");
    call(app, &by.token, Method::POST, &path, Value::Null).await
}

async fn credit(app: &TestApp, token: &str, amount: f64, key: &str) -> Reply {
    let path = format!("/companies/{}/wallet/credit", app.company.id);
    call(app, token, Method::POST, &path, json!({ "amount": amount, "key": key })).await
}

both! {
    async fn a_large_credit_needs_a_second_operator(app: TestApp, "--approvals=wallet", "--approval-amount=100") {
        let ada = create(app, "ada", &["finance-act"]).await;
        let ben = create(app, "ben", &["finance-act"]).await;
        let eve = create(app, "eve", &["platform"]).await;
        credit(app, &ada.token, 100.0, "small").await.data();
        let approval = waiting(&credit(app, &ada.token, 100.01, "large").await);
        assert_eq!(waiting(&credit(app, &ada.token, 100.01, "large").await), approval);
        assert_eq!(app.wallet().await["balance"], 100);

        let own = decide(app, &ada, &approval, "approve").await;
        assert_eq!(own.failure(), (403, "another operator must decide: you requested this action"));
        assert_eq!(decide(app, &eve, &approval, "approve").await.failure(), (403, "you lack the permission wallet.write"));
        let path = format!("/approvals/{approval}/approve");
        let configured = app.operator(Method::POST, &path, Value::Null).await;
        let message = "the configured operator token cannot approve: use an operator's token";
        assert_eq!(configured.failure(), (403, message));
        let listed = call(app, &ben.token, Method::GET, "/approvals?state=pending", Value::Null).await;
        let listed = &listed.data()["docs"][0];
        assert_eq!(
            json!([listed["id"], listed["action"], listed["requested_by"], listed["detail"]["amount"], listed["company"]]),
            json!([approval, "operator.credit", "ada", 100.01, app.company.id])
        );
        let approved = decide(app, &ben, &approval, "approve").await;
        assert_eq!((&approved.data()["state"], &approved.data()["decided_by"]), (&json!("approved"), &json!("ben")));
        assert_eq!(decide(app, &ben, &approval, "reject").await.status, 409);

        // It allows exactly this action, by this operator.
        let others = [
            credit(app, &ada.token, 100.02, "large").await,
            credit(app, &ada.token, 100.01, "other").await,
            credit(app, &ben.token, 100.01, "large").await,
        ];
        assert!(others.iter().all(|other| waiting(other) != approval));
        for _ in 0..2 {
            assert_eq!(credit(app, &ada.token, 100.01, "large").await.data()["balance"], 200.01);
        }
        let log = format!("/companies/{}/audit", app.company.id);
        for (action, actor) in [("approval.request", "ada"), ("approval.approve", "ben"), ("operator.credit", "ada")] {
            let logged = entries(app, &log, action).await;
            assert!(logged.iter().any(|entry| entry["actor"] == actor), "{action}: {logged:?}");
        }
    }

    async fn a_rejected_or_expired_action_is_not_carried_out(app: TestApp, "--approvals=wallet") {
        let ada = create(app, "ada", &["finance-act"]).await;
        let ben = create(app, "ben", &["finance-act"]).await;
        let approval = waiting(&credit(app, &ada.token, 5.0, "one").await);
        decide(app, &ben, &approval, "reject").await.data();
        let rejected = credit(app, &ada.token, 5.0, "one").await;
        assert_eq!(rejected.failure(), (403, &*format!("ben rejected this action: approval {approval}")));
        app.advance(24 * 3_600).await;
        let again = waiting(&credit(app, &ada.token, 5.0, "one").await);
        assert_ne!(again, approval);
        app.advance(24 * 3_600).await;
        assert_eq!(decide(app, &ben, &again, "approve").await.status, 409);
        let third = waiting(&credit(app, &ada.token, 5.0, "one").await);
        decide(app, &ben, &third, "approve").await.data();
        app.advance(24 * 3_600).await;
        waiting(&credit(app, &ada.token, 5.0, "one").await);
        assert_eq!(app.wallet().await["balance"], 0);
    }

    async fn reading_identity_records_of_many_users_needs_an_approval(
        app: TestApp, "--approvals=identities", "--approval-identities=2"
    ) {
        let ada = create(app, "ada", &["support-act"]).await;
        let other = create(app, "cleo", &["support-act"]).await;
        let ben = create(app, "ben", &["administrator"]).await;
        let read = async |user: &str| {
            let path = format!("/companies/{}/users/{user}@example.com/identities", app.company.id);
            call(app, &ada.token, Method::GET, &path, Value::Null).await
        };
        for user in ["u1", "u2", "u3", "u4"] {
            let new = json!({ "user_id": user, "email": format!("{user}@example.com"), "first_name": user, "last_name": "Obi" });
            app.post("/user/create", new).await.data();
        }
        for user in ["u1", "u2", "u1", "u2"] {
            read(user).await.data();
        }
        let approval = waiting(&read("u3").await);
        assert_eq!(waiting(&read("u3").await), approval);
        decide(app, &ben, &approval, "approve").await.data();
        for user in ["u3", "u4", "u1"] {
            read(user).await.data();
        }
        app.advance(24 * 3_600).await;
        for user in ["u4", "u1"] {
            read(user).await.data();
        }
        assert_ne!(waiting(&read("u2").await), approval);
        let path = format!("/companies/{}/users/u2@example.com/identities", app.company.id);
        call(app, &other.token, Method::GET, &path, Value::Null).await.data();
    }

    async fn each_configured_action_needs_an_approval(
        app: TestApp, "--approvals=forced-refunds,publishers,operators"
    ) {
        let root = create(app, "root", &["administrator"]).await;
        let by = async |method: Method, path: &str, body: Value| call(app, &root.token, method, path, body).await;
        // One administrator cannot wait for another one.
        let second = json!({ "name": "second", "roles": ["administrator"] });
        let second = by(Method::POST, "/operators", second).await.data()["id"].clone();
        let tokens = format!("/operators/{}/tokens", second.as_str().expect("an id"));
        by(Method::POST, &tokens, json!({})).await.data();

        let invite = tokens.replace("/tokens", "/invite");
        let payment = app.paid_payment("order-1").await;
        let refund = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().expect("an id"));
        let operator = format!("/operators/{}", root.id);
        let key = json!({ "keys": ["MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="] });
        for (method, path, body) in [
            (Method::POST, &*refund, json!({ "force": true })),
            (Method::PUT, "/publishers/acme", key),
            (Method::DELETE, "/publishers/acme", Value::Null),
            (Method::POST, "/operators", json!({ "name": "third", "roles": [] })),
            (Method::PATCH, &*operator, json!({ "name": "toor" })),
            (Method::POST, &*tokens, json!({})),
            (Method::POST, &*invite, Value::Null),
            (Method::PUT, "/roles/own", json!({ "permissions": ["wallet.read"] })),
        ] {
            waiting(&by(method, path, body).await);
        }
        assert_eq!(call(app, OPERATOR_TOKEN, Method::GET, "/operators", Value::Null).await.status, 401);
    }

    async fn a_large_exception_is_resolved_with_an_approval(
        app: TestApp, "--approvals=exceptions", "--approval-amount=2500"
    ) {
        let ada = create(app, "ada", &["finance-act"]).await;
        let ben = create(app, "ben", &["finance-act"]).await;
        app.initialize("order-1").await; // of 2500.5
        let exception = insert_exception(app, &app.company.id).await;
        let path = format!("/companies/{}/exceptions/{exception}/resolve", app.company.id);
        let resolve = async |reason: &str| {
            let body = json!({ "action": "none", "reason": reason });
            call(app, &ada.token, Method::POST, &path, body).await
        };
        let credit = json!({ "action": "credit", "reason": "never paid" });
        let refused = call(app, &ada.token, Method::POST, &path, credit).await;
        assert_eq!(refused.failure(), (400, "this charge has no money in suspense"), "nothing to approve");
        let approval = waiting(&resolve("never paid").await);
        decide(app, &ben, &approval, "approve").await.data();
        assert_ne!(waiting(&resolve("another reason").await), approval);
        assert_eq!(resolve("never paid").await.data()["state"], "resolved");
    }

    async fn a_small_exception_needs_no_approval(
        app: TestApp, "--approvals=exceptions", "--approval-amount=2500.5"
    ) {
        app.initialize("order-1").await;
        let exception = insert_exception(app, &app.company.id).await;
        let path = format!("/companies/{}/exceptions/{exception}/resolve", app.company.id);
        let body = json!({ "action": "none", "reason": "never paid" });
        assert_eq!(app.operator(Method::POST, &path, body).await.data()["state"], "resolved");
    }

    async fn an_approval_of_a_forced_part_allows_one_refund(app: TestApp, "--approvals=forced-refunds") {
        let ada = create(app, "ada", &["finance-act"]).await;
        let ben = create(app, "ben", &["finance-act"]).await;
        let payment = app.paid_payment("order-1").await;
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().expect("an id"));
        let refund = async || {
            let body = json!({ "amount": 1000, "force": true });
            call(app, &ada.token, Method::POST, &path, body).await
        };
        let approval = waiting(&refund().await);
        decide(app, &ben, &approval, "approve").await.data();
        refund().await.data();
        app.advance(3600).await;
        assert_ne!(waiting(&refund().await), approval);
        assert_eq!(app.fetch("order-1").await["refunded"], 1000);
    }

    async fn an_approval_of_a_token_allows_one_token(app: TestApp, "--approvals=operators") {
        let named = |name: &str| json!({ "name": name, "roles": ["administrator"] });
        let created = app.operator(Method::POST, "/operators", named("second")).await.data().clone();
        let root = create_by(app, OPERATOR_TOKEN, named("root")).await;
        let tokens = format!("/operators/{}/tokens", created["id"].as_str().expect("an id"));
        let token = call(app, &root.token, Method::POST, &tokens, json!({})).await.data().clone();
        let second = token["operator_token"].as_str().expect("a token");
        let create = async || call(app, &root.token, Method::POST, &tokens, json!({})).await;
        for _ in 0..2 {
            let approval = waiting(&create().await);
            let path = format!("/approvals/{approval}/approve");
            call(app, second, Method::POST, &path, Value::Null).await.data();
            create().await.data();
        }
        waiting(&create().await);
    }

    async fn a_grant_to_a_plugin_needs_an_approval(app: TestApp) {
        let config = config(&app.database, &["--approvals=plugin-grants"]);
        let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("another host");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}/internal/v1/plugins", tcp.local_addr().expect("bound"));
        let (_close, closing) = watch::channel(false);
        tokio::spawn(async move {
            wiring::listen(&host, Listener::plain(tcp), internal_routes(), closing).await;
        });
        let post = |path: &str| app.client.post(format!("{base}{path}")).bearer_auth(OPERATOR_TOKEN);
        let install = |query: &str| reply(post(query).body(artifacts::SPROUT.to_vec()));
        let approval = waiting(&install("?grant=true").await);
        install("").await.data(); // without a grant, the version waits
        waiting(&reply(post("/sprout/activate").json(&json!({ "grant": true }))).await);
        let ada = create(app, "ada", &["platform"]).await;
        decide(app, &ada, &approval, "approve").await.data();
        install("?grant=true").await.data();
    }
}
