//! JSON keys are in the documented order.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    app::{OPERATOR_TOKEN, TestApp},
    command_line::run_against,
    identity,
    lending::{SUCCESS_CARD, complete_page, create_card, create_loan, create_user},
};

const SUCCESS: &[&str] = &["error", "message", "data"];
const LIST: &[&str] = &["total", "page", "per_page", "prev", "next", "total_page", "docs"];
const USER: &[&str] = &[
    "id", "user_id", "first_name", "last_name", "middle_name", "email", "phone", "date_of_birth",
    "gender", "address", "state", "city", "country", "country_code", "image", "employment_status",
    "years_of_employment", "email_verified", "phone_verified", "active", "role", "age", "metadata",
    "created_at", "updated_at",
];
const UID: &[&str] = &[
    "id", "user", "user_id", "identity", "verified", "verified_at", "verified_by",
    "can_be_verified_by", "face_data", "details", "email", "phone_number", "expires_at",
    "created_at", "updated_at",
];
const BVN: &[&str] = &[
    "first_name", "last_name", "middle_name", "date_of_birth", "registration_date",
    "enrollment_bank", "enrollment_branch", "email", "gender", "level_of_account", "lga_of_origin",
    "lga_of_residence", "marital_status", "name_on_card", "nationality", "phone_number",
    "phone_number2", "residential_address", "state_of_origin", "state_of_residence", "title",
    "watch_listed", "image",
];
const CARD: &[&str] = &[
    "id", "user", "user_id", "default", "payment_service", "valid", "currency", "card",
    "signature", "service_ref", "checkout", "created_at", "updated_at",
];
const CARD_DETAILS: &[&str] = &[
    "last_4_digits", "card_holder_name", "bin", "card_type", "bank", "country_code", "exp_month",
    "exp_year", "email",
];
const CHECKOUT: &[&str] = &["success_url", "cancel_url", "url"];
const RECOLLECTION: &[&str] = &[
    "id", "user", "user_id", "loan", "status", "amount", "currency", "payment_service",
    "payment_channel", "reference", "message", "with_provider", "callback_url", "repaid_at",
    "card", "direct_debit", "checkout", "metadata", "created_at", "updated_at",
];
const PAYMENT: &[&str] = &[
    "id", "user", "user_id", "email", "payment_service", "amount", "fees", "currency", "reference",
    "status", "narration", "payment_response", "metadata", "service_ref", "message",
    "callback_url", "checkout", "channels", "paid_at", "payment_channel", "charge", "created_at",
    "updated_at",
];
const EVENT: &[&str] = &["company_id", "event", "service", "data"];
const PAYMENT_IN_EVENT: &[&str] = &[
    "id", "user", "user_id", "email", "payment_service", "amount", "fees", "currency", "reference",
    "status", "narration", "metadata", "paid_at", "payment_channel",
];

/// JSON whose objects keep the order of the text.
#[derive(Debug)]
struct Ordered(Value);

impl Ordered {
    fn of(text: &str) -> Ordered {
        let value: Value = serde_json::from_str(text).expect("JSON");
        // Makes sure that this parser keeps the order of keys.
        let probe: Value = serde_json::from_str(r#"{"b":0,"a":0}"#).expect("JSON");
        assert_eq!(probe.to_string(), r#"{"b":0,"a":0}"#);
        Ordered(value)
    }

    fn keys(&self, pointer: &str) -> Vec<&str> {
        let object = self.0.pointer(pointer).and_then(Value::as_object);
        object
            .unwrap_or_else(|| panic!("no object at {pointer} of {self:?}"))
            .keys()
            .map(String::as_str)
            .collect()
    }

    /// Checks that documented keys are in order; other keys may be anywhere between them.
    #[track_caller]
    fn check(&self, pointer: &str, documented: &[&str], absent: &[&str]) {
        let keys = self.keys(pointer);
        let found: Vec<&str> =
            keys.iter().copied().filter(|key| documented.contains(key)).collect();
        let expected: Vec<&str> =
            documented.iter().copied().filter(|key| !absent.contains(key)).collect();
        assert_eq!(found, expected, "{pointer}: {keys:?}");
    }
}

async fn text(request: RequestBuilder) -> String {
    request.send().await.expect("a response").text().await.expect("a text")
}

async fn request_ordered(app: &TestApp, method: Method, path: &str, body: Value) -> Ordered {
    let request = app
        .client
        .request(method, format!("{}/api/v1{path}", app.api))
        .bearer_auth(&app.company.key);
    let request = if body.is_null() { request } else { request.json(&body) };
    let response = Ordered::of(&text(request).await);
    response.check("", SUCCESS, &[]);
    response
}

async fn get_ordered(app: &TestApp, path: &str) -> Ordered {
    request_ordered(app, Method::GET, path, Value::Null).await
}

async fn post_ordered(app: &TestApp, path: &str, body: Value) -> Ordered {
    request_ordered(app, Method::POST, path, body).await
}

both! {
    async fn keys_of_users_and_uid_records_are_in_documented_order(app: TestApp) {
        let ada = json!({
            "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com",
            "metadata": { "zone": 1, "area": { "y": 2, "x": 3 } },
        });
        post_ordered(app, "/user/create", ada).await.check("/data", USER, &[]);
        let list = get_ordered(app, "/user/list").await;
        list.check("/data", LIST, &[]);
        list.check("/data/docs/0", USER, &[]);
        identity::set_up(app).await;
        let uid = post_ordered(app, "/kyc/nigeria/bvn/lookup", json!({ "bvn": identity::BVN, "user_id": "ada" })).await;
        uid.check("/data", UID, &[]);
        uid.check("/data/details", BVN, &[]);
        let list = get_ordered(app, "/kyc/uid/list/ada").await;
        list.check("/data/0", UID, &[]);
        list.check("/data/0/details", BVN, &[]);
    }

    async fn keys_of_cards_and_recollections_are_in_documented_order(app: TestApp) {
        create_user(app, "ada").await;
        let card = json!({ "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/saved" } });
        let made = post_ordered(app, "/card/create", card).await;
        made.check("/data", CARD, &[]);
        made.check("/data/card", CARD_DETAILS, &[]);
        made.check("/data/checkout", CHECKOUT, &[]);
        get_ordered(app, "/card/list/ada").await.check("/data/0", CARD, &["checkout"]);
        let begun = create_card(app, "ada").await;
        complete_page(app, &begun, "success", SUCCESS_CARD).await;
        app.run_until_idle().await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        let manual = json!({ "loan": "loan-1", "amount": 1, "with_provider": false, "reference": "rec-1" });
        let manual = post_ordered(app, "/recollection/create", manual).await;
        manual.check("/data", RECOLLECTION, &["card", "direct_debit", "checkout"]);
        let paid = json!({
            "loan": "loan-1", "amount": 1, "with_provider": true, "payment_channel": "checkout",
            "checkout": { "success_url": "https://lender.example/paid" },
        });
        let paid = post_ordered(app, "/recollection/create", paid).await;
        paid.check("/data", RECOLLECTION, &["card", "direct_debit"]);
        paid.check("/data/checkout", CHECKOUT, &[]);
        get_ordered(app, "/recollection/fetch/reference/rec-1").await.check("/data", RECOLLECTION, &["card", "direct_debit", "checkout"]);
        let list = get_ordered(app, "/recollection/list").await;
        list.check("/data", LIST, &[]);
        list.check("/data/docs/0/user", USER, &[]);
        app.run_until_idle().await;
        let mut events_checked = 0;
        for event in app.simulators.events() {
            let body = Ordered::of(&event.body);
            body.check("", EVENT, &[]);
            match event.event.split('.').next() {
                Some("card") => body.check("/data", CARD, &["checkout"]),
                Some("recollection") => body.check("/data", RECOLLECTION, &["card", "direct_debit", "checkout"]),
                _ => panic!("{}", event.event),
            }
            events_checked += 1;
        }
        assert_eq!(events_checked, 2);
    }

    async fn keys_of_payments_events_and_errors_are_in_documented_order(app: TestApp) {
        create_user(app, "ada").await;
        let mut order = app.order("order-1");
        order["user_id"] = json!("ada");
        let begun = post_ordered(app, "/payment/initialize", order.clone()).await;
        begun.check("/data", PAYMENT, &[]);
        begun.check("/data/checkout", CHECKOUT, &[]);
        app.complete(&begun.0["data"], "success").await;
        app.run_until_idle().await;
        get_ordered(app, "/payment/fetch/reference/order-1").await.check("/data", PAYMENT, &[]);
        let list = get_ordered(app, "/payment/list").await;
        list.check("/data", LIST, &[]);
        list.check("/data/docs/0", PAYMENT, &["payment_response"]);
        list.check("/data/docs/0/user", USER, &[]);
        let event = Ordered::of(&app.simulators.events()[0].body);
        event.check("", EVENT, &[]);
        event.check("/data", PAYMENT_IN_EVENT, &[]);
        // Operator commands keep the order, too.
        let seen = run_against(&app.internal, OPERATOR_TOKEN, &["event", "list", &app.company.id, "--json"]).await;
        Ordered::of(seen.success_output()).check("/docs/0/body/data", PAYMENT_IN_EVENT, &[]);
        let shown = run_against(&app.internal, OPERATOR_TOKEN, &["payment", "list", &app.company.id, "--json"]).await;
        let shown = Ordered::of(shown.success_output());
        shown.check("", LIST, &[]);
        shown.check("/docs/0", PAYMENT, &["payment_response"]);

        order["amount"] = json!(0);
        let refused = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
        let refused = Ordered::of(&text(refused.bearer_auth(&app.company.key).json(&order)).await);
        assert_eq!(refused.keys(""), ["error", "message"]);
        let done = app.client.get(format!("{}/health/live", app.api));
        assert_eq!(text(done).await, r#"{"error":false,"message":"alive"}"#);
    }

    async fn a_replayed_response_is_identical_byte_for_byte(app: TestApp) {
        let send = async || {
            let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
            let mut order = app.order("order-1");
            order["metadata"] = json!({ "zone": 1, "area": { "y": 2, "x": 3 } });
            text(request.bearer_auth(&app.company.key).header("Idempotency-Key", "once").json(&order)).await
        };
        let first = send().await;
        Ordered::of(&first).check("/data", PAYMENT, &[]);
        assert_eq!(send().await, first);
    }
}
