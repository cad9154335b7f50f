//! Secrets are in no response, log, event or sandbox, and not in clear in the database.

mod accounts;
mod codes;
mod debts;
mod endpoints;
mod identities;
mod lab;
mod members;
mod operators;
mod phones;
mod places;
mod plugins;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollhouse_app::routes;
use tollhouse_sandbox::{Fault, FaultKind, mpesa};

use self::{
    lab::Lab,
    places::{backup_contents, check_logs, database_contents, encodings},
};
use crate::{
    app::{
        Engine, MASTER_KEY, OPERATOR_TOKEN, PAYSTACK_KEY, is_on_both_listeners, postgres, reply,
    },
    telemetry::logs,
    unruly::{SECRET, initialize_with_narration, install_unruly},
};

const TERMII_KEY: &str = "TLthekeyoftheservicesaccount";
const PREMBLY_KEY: &str = "test_sk_thekeyattheregisters";
const COMPANYS_OWN_KEY: &str = "sk_test_the_companys_own_account";
/// Its response is not JSON.
const FILE: &str = "GET /api/v1/user/file/{file}";
const METRICS: &str = "/metrics";
const GUESS: &str = "sk_test_a_key_that_nobody_has_ever_had";

// ---- the sandbox --------------------------------------------------------------------------------

both! {
    async fn a_plugin_sees_placeholders_that_egress_replaces_by_secrets(app: TestApp) {
        let upstream = install_unruly(app).await;
        let payment = initialize_with_narration(app, "order-1", "echo-secret").await.data().clone();
        let arrived = upstream.received().remove(0);
        assert_eq!(arrived.headers["authorization"], format!("Bearer {SECRET}"));
        assert_eq!(arrived.headers["x-secret"], SECRET);
        assert_eq!(arrived.body, format!("secret={SECRET}"));
        let placeholder = payment["checkout"]["url"].as_str().expect("what the plugin saw");
        assert!(placeholder.starts_with("vault-") && placeholder.len() > 32, "{placeholder}");
        // The secret is redacted from the response of an upstream that echoes it.
        let echoed = payment["payment_response"].as_str().expect("a text");
        assert!(echoed.contains("Bearer [secret]") && echoed.contains("secret=[secret]"), "{echoed}");
        assert!(!payment.to_string().contains(SECRET));
    }

    async fn text_of_a_client_that_looks_like_a_placeholder_is_not_replaced(app: TestApp) {
        let upstream = install_unruly(app).await;
        let earlier = initialize_with_narration(app, "order-1", "echo-secret").await.data().clone();
        let earlier = earlier["checkout"]["url"].as_str().expect("an earlier call's placeholder");
        let words = [
            earlier,
            "secret_key",
            "{{secret:secret_key}}",
            "${secret_key}",
            "vault-secret_key",
            "vault-00000000000000000000000000000000",
        ];
        for (n, words) in words.into_iter().enumerate() {
            initialize_with_narration(app, &format!("say-{n}"), &format!("say {words}")).await.data();
            assert_eq!(upstream.received().pop().expect("a request").body, words);
        }
    }
}

// ---- everything that a host does ----------------------------------------------------------------

/// Sets up plugins, accounts and a company.
async fn set_up(lab: &Lab) {
    for wasm in [artifacts::PROVIDER_A, artifacts::UNRULY] {
        assert_eq!(lab.send("POST /internal/v1/plugins", wasm).await["error"], false);
    }
    lab.name("provider", &json!("unruly"));
    let set = json!({ "credentials": { "secret_key": SECRET, "base_url": lab.upstream.url } });
    lab.call("PUT /internal/v1/providers/{provider}", set).await;
    let company = json!({
        "name": "Acme Lending", "server": "test", "event_url": format!("{}/events", lab.simulators.url()),
    });
    let company = lab.call("POST /internal/v1/companies", company).await;
    lab.name("company", &company["id"]);
    lab.name("api_key", &company["api_key"]);
    lab.name("event_secret", &company["event_secret"]);
    lab.name("provider", &json!("provider_a"));
    set_paystack(lab, "PUT /internal/v1/providers/{provider}", PAYSTACK_KEY).await;
}

async fn set_paystack(lab: &Lab, route: &str, key: &str) {
    let base_url = format!("{}/paystack", lab.simulators.url());
    let set = json!({ "credentials": { "secret_key": key, "base_url": base_url } });
    let account = lab.call(route, set).await;
    lab.call(&format!("{}/test", route.replace("PUT", "POST")), json!({})).await;
    lab.simulators
        .paystack()
        .set_webhook(key, account["notification_url"].as_str().expect("a URL"));
    let account = account["account"].as_str().expect("an id");
    lab.name("account", &json!(account));
}

/// Makes a refunded payment, one with an amount mismatch, and all failures of providers.
async fn pay_and_fail(lab: &Lab) {
    let payment = lab.pay("order-1").await;
    lab.name("payment", &payment["id"]);
    lab.name("id", &payment["id"]);
    lab.name("reference", &payment["reference"]);
    lab.settle().await;
    lab.call("POST /api/v1/payment/verify/{reference}", json!({})).await;
    lab.call("POST /internal/v1/companies/{company}/payments/{payment}/refund", json!({})).await;
    lab.pay("order-mismatch").await;
    assert!(lab.simulators.paystack().tamper("order-mismatch", 100, "NGN"));
    for (n, operation) in ["initialize", "verify"].into_iter().enumerate() {
        for kind in
            [FaultKind::SlowAfter, FaultKind::Cut, FaultKind::Error500, FaultKind::Malformed]
        {
            lab.simulators.faults().push(Fault::new(operation, kind).delay_ms(4_000));
            let reference = format!("order-{n}-{kind:?}");
            lab.begin("provider_a", &reference, "").await;
            lab.send(&format!("POST /api/v1/payment/verify/{reference}"), "{}").await;
        }
    }
    let misdeeds = [
        "echo-secret", "send-secret query", "log-secret", "panic", "wait", "many 20",
        "fetch http://10.0.0.1/", "say secret_key", "env",
    ];
    for (n, narration) in misdeeds.into_iter().enumerate() {
        lab.begin("unruly", &format!("unruly-{n}"), narration).await;
    }
    lab.settle().await;
}

/// Calls the other routes, and some of them with an invalid key.
async fn operate(lab: &Lab) {
    let user = json!({ "user_id": "ada", "first_name": "Adaeze", "last_name": "Obiwanne", "email": "ada.obi@example.com", "phone": "+2348031234567" });
    lab.call("POST /api/v1/user/create", user.clone()).await;
    lab.name("email_or_id", &json!("ada.obi@example.com"));
    lab.name("user_id", &json!("ada.obi@example.com"));
    lab.call("PUT /api/v1/user/edit/{user_id}", json!({ "middle_name": "Obiwanne" })).await;
    for what in ["email", "phone"] {
        let verify = format!("POST /api/v1/user/{what}-verification/verify/{{user_id}}");
        lab.send(&verify, r#"{"token":"none"}"#).await;
    }
    identities::look_up(lab).await;
    debts::collect(lab).await;
    let search = format!("{}/api/v1/user/list?search=Adaeze&metadata.name=Obiwanne", lab.api);
    let search = lab.client.get(search).bearer_auth(lab.named("api_key"));
    assert_eq!(lab.keep("a search", search).await["data"]["total"], 0);
    lab.call("POST /api/v1/user/bulk/create", json!({ "users": [user] })).await;
    let link = lab.send("GET /api/v1/user/export", "").await["data"].clone();
    let file = lab.client.get(link["path"].as_str().expect("a URL")).send().await;
    let file = file.expect("a response").text().await.expect("a text");
    assert!(file.contains("ada.obi@example.com"), "{file}");
    lab.responses.lock().unwrap().push((FILE.to_owned(), file));
    let of = |rest: &str| format!("/internal/v1/companies/{{company}}{rest}");
    let second = lab.call(&format!("POST {}", of("/keys")), json!({ "label": "second" })).await;
    lab.name("second_key", &second["api_key"]);
    lab.name("key", &second["id"]);
    let rotated = lab.call(&format!("POST {}", of("/event-secret/rotate")), json!({})).await;
    lab.name("second_secret", &rotated["event_secret"]);
    endpoints::create(lab).await;
    members::invite(lab).await;
    for (way, amount) in [("credit", 100), ("debit", 10)] {
        let movement = json!({ "amount": amount, "key": way });
        lab.call(&format!("POST {}", of(&format!("/wallet/{way}"))), movement).await;
    }
    lab.call(&format!("PATCH {}", of("")), json!({ "name": "Acme Loans" })).await;
    for prices in [&*of("/prices"), "/internal/v1/prices"] {
        lab.call(&format!("PATCH {prices}"), json!({ "otp.email": 2.5 })).await;
    }
    lab.call(
        &format!("PUT {}", of("/subscription")),
        json!({ "features": ["payments", "otp", "cards", "recollections"] }),
    )
    .await;
    let events = lab.call(&format!("GET {}", of("/events")), Value::String(String::new())).await;
    lab.name("event", &events["docs"][0]["id"]);
    lab.call(&format!("POST {}", of("/events/{event}/redeliver")), json!({})).await;
    lab.call(&format!("POST {}", of("/payments/{payment}/verify")), json!({})).await;
    let rotated = lab.call(&format!("POST {}", of("/keys/{key}/rotate")), json!({})).await;
    lab.name("third_key", &rotated["api_key"]);
    lab.call("POST /internal/v1/jobs/retry", json!({})).await;
    lab.call("POST /internal/v1/master-key/rotate", json!({})).await;
    set_paystack(lab, &format!("PUT {}", of("/providers/{provider}")), COMPANYS_OWN_KEY).await;
    lab.pay("order-own").await;
    lab.settle().await;
    lab.send("POST /api/v1/notifications/{provider}/{account}", r#"{"event":"forged"}"#).await;
    phones::pay(lab).await;
    accounts::open(lab).await;
    operators::use_all(lab).await;
    for base in
        [format!("{}/api/v1/payment/list", lab.api), format!("{}/internal/v1/audit", lab.internal)]
    {
        let refused = lab.keep("with a guess", lab.client.get(base).bearer_auth(GUESS)).await;
        assert_eq!(refused["error"], true);
    }
    read_all(lab).await;
    lab.call(accounts::DELETE, json!({})).await;
    lab.call(endpoints::DELETE, json!({})).await;
    lab.call(&format!("DELETE {}", of("/keys/{key}")), json!({})).await;
}

/// Calls every route that reads.
async fn read_all(lab: &Lab) {
    for route in routes::public_routes().into_iter().chain(routes::internal_routes()) {
        let route_name = format!("GET {}", route.path);
        let is_json = ![METRICS, phones::PAGE].contains(&route.path)
            && ![FILE, accounts::BANKS].contains(&&*route_name)
            && !is_on_both_listeners(route.path);
        if route.method == "get" && is_json {
            let response = lab.send(&route_name, "").await;
            assert_eq!(response["error"], false, "{}: {response}", route.path);
        }
    }
}

fn check_that_every_route_was_called(lab: &Lab) {
    let called: BTreeSet<String> =
        lab.responses.lock().unwrap().iter().map(|(route, _)| route.clone()).collect();
    let routes = routes::public_routes().into_iter().chain(routes::internal_routes());
    let missed: Vec<String> = routes
        .filter(|route| route.path != METRICS && !is_on_both_listeners(route.path))
        .map(|route| format!("{} {}", route.method.to_uppercase(), route.path))
        .filter(|route| !called.contains(route))
        .collect();
    assert!(missed.is_empty(), "not called: {missed:?}");
}

// ---- what is looked for, and where --------------------------------------------------------------

/// Name and value of each secret, and the only route that may return it.
async fn secrets(lab: &Lab) -> Vec<(&'static str, String, &'static str)> {
    const COMPANY: &str = "POST /internal/v1/companies";
    const KEY: &str = "POST /internal/v1/companies/{company}/keys";
    const ROTATED_KEY: &str = "POST /internal/v1/companies/{company}/keys/{key}/rotate";
    const ROTATE: &str = "POST /internal/v1/companies/{company}/event-secret/rotate";
    let url = format!("{}/paystack/transaction/verify/order-1", lab.simulators.url());
    let transaction = reply(lab.client.get(url).bearer_auth(PAYSTACK_KEY)).await.body;
    let token =
        transaction["data"]["authorization"]["authorization_code"].as_str().expect("a saved card");
    let of_operators = operators::secrets(lab);
    let others = vec![
        ("the first API key", lab.named("api_key"), COMPANY),
        ("the second API key", lab.named("second_key"), KEY),
        ("the third API key", lab.named("third_key"), ROTATED_KEY),
        ("the event secret", lab.named("event_secret"), COMPANY),
        ("the event secret after rotation", lab.named("second_secret"), ROTATE),
        ("an endpoint's secret", lab.named("endpoint_secret"), endpoints::CREATE),
        ("its secret after rotation", lab.named("second_endpoint_secret"), endpoints::ROTATE),
        ("the operator token", OPERATOR_TOKEN.to_owned(), ""),
        ("the master key", MASTER_KEY.to_owned(), ""),
        ("the service's provider key", PAYSTACK_KEY.to_owned(), ""),
        ("the company's provider key", COMPANYS_OWN_KEY.to_owned(), ""),
        ("unruly's secret", SECRET.to_owned(), ""),
        ("a key that was guessed", GUESS.to_owned(), ""),
        ("a card's token", token.to_owned(), ""),
        ("a saved card's token", lab.named("card_token"), ""),
        ("a mandate's token", debts::MANDATE.to_owned(), ""),
        ("an obtained mandate's token", lab.named("mandate_token"), ""),
        ("the key at a gateway", TERMII_KEY.to_owned(), ""),
        ("the key at the registers", PREMBLY_KEY.to_owned(), ""),
        ("a one-time password", lab.named("code"), ""),
        ("the key at Monnify", "the_secret_at_monnify".to_owned(), ""),
        ("a passkey", mpesa::Credentials::default().passkey, ""),
        ("a consumer secret", mpesa::Credentials::default().consumer_secret, ""),
        ("an initiator's password", mpesa::Credentials::default().initiator_password, ""),
    ];
    [others, of_operators].concat()
}

async fn check_secrets(lab: &Lab, logs: &str, telemetry: &str) {
    let backup = backup_contents(&lab.database).await;
    let stored = database_contents(&lab.database).await + &lab.at_rest.lock().unwrap().concat();
    let events: String =
        lab.simulators.events().iter().map(|e| format!("{:?} {}\n", e.headers, e.body)).collect();
    // Makes sure that no place is empty.
    for (place, text, there) in [
        ("the database", &*stored, "order-mismatch"),
        ("the database", &*stored, "/api/v1/payment/verify/{reference}"),
        ("a backup", &*backup, "order-mismatch"),
        ("the logs", logs, "plugin call"),
        ("the logs", logs, "upstream failed"),
        ("the logs", logs, "the secret is vault-"),
        ("the events", &*events, "payment.refunded"),
        ("the telemetry", telemetry, "tollhouse_plugin_calls_total"),
        ("the telemetry", telemetry, "payments.refund"),
        ("the telemetry", telemetry, "messages.deliver"),
    ] {
        assert!(text.contains(there), "{there} is not in {place}");
    }
    let places = [
        ("the database", &*stored),
        ("a backup", &*backup),
        ("the logs", logs),
        ("the events", &*events),
        ("the telemetry", telemetry),
    ];
    let personal = lab.personal.lock().unwrap().clone();
    assert!(personal.len() > 9, "{personal:?}");
    for text in &personal {
        let shown = places.iter().find(|(_, all)| all.contains(&**text));
        assert!(shown.is_none(), "{text} of a register in {}", shown.expect("one").0);
    }
    // The database has the payer's number, like those of users.
    for (place, text) in &places[2..] {
        assert!(!text.contains(&phones::PHONE[1..]), "the payer's number in {place}");
    }
    for (what, secret, shown_by) in secrets(lab).await {
        for disguise in encodings(&secret) {
            for (place, text) in places {
                assert!(!text.contains(&disguise), "{what} in {place}");
            }
        }
        let mut shown = 0;
        for (route, response) in lab.responses.lock().unwrap().iter() {
            let here = encodings(&secret).iter().any(|disguise| response.contains(disguise));
            assert!(!here || route == shown_by, "{what} in the response of {route}: {response}");
            shown += usize::from(here);
        }
        assert_eq!(shown, usize::from(!shown_by.is_empty()), "{what} is returned once, or never");
    }
}

/// Metrics and spans, including the span of the last request.
async fn telemetry(lab: &Lab) -> String {
    lab.collector.wait_for_span("DELETE /internal/v1/companies/{company}/keys/{key}").await;
    let page = lab.client.get(format!("{}{METRICS}", lab.internal)).send().await;
    let page = page.expect("a response").text().await.expect("text");
    page + &lab.collector.text()
}

async fn check_for_leaks(engine: Engine, log_format: &str) {
    let lab = Lab::start(engine, log_format).await;
    set_up(&lab).await;
    pay_and_fail(&lab).await;
    codes::send(&lab).await;
    plugins::change_versions(&lab).await;
    operate(&lab).await;
    check_that_every_route_was_called(&lab);
    let logs = std::fs::read_to_string(lab.database.dir.path().join("log")).expect("the log");
    let telemetry = telemetry(&lab).await;
    check_secrets(&lab, &logs, &telemetry).await;
    check_logs(&logs, &telemetry);
    match log_format {
        "json" => logs::check_json_lines(&logs, &lab.requests.lock().unwrap()),
        _ => logs::check_text_lines(&logs, &lab.requests.lock().unwrap()),
    }
    lab.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_personal_data_is_sent_logged_or_stored_in_clear_on_sqlite() {
    check_for_leaks(Engine::Sqlite, "json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_personal_data_is_sent_logged_or_stored_in_clear_on_postgres() {
    let Some(server) = postgres() else { return };
    check_for_leaks(Engine::Postgres(server), "human").await;
}
