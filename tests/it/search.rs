//! Search by amount and by the id of a request.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::tenants::requests;

use crate::{
    app::{OPERATOR_TOKEN, TestApp, reply},
    console::Browser,
    lending::{create_loan, create_recollection, create_user},
    principals,
};

async fn search(app: &TestApp, token: &str, q: &str) -> Vec<Value> {
    let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
    let path = format!("/search?q={q}");
    let found = principals::call(app, token, Method::GET, &path, Value::Null);
    found.await.data().as_array().expect("a list").clone()
}

/// The titles of what is found, newest first.
async fn titles(app: &TestApp, q: &str) -> Vec<String> {
    let found = search(app, OPERATOR_TOKEN, q).await;
    found.iter().map(|hit| hit["title"].as_str().expect("a title").to_owned()).collect()
}

async fn initialize(app: &TestApp, reference: &str, amount: f64) -> Value {
    let mut order = app.order(reference);
    order["amount"] = json!(amount);
    app.post("/payment/initialize", order).await.data().clone()
}

both! {
    async fn an_amount_finds_payments_and_recollections_of_exactly_this_amount(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 9_000.0)]).await;
        initialize(app, "first", 3100.5).await;
        initialize(app, "other", 3100.51).await;
        app.advance(60).await;
        let repaid = json!({ "loan": "loan-1", "with_provider": false, "amount": 3100.5, "payment_channel": "cash", "reference": "cash-1" });
        create_recollection(app, repaid).await.data();
        for q in ["3100.5", "3 100.50", "3,100.50", "3100.50 NGN", "ngn 3100.50"] {
            assert_eq!(titles(app, q).await, ["cash-1", "first"], "{q}");
        }
        for q in ["3100.50 USD", "3100", "310050", "-3100.5"] {
            assert_eq!(titles(app, q).await, Vec::<String>::new(), "{q}");
        }
        let other = app.new_company("Beta Lending").await;
        let mut order = app.order("theirs");
        order["amount"] = json!(3100.5);
        app.advance(60).await;
        app.request(&other, Method::POST, "/payment/initialize", Some(order)).await.data();
        let hit = search(app, OPERATOR_TOKEN, "3100.5").await[0].clone();
        assert_eq!((&hit["title"], &hit["company_name"]), (&json!("theirs"), &json!("Beta Lending")));
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        browser.get("/console?q=3100.5").await.shows(&["theirs", "first", "cash-1"]);
        browser.get("/console").await.shows(&["amount", "2500.50 NGN"]);
    }

    async fn the_latest_twenty_payments_of_an_amount_are_found(app: TestApp) {
        for n in 0..22 {
            initialize(app, &format!("order-{n}"), 70.0).await;
            app.advance(1).await;
        }
        let found = titles(app, "70").await;
        assert_eq!((found.len(), &*found[0], &*found[19]), (20, "order-21", "order-2"));
    }

    async fn the_id_of_a_request_finds_its_entries_of_logs(app: TestApp, "--api-log-days=1") {
        let payment = app.paid_payment("order-1").await;
        let send = async |path: String, id: &str, body: Value| {
            let request = app.client.post(format!("{}/internal/v1{path}", app.internal));
            let request = request.bearer_auth(OPERATOR_TOKEN).header("x-request-id", id);
            reply(request.json(&body)).await.data().clone()
        };
        let company = format!("/companies/{}", app.company.id);
        let payment = payment["id"].as_str().expect("an id");
        send(format!("{company}/payments/{payment}/verify"), "req-verify", json!({})).await;
        send("/operators".to_owned(), "req-create", json!({ "name": "clerk", "roles": [] })).await;

        let kinds = async |token: &str, q: &str| {
            let mut found: Vec<_> = search(app, token, q).await.into_iter()
                .map(|hit| json!([hit["kind"], hit["title"], hit["company"]])).collect();
            found.sort_by_key(ToString::to_string);
            found
        };
        assert_eq!(kinds(OPERATOR_TOKEN, "req-verify").await, [
            json!(["audit_entry", "payment.verify", app.company.id]),
            json!(["payment", "order-1", app.company.id]),
        ]);
        assert_eq!(kinds(OPERATOR_TOKEN, "req-create").await, [json!(["audit_entry", "operator.create", ""])]);
        let log = app.operator(Method::GET, &format!("{company}/audit?request_id=req-verify"), Value::Null).await;
        assert_eq!((&log.data()["total"], &log.data()["docs"][0]["action"]), (&json!(1), &json!("payment.verify")));

        // A request of the company is in its API log, for those who may read that.
        let request = app.client.get(format!("{}/api/v1/payment/list", app.api)).bearer_auth(&app.company.key);
        reply(request.header("x-request-id", "req-list")).await.data();
        requests::flush(&app.app).await.expect("saved requests");
        let listed = json!(["api_request", "GET /api/v1/payment/list", app.company.id]);
        assert_eq!(kinds(OPERATOR_TOKEN, "req-list").await, [listed]);
        let platform = principals::create(app, "engineer", &["support-read", "platform"]).await;
        assert_eq!(kinds(&platform.token, "req-list").await.len(), 1);
        assert_eq!(kinds(&platform.token, "req-verify").await, Vec::<Value>::new());

        // The log is for those who may read it.
        let clerk = principals::create(app, "reader", &["finance-read"]).await;
        for q in ["req-verify", "req-list"] {
            assert_eq!(kinds(&clerk.token, q).await, Vec::<Value>::new(), "{q}");
        }
        let browser = Browser::signed_in(app, "eve", "support-read").await;
        browser.get("/console?q=req-verify").await.shows(&["No matches"]);
        let security = Browser::signed_in(app, "sam", "security").await;
        security.get(&format!("/console{company}/audit?request_id=req-verify")).await.shows(&["payment.verify"]);
        security.get("/console/audit?request_id=req-create").await.shows(&["operator.create"]);
        security.get("/console/audit?request_id=none").await.shows(&["There are no such entries"]);
        let administrator = Browser::signed_in(app, "root", "administrator").await;
        let found = administrator.get("/console?q=req-create").await;
        assert_eq!((found.status, &*found.location), (303, "/console/audit?request_id=req-create"));
        let page = format!("/console{company}/audit?request_id=req-verify");
        administrator.get("/console?q=req-verify").await.shows(&[&page, "audit entry"]);
        administrator.get("/console").await.shows(&["x-request-id"]);
        let found = administrator.get("/console?q=req-list").await;
        assert_eq!((found.status, &*found.location), (303, &*format!("/console{company}/requests?request_id=req-list")));
        administrator.get(&found.location).await.shows(&["/api/v1/payment/list"]);
    }
}
