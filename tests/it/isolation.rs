//! Access control and isolation of companies. The tests walk the tables of routes: a new route is
//! covered automatically, or fails a test here.

mod no_records;
mod notifications;
mod records;
mod scopes;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_app::routes::{Route, internal_routes, public_routes};
use tollhouse_http::Access;

use self::{
    no_records::{NO_RECORDS, NOTIFICATION, PAY_PAGE},
    records::RECORDS,
};
use crate::{
    app::{Company, NOW, OPERATOR_TOKEN, Reply, TestApp, is_on_both_listeners, reply},
    codes::email_request,
    disputes::open_dispute,
    event_endpoints,
    exceptions::insert_exception,
    identity,
    lending::{
        SUCCESS_CARD, complete_page, create_recollection, fail_card_refund, insert_virtual_account,
        loan_body, put_loan,
    },
    mandates, portal,
};

const NO_KEY: &str = "the Authorization header must be: Bearer <key>";
const BAD_KEY: &str = "the API key is not valid";
const BAD_TOKEN: &str = "the operator token is not valid";
/// An id that no record has.
const UNKNOWN_ID: &str = "000000000000000000000000";

/// Returns the routes with access like this one, each with its listener's URL.
fn routes_of(app: &TestApp, access: Access) -> Vec<(&str, Route)> {
    let is_like = |other| std::mem::discriminant(&access) == std::mem::discriminant(&other);
    let routes = app.routes().into_iter().filter(|(_, _, route)| is_like(route.access));
    let routes: Vec<_> = routes.map(|(base, _, route)| (base, route)).collect();
    assert!(!routes.is_empty(), "no route is {access:?}");
    routes
}

/// Returns whether a segment of a route is a parameter other than the company.
fn is_record_parameter(segment: &str) -> bool {
    segment.starts_with('{') && segment != "{company}"
}

/// Builds a request to a route for `company`, with `value` for every other parameter of the path.
fn request(app: &TestApp, base: &str, route: &Route, company: &str, value: &str) -> RequestBuilder {
    let fill = |segment| match segment {
        "{company}" => company,
        segment if is_record_parameter(segment) => value,
        segment => segment,
    };
    let path = route.path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let method: Method = route.method.to_uppercase().parse().expect("a method");
    app.client.request(method, format!("{base}{path}"))
}

/// Builds a request with an invalid body, which must not be read before the key is checked.
fn unreadable(app: &TestApp, base: &str, route: &Route) -> RequestBuilder {
    let request = request(app, base, route, &app.company.id, UNKNOWN_ID);
    request.header("content-type", "text/plain").body("{ not json")
}

/// Sends the fields that any of these routes requires, with the credential that the route needs.
async fn send(app: &TestApp, base: &str, route: &Route, company: &Company, value: &str) -> Reply {
    let is_operator = matches!(route.access, Access::Operator(_));
    let credential = if is_operator { OPERATOR_TOKEN } else { &company.key };
    let request = request(app, base, route, &company.id, value).bearer_auth(credential);
    let action = if route.path.ends_with("/answer") { "accept" } else { "none" };
    let body =
        json!({ "action": action, "reason": "closed", "message": "closed", "note": "closed" });
    reply(if route.method == "get" { request } else { request.json(&body) }).await
}

async fn another_key(app: &TestApp, body: Value) -> Value {
    let path = format!("/companies/{}/keys", app.company.id);
    app.operator(Method::POST, &path, body).await.data().clone()
}

/// Returns the `total` of an operator's list.
async fn total(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data()["total"].clone()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect(field)
}

// ---- access control -----------------------------------------------------------------------------

/// Asserts that every route with this access rejects each header before it reads the body.
async fn assert_rejects(app: &TestApp, access: Access, headers: &[(Option<String>, &str)]) {
    for (base, route) in routes_of(app, access) {
        for (header, message) in headers {
            let mut request = unreadable(app, base, &route);
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let (refused, what) = (reply(request).await, format!("{} {header:?}", route.path));
            assert_eq!(refused.failure(), (401, *message), "{what}");
            assert_eq!(refused.headers["www-authenticate"], "Bearer", "{what}");
        }
    }
}

/// Asserts that every route with this access accepts this credential; the body may be rejected.
async fn assert_accepts(app: &TestApp, access: Access, credential: &str) {
    for (base, route) in routes_of(app, access) {
        let known = reply(unreadable(app, base, &route).bearer_auth(credential)).await;
        assert!(![401, 403].contains(&known.status.as_u16()), "{}: {}", route.path, known.body);
    }
}

both! {
    async fn every_route_of_companies_rejects_invalid_keys(app: TestApp) {
        let soon = json!({ "expires_at": NOW.plus_seconds(60) });
        let expired = another_key(app, soon).await;
        let revoked = another_key(app, json!({})).await;
        let path = format!("/companies/{}/keys/{}", app.company.id, text(&revoked, "id"));
        assert_eq!(app.operator(Method::DELETE, &path, Value::Null).await.status, 200);
        app.advance(60).await;

        let key = &app.company.key;
        let bearer = |key: &str| Some(format!("Bearer {key}"));
        assert_rejects(app, Access::Company(""), &[
            (None, NO_KEY),
            (Some("Bearer".to_owned()), NO_KEY),
            (Some(format!("Basic {key}")), NO_KEY),
            (Some(key.clone()), NO_KEY),
            (bearer(&format!("sk_test_{}", "0".repeat(40))), BAD_KEY),
            (bearer(&key[..key.len() - 1]), BAD_KEY),
            (bearer(&key.to_uppercase()), BAD_KEY),
            (bearer(text(&revoked, "api_key")), BAD_KEY),
            (bearer(text(&expired, "api_key")), BAD_KEY),
            (bearer(OPERATOR_TOKEN), BAD_KEY),
        ])
        .await;
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        assert!(app.simulators.paystack().requests().is_empty());
        assert_accepts(app, Access::Company(""), key).await;
    }

    async fn every_route_of_operators_rejects_invalid_tokens(app: TestApp) {
        let own = format!("/companies/{}/audit", app.company.id);
        let before = (total(app, &own).await, total(app, "/audit").await);
        assert_rejects(app, Access::Operator(""), &[
            (None, NO_KEY),
            (Some(OPERATOR_TOKEN.to_owned()), NO_KEY),
            (Some(format!("Basic {OPERATOR_TOKEN}")), NO_KEY),
            (Some(format!("Bearer {OPERATOR_TOKEN}0")), BAD_TOKEN),
            (Some(format!("Bearer {}", app.company.key)), BAD_TOKEN),
        ])
        .await;
        assert_eq!((total(app, &own).await, total(app, "/audit").await), before);
        assert_eq!(total(app, "/companies").await, 1);
        assert_accepts(app, Access::Operator(""), OPERATOR_TOKEN).await;
    }

    async fn every_route_rejects_a_suspended_or_unsubscribed_company(app: TestApp) {
        let ended = "active subscription required";
        for (path, body, message, undo) in [
            ("", json!({ "active": false }), "the company is suspended", json!({ "active": true })),
            ("/subscription", json!({ "active": false }), ended, json!({ "active": true })),
            ("/subscription", json!({ "expires_at": NOW }), ended, json!({ "expires_at": null })),
        ] {
            let company = app.new_company("Beta Lending").await;
            let method = if path.is_empty() { Method::PATCH } else { Method::PUT };
            let path = format!("/companies/{}{path}", company.id);
            assert_accepts(app, Access::Company(""), &company.key).await;
            app.operator(method.clone(), &path, body).await.data();
            for (base, route) in routes_of(app, Access::Company("")) {
                let refused = reply(unreadable(app, base, &route).bearer_auth(&company.key)).await;
                assert_eq!(refused.failure(), (403, message), "{}", route.path);
            }
            assert_accepts(app, Access::Company(""), &app.company.key).await; // others are unaffected
            app.operator(method, &path, undo).await.data();
            assert_accepts(app, Access::Company(""), &company.key).await;
        }
    }

    async fn routes_of_a_feature_reject_a_company_without_it(app: TestApp) {
        let gated = [
            ("/api/v1/payment/", "payments"),
            ("/api/v1/otp/send", "otp"),
            ("/api/v1/user/create", "users"),
            ("/api/v1/user/bulk/", "users"),
            ("/api/v1/kyc/{country}", "identity"),
            ("/api/v1/card/", "cards"),
            ("/api/v1/virtual-account/", "payments"),
            ("/api/v1/account/", "payments"),
            ("/api/v1/recollection/", "recollections"),
            ("/api/v1/direct-debit/", "recollections"),
        ];
        let path = format!("/companies/{}/subscription", app.company.id);
        for features in [&["otp"][..], &["otp", "payments"], &["payments"], &[]] {
            app.operator(Method::PUT, &path, json!({ "features": features })).await.data();
            for (base, route) in routes_of(app, Access::Company("")) {
                let response = send(app, base, &route, &app.company, UNKNOWN_ID).await;
                let feature = gated.iter().find(|(prefix, _)| route.path.starts_with(prefix));
                match feature.filter(|(_, feature)| !features.contains(feature)) {
                    Some((_, feature)) => {
                        let message = format!("your plan does not include {feature}");
                        assert_eq!(response.failure(), (403, &*message), "{} {features:?}", route.path);
                    }
                    None => assert_ne!(response.status, 403, "{} {features:?}", route.path),
                }
            }
        }
    }

    async fn each_listener_serves_only_its_own_routes(app: TestApp) {
        let of = |access| routes_of(app, access).into_iter().map(|(_, route)| route.path).collect::<Vec<_>>();
        let (documents, health) = (["/openapi.json", "/docs", "/docs/{file}"], ["/health/live", "/health/ready"]);
        let sign_in = ["/internal/v1/sign-in", "/internal/v1/sign-in/enrol", "/internal/v1/sign-in/confirm", "/internal/v1/sign-in/oidc/begin", "/internal/v1/sign-in/oidc/finish"];
        // All routes that need no key. A further one needs a reason here.
        assert_eq!(of(Access::Unauthenticated), [&documents[..], &["/api/v1/user/file/{file}", "/api/v1/notifications/{provider}/{account}", NOTIFICATION, NOTIFICATION, PAY_PAGE], &documents, &sign_in].concat());
        // All routes that bypass the request limits. A further one needs a reason here.
        assert_eq!(of(Access::Unthrottled), [&health[..], &health, &["/metrics"]].concat());
        for (base, _, route) in app.routes().into_iter().filter(|(_, _, route)| !is_on_both_listeners(route.path)) {
            let public = base == app.api;
            assert!(!if public { matches!(route.access, Access::Operator(_)) } else { matches!(route.access, Access::Company(_)) });
            let other = if public { &app.internal } else { &app.api };
            for credential in [OPERATOR_TOKEN, &app.company.key] {
                let request = unreadable(app, other, &route).bearer_auth(credential);
                assert_eq!(reply(request).await.failure(), (404, "path not found"), "{}", route.path);
            }
        }
    }
}

// ---- isolation of companies ---------------------------------------------------------------------

/// Records of a company, by every name that a request could use.
struct CompanyRecords {
    user: Value,
    settled: Value,
    pending: Value,
    event: String,
    endpoint: String,
    member: String,
    key: Value,
    account: String,
    movement: &'static str,
    uid: String,
    card: Value,
    virtual_account: String,
    mandate: Value,
    refund: String,
    exception: String,
    dispute: String,
    recollection: Value,
}

/// Creates records of every kind for the test company.
async fn create_records(app: &TestApp) -> CompanyRecords {
    let company = format!("/companies/{}", app.company.id);
    let mut ada = json!({ "user_id": "user-of-a", "first_name": "Ada", "last_name": "Obi" });
    ada["email"] = json!("mail-of-a@example.com");
    let user = app.post("/user/create", ada).await.data().clone();
    let order = async |reference: &str| {
        let mut order = app.order(reference);
        order["user_id"] = json!("user-of-a");
        app.post("/payment/initialize", order).await.data().clone()
    };
    let (settled, pending) = (order("settled-of-a").await, order("pending-of-a").await);
    app.complete(&settled, "success").await;
    app.run_until_idle().await;
    app.post("/otp/send", email_request(json!({ "email": "mail-of-a@example.com" }))).await;
    app.run_until_idle().await;
    let credit = json!({ "amount": 5, "key": "movement-of-a" });
    app.operator(Method::POST, &format!("{company}/wallet/credit"), credit).await.data();
    let account = app.use_paystack(&format!("{company}/providers/provider_a"), "sk_test_own").await;
    let account = account.rsplit('/').next().expect("an account").to_owned();
    let events = app.operator(Method::GET, &format!("{company}/events"), Value::Null).await;
    let event = text(&events.data()["docs"][0], "id").to_owned();
    let endpoint = event_endpoints::create(app, &app.company, json!({ "active": false })).await;
    let key = another_key(app, json!({ "label": "key-of-a" })).await;
    let uid = identity::free_uid(app, &app.company, json!({ "user_id": "user-of-a" })).await;
    let saved = json!({ "user_id": "user-of-a", "currency": "NGN", "payment_service": "provider_a", "checkout": { "success_url": "https://lender.example/" } });
    let card = app.post("/card/create", saved).await.data().clone();
    complete_page(app, &card, "success", SUCCESS_CARD).await;
    let virtual_account = insert_virtual_account(app, &app.company.id, &user).await;
    let mandate = app.post("/direct-debit/create", mandates::order("user-of-a")).await;
    let mandate = mandate.data().clone();
    let refund = fail_card_refund(app, &app.company.id, &card["id"]).await;
    let exception = insert_exception(app, &app.company.id).await;
    let dispute = open_dispute(app, &app.company.id, &settled).await;
    put_loan(app, "loan-of-a", loan_body("user-of-a")).await;
    let repaid = json!({ "loan": "loan-of-a", "with_provider": false, "reference": "repaid-of-a" });
    let member =
        portal::invite(app, &app.company, "member-of-a@example.com", "company-owner").await;
    let recollection = create_recollection(app, repaid).await.data().clone();
    app.run_until_idle().await;
    CompanyRecords {
        user,
        settled,
        pending,
        event,
        endpoint: text(&endpoint, "id").to_owned(),
        member: text(&member, "id").to_owned(),
        key,
        account,
        movement: "movement-of-a",
        uid,
        card,
        virtual_account,
        mandate,
        refund,
        exception,
        dispute,
        recollection,
    }
}

impl CompanyRecords {
    fn of_user(&self) -> Vec<&str> {
        ["id", "user_id", "email"].map(|field| text(&self.user, field)).to_vec()
    }

    fn of_payments(&self, field: &str) -> Vec<&str> {
        [&self.settled, &self.pending].map(|payment| text(payment, field)).to_vec()
    }

    fn of_recollection(&self) -> Vec<&str> {
        ["id", "reference"].map(|field| text(&self.recollection, field)).to_vec()
    }

    fn all(&self) -> Vec<&str> {
        let others = vec![
            &*self.event,
            &*self.endpoint,
            &*self.member,
            &*self.account,
            self.movement,
            text(&self.key, "id"),
        ];
        let payments = [self.of_payments("id"), self.of_payments("reference")].concat();
        let others = [others, self.of_recollection()].concat();
        [others, payments, self.of_user()].concat()
    }
}

#[test]
fn every_route_with_a_parameter_is_listed() {
    let all: Vec<&str> = public_routes().iter().chain(&internal_routes()).map(|r| r.path).collect();
    let tried =
        || RECORDS.iter().map(|(path, _)| *path).chain(NO_RECORDS.iter().map(|(path, _)| *path));
    for path in all.iter().filter(|path| path.split('/').any(is_record_parameter)) {
        assert_eq!(tried().filter(|tried| tried == path).count(), 1, "list {path} once above");
    }
    for path in tried() {
        assert!(all.contains(&path), "{path} is not a route");
    }
}

/// Returns what operators and company A itself see of A.
async fn visible_state(app: &TestApp) -> Vec<Value> {
    let mut seen = vec![app.get("/payment/list").await.data().clone()];
    for path in ["", "/wallet", "/wallet/entries", "/events", "/messages", "/providers", "/audit"] {
        let path = format!("/companies/{}{path}", app.company.id);
        let mut shown = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        if path.ends_with("/audit") {
            // Without the reads of this function itself.
            let entries = shown["docs"].as_array_mut().expect("a list");
            entries.retain(|entry| entry["action"] != "personal_data.read");
            shown = shown["docs"].take();
        }
        seen.push(shown);
    }
    seen
}

both! {
    async fn a_record_of_another_company_gets_the_response_of_a_missing_one(app: TestApp) {
        let a = create_records(app).await;
        let b = app.new_company("Beta Lending").await;
        let before = visible_state(app).await;
        let named = || {
            let find = |path: &str| RECORDS.iter().find(|(record, _)| *record == path);
            app.routes().into_iter().filter_map(move |(base, _, route)| Some((base, find(route.path)?.1, route)))
        };
        for (base, names, route) in named() {
            let missing = send(app, base, &route, &b, UNKNOWN_ID).await;
            assert_eq!(missing.failure().0, 404, "{}", route.path);
            for name in names(&a) {
                let response = send(app, base, &route, &b, name).await;
                assert_eq!((response.status, &response.body), (missing.status, &missing.body), "{} {name}", route.path);
            }
        }
        app.run_until_idle().await;
        assert_eq!(visible_state(app).await, before);
        let key = Company { key: text(&a.key, "api_key").to_owned(), ..app.company.clone() };
        app.request(&key, Method::GET, "/payment/list", None).await.data();

        // The names are right: A finds its records under them.
        for (base, names, route) in named() {
            let missing = send(app, base, &route, &b, UNKNOWN_ID).await;
            let mut found = false;
            for name in names(&a) {
                found |= send(app, base, &route, &app.company, name).await.body != missing.body;
            }
            assert!(found, "{} {}", route.method, route.path);
        }
        app.run_until_idle().await;
    }

    async fn no_list_shows_a_record_of_another_company(app: TestApp) {
        let a = create_records(app).await;
        let b = app.new_company("Beta Lending").await;
        let mut of_a = String::new();
        let lists = app.routes().into_iter().filter(|(_, _, route)| {
            route.method == "get"
                && !route.path.split('/').any(is_record_parameter)
                && (matches!(route.access, Access::Company(_)) || route.path.contains("{company}"))
        });
        for (base, _, route) in lists {
            of_a += &send(app, base, &route, &app.company, "").await.data().to_string();
            let of_b = send(app, base, &route, &b, "").await.data().to_string();
            let shown = a.all().into_iter().chain([&*app.company.id, "Acme Lending"]).find(|trace| of_b.contains(trace));
            assert_eq!(shown, None, "{}: {of_b}", route.path);
        }
        assert_eq!(a.all().into_iter().find(|trace| !of_a.contains(trace)), None, "missing from the lists of A");

        let today = NOW.to_datetime().format("%d-%m-%Y");
        for filter in [
            "page=1", "status=success", "status=pending", "provider=provider_a", "payment_channel=card",
            "user_id=user-of-a", &format!("created_at={today}"), &format!("paid_at={today}"),
            "sort-created_at=asc", "sort-updated_at=desc",
        ] {
            let path = format!("/payment/list?{filter}");
            assert_ne!(app.get(&path).await.data()["total"], 0, "{filter}");
            let listed = app.request(&b, Method::GET, &path, None).await.data().clone();
            assert_eq!((&listed["total"], &listed["docs"]), (&json!(0), &json!([])), "{filter}");
        }
    }

    async fn a_payment_for_another_companys_user_is_rejected(app: TestApp) {
        let a = create_records(app).await;
        let b = app.new_company("Beta Lending").await;
        for user_id in [text(&a.user, "user_id"), text(&a.user, "id"), UNKNOWN_ID] {
            let mut order = app.order("order-of-b");
            order["user_id"] = json!(user_id);
            let refused = app.request(&b, Method::POST, "/payment/initialize", Some(order)).await;
            assert_eq!(refused.failure(), (404, "user not found"));
        }
        assert_eq!(app.request(&b, Method::GET, "/payment/list", None).await.data()["total"], 0);
    }

    async fn two_companies_can_use_the_same_names(app: TestApp) {
        let b = app.new_company("Beta Lending").await;
        let both = [&app.company, &b];
        let mut made = Vec::new();
        for (company, first_name) in both.into_iter().zip(["Ada", "Bola"]) {
            let user = json!({
                "user_id": "one", "first_name": first_name, "last_name": "Obi", "email": "one@example.com",
            });
            let user = app.request(company, Method::POST, "/user/create", Some(user)).await;
            let mut order = app.order("order-1");
            order["user_id"] = json!("one");
            order["amount"] = json!(if first_name == "Ada" { 1_000 } else { 3_000 });
            let payment = app.request(company, Method::POST, "/payment/initialize", Some(order)).await;
            made.push((user.data().clone(), payment.data().clone()));
        }
        assert_ne!(made[0].0["id"], made[1].0["id"]);
        assert_eq!((&made[0].1["reference"], &made[1].1["reference"]), (&json!("order-1"), &json!("order-1")));
        assert_eq!(made[0].1["service_ref"], "order-1");
        assert_ne!(made[1].1["service_ref"], "order-1"); // unique at the shared account

        let states = async || {
            let mut states = Vec::new();
            for company in both {
                let path = "/payment/fetch/reference/order-1";
                let payment = app.request(company, Method::GET, path, None).await.data().clone();
                let wallet = app.operator(Method::GET, &format!("/companies/{}/wallet", company.id), Value::Null).await;
                states.push(json!([
                    payment["user"]["first_name"], payment["amount"], payment["status"],
                    wallet.data()["pending"], wallet.data()["balance"],
                ]));
            }
            states
        };
        app.complete(&made[1].1, "success").await;
        app.run_until_idle().await;
        assert_eq!(states().await, [json!(["Ada", 1_000, "pending", 1_000, 0]), json!(["Bola", 3_000, "success", 0, 2_855])]);
        app.complete(&made[0].1, "success").await;
        app.run_until_idle().await;
        assert_eq!(states().await, [json!(["Ada", 1_000, "success", 0, 985]), json!(["Bola", 3_000, "success", 0, 2_855])]);
        assert_eq!(app.events(), ["payment.success", "payment.success"]);
        let events: Vec<Value> = app.simulators.events().iter().map(|e| serde_json::from_str(&e.body).expect("JSON")).collect();
        let events: Vec<(&Value, &Value)> = events.iter().map(|e| (&e["company_id"], &e["data"]["id"])).collect();
        let paid = |n: usize| (json!(both[n].id), made[n].1["id"].clone());
        assert_eq!(events, [(&paid(0).0, &paid(0).1), (&paid(1).0, &paid(1).1)]);
    }
}
