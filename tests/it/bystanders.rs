//! Companies do not affect each other through equal idempotency keys or rate limits, on any
//! authenticated route.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::routes::Route;
use tollhouse_http::Access;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Company, Engine, OPERATOR_TOKEN, Reply, TestApp, reply},
    codes::{EMAIL, PHONE, email_request, use_gateways},
    conformance::monnify::{self, account_order},
    disputes::open_dispute,
    event_endpoints,
    exceptions::insert_exception,
    identity,
    lending::{
        OTHER_CARD, SUCCESS_CARD, complete_page, direct_debit_body, fail_card_refund, loan_body,
        policy_body,
    },
    mandates, portal,
};

/// A company with records for every route.
struct Tenant {
    company: Company,
    /// One to rotate and one to revoke.
    keys: [String; 2],
    event: String,
    endpoint: String,
    member: String,
    payment: String,
    uid: String,
    /// The default card, and one that is paid but not verified yet.
    cards: [Value; 2],
    virtual_account: String,
    mandate: String,
    refund: String,
    exception: String,
    dispute: String,
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().expect(field).to_owned()
}

/// Creates the records with which each of [`CHANGES`] succeeds. The payment's reference is
/// `order-1`, and codes are 123456.
async fn set_up_company(app: &TestApp, company: Company) -> Tenant {
    let path = |rest: &str| format!("/companies/{}{rest}", company.id);
    app.operator(Method::PATCH, &path(""), json!({ "fixed_otp": "123456" })).await.data();
    let ada = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": EMAIL, "phone": PHONE });
    app.request(&company, Method::POST, "/user/create", Some(ada)).await.data();
    let first = begin_card(app, &company).await;
    complete_page(app, &first, "success", SUCCESS_CARD).await;
    let refund = fail_card_refund(app, &company.id, &first["id"]).await;
    let exception = insert_exception(app, &company.id).await;
    let loan = path("/loans/loan-1");
    app.operator(Method::PUT, &loan, loan_body("ada")).await.data();
    monnify::set_up(app).await;
    let order = Some(account_order(None));
    let account = app.request(&company, Method::POST, "/virtual-account/create", order).await;
    let order = Some(mandates::order("ada"));
    let mandate = app.request(&company, Method::POST, "/direct-debit/create", order).await;
    use_gateways(app, &["termii"]).await;
    for what in ["email", "phone"] {
        let send = format!("/user/{what}-verification/send/ada");
        assert_eq!(app.request(&company, Method::GET, &send, None).await.status, 200);
    }
    let uid = identity::free_uid(app, &company, json!({ "send_otp": true })).await;
    let order = Some(app.order("order-1"));
    let payment = app.request(&company, Method::POST, "/payment/initialize", order).await;
    app.complete(payment.data(), "success").await;
    app.run_until_idle().await;
    let second = begin_card(app, &company).await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    let page = format!("{}/complete", text(&second["checkout"], "url"));
    let paid = json!({ "outcome": "success", "card": OTHER_CARD });
    app.client.post(page).json(&paid).send().await.expect("a response");
    let events = app.operator(Method::GET, &path("/events"), Value::Null).await;
    let new_key = async || {
        let made = app.operator(Method::POST, &path("/keys"), json!({})).await;
        text(made.data(), "id")
    };
    let endpoint = event_endpoints::create(app, &company, json!({ "active": false })).await;
    let email = format!("ben@{}.example", company.id.to_lowercase());
    let member = portal::invite(app, &company, &email, "company-support").await;
    Tenant {
        endpoint: text(&endpoint, "id"),
        member: text(&member, "id"),
        keys: [new_key().await, new_key().await],
        event: text(&events.data()["docs"][0], "id"),
        payment: text(payment.data(), "id"),
        uid,
        cards: [first["id"].clone(), second["id"].clone()],
        virtual_account: text(account.data(), "id"),
        mandate: text(mandate.data(), "id"),
        refund,
        exception,
        dispute: open_dispute(app, &company.id, payment.data()).await,
        company,
    }
}

async fn begin_card(app: &TestApp, company: &Company) -> Value {
    let card = Some(new_card(app));
    app.request(company, Method::POST, "/card/create", card).await.data().clone()
}

fn new_card(_: &TestApp) -> Value {
    json!({ "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://a.example/" } })
}

/// Returns a request body with which a route succeeds.
type Body = fn(&TestApp) -> Value;

/// Every route that changes records of a company, in an order in which all of them succeed.
const CHANGES: &[(&str, &str, Body)] = &[
    (
        "post",
        "/api/v1/user/create",
        |_| json!({ "first_name": "Ada", "last_name": "Obi", "email": "obi@example.com" }),
    ),
    (
        "post",
        "/api/v1/user/bulk/create",
        |_| json!({ "users": [{ "first_name": "B", "last_name": "C", "email": "b@example.com" }] }),
    ),
    ("post", "/api/v1/user/email-verification/verify/{user_id}", |_| json!({ "token": "123456" })),
    ("post", "/api/v1/user/phone-verification/verify/{user_id}", |_| json!({ "token": "123456" })),
    ("put", "/api/v1/user/edit/{user_id}", |_| json!({ "first_name": "Bola" })),
    ("post", "/api/v1/otp/send", |_| email_request(json!({}))),
    ("post", "/api/v1/otp/verify", |_| json!({ "identifier": "login", "token": "123456" })),
    ("post", "/api/v1/kyc/{country}/{*path}", |_| json!({ "bvn": identity::BVN })),
    ("post", "/api/v1/kyc/uid/verify/{uid_id}", |_| json!({ "token": "123456" })),
    ("post", "/api/v1/card/create", new_card),
    ("post", "/api/v1/card/verify/{card}", |_| json!({})),
    ("put", "/api/v1/card/default/set/{card}", |_| json!({})),
    ("delete", "/api/v1/card/delete/{card}", |_| json!({})),
    ("post", "/api/v1/virtual-account/create", |_| account_order(Some("loan-1"))),
    ("delete", "/api/v1/virtual-account/delete/{virtual_account}", |_| json!({})),
    ("post", "/api/v1/direct-debit/create", |_| mandates::order("ada")),
    ("delete", "/api/v1/direct-debit/delete/{direct_debit}", |_| json!({})),
    ("post", "/api/v1/account/resolve", |_| {
        json!({
            "bank_code": "058", "account_number": "0123456789", "payment_service": "provider_c",
        })
    }),
    (
        "post",
        "/api/v1/recollection/create",
        |_| json!({ "loan": "loan-1", "with_provider": false, "amount": 5, "reference": "order-1" }),
    ),
    ("post", "/api/v1/recollection/verify/{reference}", |_| json!({})),
    ("post", "/api/v1/payment/initialize", |app| app.order("order-2")),
    ("post", "/api/v1/payment/verify/{reference}", |_| json!({})),
    ("post", "/api/v1/event/trigger", |_| json!({ "type": "payment.failed" })),
    ("patch", "/internal/v1/companies/{company}", |_| json!({ "name": "Another name" })),
    ("post", "/internal/v1/companies/{company}/event-secret/rotate", |_| json!({})),
    (
        "post",
        "/internal/v1/companies/{company}/event-endpoints",
        |_| json!({ "url": "https://b.example/", "active": false }),
    ),
    (
        "patch",
        "/internal/v1/companies/{company}/event-endpoints/{endpoint}",
        |_| json!({ "active": false }),
    ),
    ("post", "/internal/v1/companies/{company}/event-endpoints/{endpoint}/secret/rotate", |_| {
        json!({})
    }),
    ("delete", "/internal/v1/companies/{company}/event-endpoints/{endpoint}", |_| json!({})),
    (
        "patch",
        "/internal/v1/companies/{company}/members/{member}",
        |_| json!({ "role": "company-finance" }),
    ),
    ("post", "/internal/v1/companies/{company}/members/{member}/invite", |_| json!({})),
    (
        "post",
        "/internal/v1/companies/{company}/events/trigger",
        |_| json!({ "type": "payment.failed" }),
    ),
    ("post", "/internal/v1/companies/{company}/keys", |_| json!({})),
    ("post", "/internal/v1/companies/{company}/keys/{key}/rotate", |_| json!({})),
    ("delete", "/internal/v1/companies/{company}/keys/{key}", |_| json!({})),
    (
        "put",
        "/internal/v1/companies/{company}/subscription",
        |_| json!({ "features": ["payments"] }),
    ),
    ("put", "/internal/v1/companies/{company}/providers/{provider}", |app| {
        let base_url = format!("{}/paystack", app.simulators.url());
        json!({ "credentials": { "secret_key": "sk_test_own", "base_url": base_url } })
    }),
    ("post", "/internal/v1/companies/{company}/providers/{provider}/test", |_| json!({})),
    (
        "put",
        "/internal/v1/companies/{company}/routing",
        |_| json!({ "route": { "providers": [{ "provider": "provider_a" }] } }),
    ),
    ("delete", "/internal/v1/companies/{company}/routing", |_| json!({})),
    (
        "post",
        "/internal/v1/companies/{company}/wallet/credit",
        |_| json!({ "amount": 5, "key": "c" }),
    ),
    (
        "post",
        "/internal/v1/companies/{company}/wallet/debit",
        |_| json!({ "amount": 5, "key": "d" }),
    ),
    (
        "put",
        "/internal/v1/companies/{company}/identities/{country}/{identity}",
        |_| json!({ "active": true }),
    ),
    ("put", "/internal/v1/companies/{company}/loans/{loan}", |_| loan_body("ada")),
    ("put", "/internal/v1/companies/{company}/collection-policy", |_| policy_body()),
    (
        "post",
        "/internal/v1/companies/{company}/collection-policy/simulate",
        |_| json!({ "policy": policy_body() }),
    ),
    ("put", "/internal/v1/companies/{company}/direct-debits/{direct_debit}", |_| {
        direct_debit_body("ada", "AUTH_mandate")
    }),
    ("post", "/internal/v1/companies/{company}/card-refunds/{refund}/retry", |_| json!({})),
    (
        "post",
        "/internal/v1/companies/{company}/disputes/{dispute}/answer",
        |_| json!({ "action": "accept", "message": "Our mistake" }),
    ),
    (
        "patch",
        "/internal/v1/companies/{company}/exceptions/{exception}",
        |_| json!({ "note": "asked the payer" }),
    ),
    (
        "post",
        "/internal/v1/companies/{company}/exceptions/{exception}/resolve",
        |_| json!({ "action": "none", "reason": "asked the payer" }),
    ),
    ("patch", "/internal/v1/companies/{company}/prices", |_| json!({ "otp.email": 2.5 })),
    ("post", "/internal/v1/companies/{company}/events/{event}/redeliver", |_| json!({})),
    ("post", "/internal/v1/companies/{company}/payments/{payment}/verify", |_| json!({})),
    ("post", "/internal/v1/companies/{company}/payments/{payment}/refund", |_| json!({})),
];

/// Routes that take an idempotency key and change no record of a company. This list may only
/// shrink.
const GLOBAL_CHANGES: &[(&str, &str)] = &[
    ("post", "/internal/v1/companies"),
    ("put", "/internal/v1/providers/{provider}"),
    ("post", "/internal/v1/providers/{provider}/test"),
    ("patch", "/internal/v1/prices"),
    ("put", "/internal/v1/identities/{country}/{identity}"),
    ("post", "/internal/v1/clock/advance"),
    // An e-mail address belongs to one account.
    ("post", "/internal/v1/companies/{company}/members"),
    // Exceptions and accounts of the service.
    ("patch", "/internal/v1/exceptions/{service_exception}"),
    ("post", "/internal/v1/exceptions/{service_exception}/resolve"),
    ("post", "/internal/v1/accounts/{account}/days/{day}/close"),
    ("post", "/internal/v1/accounts/{account}/reconcile"),
    ("post", "/internal/v1/plugins"),
    ("post", "/internal/v1/plugins/examine"),
    ("post", "/internal/v1/plugins/{plugin}/activate"),
    ("post", "/internal/v1/plugins/{plugin}/canary"),
    ("post", "/internal/v1/plugins/{plugin}/rollback"),
    ("post", "/internal/v1/plugins/{plugin}/deactivate"),
    ("delete", "/internal/v1/plugins/{plugin}/{digest}"),
    ("put", "/internal/v1/publishers/{publisher}"),
    ("delete", "/internal/v1/publishers/{publisher}"),
    ("post", "/internal/v1/jobs/retry"),
    ("post", "/internal/v1/master-key/rotate"),
    ("post", "/internal/v1/operators"),
    ("patch", "/internal/v1/operators/{operator}"),
    ("post", "/internal/v1/operators/{operator}/tokens"),
    ("delete", "/internal/v1/operators/{operator}/tokens/{token}"),
    ("post", "/internal/v1/operators/{operator}/invite"),
    ("post", "/internal/v1/sign-out"),
    ("put", "/internal/v1/me/views/{list}/{view}"),
    ("delete", "/internal/v1/me/views/{list}/{view}"),
    ("put", "/internal/v1/roles/{role}"),
    ("delete", "/internal/v1/roles/{role}"),
    ("post", "/internal/v1/approvals/{approval}/approve"),
    ("post", "/internal/v1/approvals/{approval}/reject"),
];

fn is_authenticated(route: &Route) -> bool {
    matches!(route.access, Access::Company(_) | Access::Operator(_))
}

/// Builds a request to `route` with the ids of the company's records.
fn build_request(app: &TestApp, own: &Tenant, route: &Route) -> reqwest::RequestBuilder {
    let [rotated, revoked] = &own.keys;
    let [first, second] = own.cards.each_ref().map(|card| card.as_str().expect("an id").to_owned());
    let fill = |segment| match segment {
        "{company}" => own.company.id.as_str(),
        "{key}" if route.method == "delete" => revoked,
        "{key}" => rotated,
        "{event}" => &own.event,
        "{endpoint}" => &own.endpoint,
        "{member}" => &own.member,
        "{payment}" | "{id}" => &own.payment,
        "{reference}" => "order-1",
        "{card}" if route.method == "delete" || route.path.contains("verify") => &second,
        "{card}" => &first,
        "{virtual_account}" => &own.virtual_account,
        "{loan}" => "loan-1",
        "{direct_debit}" if route.method == "delete" => &own.mandate,
        "{direct_debit}" => "dd-1",
        "{refund}" => &own.refund,
        "{exception}" => &own.exception,
        "{dispute}" => &own.dispute,
        "{recollection}" => "none",
        "{email_or_id}" => EMAIL,
        "{user_id}" => "ada",
        "{provider}" => "provider_a",
        "{country}" => "nigeria",
        "{*path}" => "bvn/lookup",
        "{uid_id}" => &own.uid,
        "{identity}" => "bvn",
        segment => segment,
    };
    let path = route.path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let method: Method = route.method.to_uppercase().parse().expect("a method");
    let (base, key) = match route.access {
        Access::Operator(_) => (&app.internal, OPERATOR_TOKEN),
        _ => (&app.api, &*own.company.key),
    };
    app.client.request(method, format!("{base}{path}")).bearer_auth(key)
}

/// Sends a change under the idempotency key that both companies use.
async fn change(app: &TestApp, own: &Tenant, route: &Route, body: Body) -> Reply {
    let request = build_request(app, own, route).header("idempotency-key", "the-same-for-everyone");
    reply(request.json(&body(app))).await
}

fn is_replay(response: &Reply) -> bool {
    response.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

both! {
    async fn two_companies_with_the_same_idempotency_key_get_their_own_responses(app: TestApp) {
        let a = set_up_company(app, app.company.clone()).await;
        let b = set_up_company(app, app.new_company("Beta Lending").await).await;
        let mut routes: Vec<Route> = app.routes().into_iter().map(|(_, _, route)| route).collect();
        for (method, path, body) in CHANGES {
            let at = routes.iter().position(|r| (r.method, r.path) == (*method, *path));
            let route = routes.remove(at.unwrap_or_else(|| panic!("{path} is not a route")));
            let of_a = change(app, &a, &route, *body).await;
            assert!(of_a.status == 200 && !is_replay(&of_a), "{method} {path}: {}", of_a.body);
            let of_b = change(app, &b, &route, *body).await;
            assert!(of_b.status == 200 && !is_replay(&of_b), "{method} {path}: {}", of_b.body);
            // Each company gets its own response replayed.
            for (own, first) in [(&a, &of_a), (&b, &of_b)] {
                let again = change(app, own, &route, *body).await;
                assert!(is_replay(&again), "{method} {path}: {}", again.body);
                assert_eq!(again.body, first.body, "{method} {path}");
            }
        }
        let left = routes.iter().filter(|route| route.takes_idempotency_key());
        let left: Vec<_> = left.map(|route| (route.method, route.path)).collect();
        assert_eq!(left, GLOBAL_CHANGES, "routes to add to CHANGES or GLOBAL_CHANGES");
        app.run_until_idle().await;
    }
}

#[tokio::test]
async fn a_company_at_its_rate_limit_affects_no_other_on_any_route() {
    const BURST: usize = 520;
    let flags = ["--rate-per-s=1".to_owned(), format!("--rate-burst={BURST}")];
    let app = TestApp::start_with(Engine::Sqlite, &flags.each_ref().map(|flag| &**flag)).await;
    let a = set_up_company(&app, app.company.clone()).await;
    let b = set_up_company(&app, app.new_company("Beta Lending").await).await;
    app.advance(3_600).await;
    for _ in 0..BURST {
        app.get("/payment/list").await.data();
    }
    let routes: Vec<Route> = app.routes().into_iter().map(|(_, _, route)| route).collect();
    assert!(2 * routes.len() < BURST, "the test exceeds the operators' rate limit");
    for route in routes.iter().filter(|route| is_authenticated(route)) {
        let what = format!("{} {}", route.method, route.path);
        // An error about the malformed body means that the request was not rate-limited.
        let send = |own| {
            reply(build_request(&app, own, route).header("content-type", "text/plain").body("{"))
        };
        let refused = matches!(route.access, Access::Company(_));
        let of_a = send(&a).await;
        assert_eq!(of_a.status == 429, refused, "{what}: {}", of_a.body);
        let of_b = send(&b).await;
        assert_ne!(of_b.status, 429, "{what}: {}", of_b.body);
    }
    app.run_until_idle().await;
    app.finish().await;
}
