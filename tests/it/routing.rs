//! Routing of payments across providers.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::{charges::METADATA_KEY, routing};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, TestApp},
    conformance::set_up_flutterwave,
    console::Browser,
    lending::{
        SUCCESS_CARD, charge_instrument, complete_page, create_card, create_loan,
        create_recollection, create_user, fetch_card, get_loan, saved_card,
    },
    portal,
};

/// A route over both providers.
fn both_providers(choose_by: &str) -> Value {
    json!({
        "providers": [{ "provider": "provider_a" }, { "provider": "provider_b" }],
        "choose_by": choose_by,
    })
}

fn path(app: &TestApp, rest: &str) -> String {
    format!("/companies/{}{rest}", app.company.id)
}

async fn set_policy(app: &TestApp, policy: Value) {
    app.operator(Method::PUT, &path(app, "/routing"), policy).await.data();
}

/// Sets up both providers and a policy.
async fn route(app: &TestApp, policy: Value) {
    set_up_flutterwave(app).await;
    set_policy(app, policy).await;
}

/// Makes all calls of the service account at Paystack fail before a request is sent.
async fn disconnect_paystack(app: &TestApp) {
    let credentials =
        json!({ "secret_key": PAYSTACK_KEY, "base_url": "http://127.0.0.1:1/paystack" });
    let set = json!({ "credentials": credentials, "active": true });
    app.operator(Method::PUT, "/providers/provider_a", set).await.data();
}

async fn choices(app: &TestApp, payment: &Value) -> Value {
    let id = payment["id"].as_str().expect("an id");
    let path = path(app, &format!("/payments/{id}/routing"));
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

/// The provider, reason and rule of each choice of a payment.
async fn chosen(app: &TestApp, payment: &Value) -> Value {
    summary(&choices(app, payment).await)
}

fn summary(choices: &Value) -> Value {
    let choices = choices.as_array().expect("a list").iter();
    choices.map(|one| json!([one["provider"], one["reason"], one["rule"]])).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn checkout(loan: &str) -> Value {
    json!({
        "loan": loan, "with_provider": true, "payment_channel": "checkout", "reference": "rec-1",
        "checkout": { "success_url": "https://a.example/" },
    })
}

/// Pays a page at Paystack, as if a request had arrived that the host considers not sent.
async fn pay_at_paystack(app: &TestApp, reference: &str, owner: &Value, minor: i64) {
    app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
    let url = format!("{}/paystack/transaction/initialize", app.simulators.url());
    let order = json!({
        "email": "ada@example.com", "amount": minor, "reference": reference,
        "metadata": { METADATA_KEY: owner },
    });
    let arrived = app.client.post(url).bearer_auth(PAYSTACK_KEY).json(&order).send().await;
    let arrived: Value = arrived.expect("a response").json().await.expect("JSON");
    let page = json!({ "checkout": { "url": arrived["data"]["authorization_url"] } });
    complete_page(app, &page, "success", SUCCESS_CARD).await;
}

const FLUTTERWAVE_CARD: &str = "5531886652142950";

/// The balance of a ledger account of the company.
async fn balance(app: &TestApp, account: &'static str) -> i64 {
    let company = app.company.id.clone();
    let read = async |tx: &mut tollhouse_platform::store::Tx| {
        tx.sql(
            "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM ledger_account_balances
             WHERE company_id = $1 AND account = $2",
        )
        .params(tollhouse_platform::store::params![&company, account])
        .value()
        .await
    };
    let read: tollhouse_platform::store::Result<i64> = app.app.store.read(read).await;
    read.expect("a balance")
}

both! {
    async fn a_request_without_a_provider_is_routed_by_the_policy(app: TestApp) {
        route(app, json!({
            "route": both_providers("order"),
            "rules": [{
                "name": "large",
                "when": { "currencies": ["NGN"], "min_amount": 10_000 },
                "route": { "providers": [{ "provider": "provider_b" }] },
            }],
        })).await;
        let small = app.initialize("small").await;
        assert_eq!(small["payment_service"], "provider_a");
        assert_eq!(chosen(app, &small).await, json!([["provider_a", "order", null]]));

        let mut order = app.order("large");
        order["amount"] = json!(10_000);
        let large = app.post("/payment/initialize", order).await.data().clone();
        assert_eq!(large["payment_service"], "provider_b");
        assert_eq!(chosen(app, &large).await, json!([["provider_b", "only", "large"]]));

        let mut order = app.order("named");
        order["payment_service"] = json!("provider_b");
        let named = app.post("/payment/initialize", order).await.data().clone();
        assert_eq!(named["payment_service"], "provider_b");
        assert_eq!(chosen(app, &named).await, json!([]));

        app.operator(Method::DELETE, &path(app, "/routing"), Value::Null).await.data();
        let default = app.initialize("default").await;
        assert_eq!(chosen(app, &default).await, json!([]));
    }

    async fn a_rule_applies_to_users_by_their_default_card(app: TestApp) {
        route(app, json!({
            "route": both_providers("order"),
            "rules": [{
                "name": "domestic cards",
                "when": { "card_countries": ["NG"], "card_bins": ["4084"] },
                "route": { "providers": [{ "provider": "provider_b" }] },
            }],
        })).await;
        create_user(app, "ada").await;
        let mut order = app.order("before");
        order["user_id"] = json!("ada");
        let before = app.post("/payment/initialize", order.clone()).await.data().clone();
        assert_eq!(before["payment_service"], "provider_a");
        saved_card(app, "ada", SUCCESS_CARD).await;
        order["reference"] = json!("after");
        let after = app.post("/payment/initialize", order).await.data().clone();
        assert_eq!(chosen(app, &after).await, json!([["provider_b", "only", "domestic cards"]]));
    }

    async fn a_provider_that_cannot_be_reached_is_replaced_before_the_response(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["payment_service"], "provider_b");
        assert_eq!(chosen(app, &payment).await, json!([
            ["provider_a", "order", null],
            ["provider_b", "failover", null],
        ]));
        let second = &choices(app, &payment).await[1]["providers"];
        assert_eq!((&second[0]["excluded"], &second[1]["excluded"]), (&json!("tried"), &Value::Null));
        // The pending balance has moved along.
        assert_eq!(balance(app, "pending").await, 250_050);
        assert_eq!(balance(app, "provider:provider_a").await, 0);
        assert_eq!(balance(app, "provider:provider_b").await, -250_050);

        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let paid = app.fetch("order-1").await;
        assert_eq!((&paid["status"], &paid["payment_service"]), (&json!("success"), &json!("provider_b")));
        assert_eq!(app.events(), ["payment.success"]);
        assert_eq!(balance(app, "pending").await, 0);
        assert_eq!(balance(app, "provider:provider_a").await, 0);
        assert_eq!(balance(app, "wallet").await, -balance(app, "provider:provider_b").await);
        let listed = app.get("/payment/list?provider=provider_b").await.data().clone();
        assert_eq!(listed["total"], 1);
    }

    async fn failover_between_own_and_service_accounts_keeps_the_books(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        let own = path(app, "/providers/provider_a");
        let credentials = json!({ "secret_key": "sk_test_own", "base_url": "http://127.0.0.1:1/paystack" });
        app.operator(Method::PUT, &own, json!({ "credentials": credentials, "active": true })).await.data();
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["payment_service"], "provider_b");
        assert_eq!(balance(app, "pending").await, 250_050);
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(balance(app, "pending").await, 0);
        assert_eq!(balance(app, "wallet").await, -balance(app, "provider:provider_b").await);
    }

    async fn after_an_unknown_outcome_a_payment_stays_until_the_provider_says_no(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        let faults = app.simulators.faults();
        faults.push(Fault::new("initialize", FaultKind::Cut).times(1));
        faults.push(Fault::new("verify", FaultKind::Cut).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        assert_eq!(app.fetch("order-1").await["payment_service"], "provider_a");
        // The verification at the provider fails.
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        assert_eq!(app.fetch("order-1").await["payment_service"], "provider_a");
        // Now it reports that nothing was created, and it has failed too often to be tried again.
        for n in 2..4 {
            faults.push(Fault::new("initialize", FaultKind::Cut).times(1));
            let order = app.order(&format!("order-{n}"));
            assert_eq!(app.post("/payment/initialize", order).await.failure().0, 502);
        }
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["payment_service"], "provider_b");
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_repeated_request_stays_at_a_provider_that_is_not_down(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        // A new payment would go to the other provider.
        let providers = json!([{ "provider": "provider_a", "weight": 0 }, { "provider": "provider_b" }]);
        set_policy(app, json!({ "route": { "providers": providers, "choose_by": "weight" } })).await;
        let repeated = app.initialize("order-1").await;
        assert_eq!(repeated["payment_service"], "provider_a");
        assert_eq!(chosen(app, &repeated).await, json!([["provider_a", "order", null]]));
    }

    async fn a_repeated_request_stays_at_its_provider_if_no_listed_one_can_be_used(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        set_policy(app, json!({ "route": { "providers": [{ "provider": "provider_b" }] } })).await;
        app.operator(Method::PUT, "/providers/provider_b", json!({ "active": false })).await.data();
        assert_eq!(app.initialize("order-1").await["payment_service"], "provider_a");
    }

    async fn a_card_is_saved_at_the_provider_to_which_it_was_failed_over(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        assert_eq!(card["payment_service"], "provider_b", "{card}");
        complete_page(app, &card, "success", FLUTTERWAVE_CARD).await;
        let saved = fetch_card(app, &card["id"]).await;
        assert_eq!((&saved["valid"], &saved["payment_service"]), (&json!(true), &json!("provider_b")));
        // Its token belongs to that account.
        create_loan(app, "loan-1", "ada", &[(30, 900.0)]).await;
        let body = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card" });
        let charged = charge_instrument(app, body).await;
        assert_eq!((&charged["status"], &charged["payment_service"]), (&json!("success"), &json!("provider_b")));
        assert_eq!(app.events(), ["card.validation.success", "recollection.success"]);
        assert_eq!(balance(app, "verification").await, 0);
    }

    async fn a_card_that_no_listed_provider_can_take_is_refused(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        create_user(app, "ada").await;
        for provider in ["provider_a", "provider_b"] {
            app.operator(Method::PUT, &format!("/providers/{provider}"), json!({ "active": false })).await.data();
        }
        let order = json!({ "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/saved" } });
        let refused = app.post("/card/create", order.clone()).await;
        assert_eq!(refused.failure().0, 400);
        assert!(refused.failure().1.contains("provider_a: deactivated"), "{}", refused.failure().1);
        // Sprout saves no cards.
        app.install(artifacts::SPROUT).await;
        let account = json!({ "credentials": { "token": "sprout", "base_url": "http://127.0.0.1:1" }, "active": true });
        app.operator(Method::PUT, "/providers/sprout", account).await.data();
        set_policy(app, json!({ "route": { "providers": [{ "provider": "sprout" }] } })).await;
        let refused = app.post("/card/create", order.clone()).await;
        assert!(refused.failure().1.contains("sprout: does not save cards"), "{}", refused.failure().1);
        // A request may name another one.
        let mut named = order;
        named["payment_service"] = json!("provider_a");
        app.operator(Method::PUT, "/providers/provider_a", json!({ "active": true })).await.data();
        assert_eq!(app.post("/card/create", named).await.data()["payment_service"], "provider_a");
    }

    async fn a_recollection_by_checkout_is_routed_and_failed_over(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 900.0)]).await;
        let begun = create_recollection(app, checkout("loan-1")).await.data().clone();
        assert_eq!(begun["payment_service"], "provider_b", "{begun}");
        let id = begun["id"].as_str().expect("an id");
        let of_recollection = path(app, &format!("/recollections/{id}"));
        let choices = app.operator(Method::GET, &format!("{of_recollection}/routing"), Value::Null).await;
        assert_eq!(summary(choices.data()), json!([
            ["provider_a", "order", null],
            ["provider_b", "failover", null],
        ]));
        complete_page(app, &begun, "success", FLUTTERWAVE_CARD).await;
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        assert_eq!(balance(app, "wallet").await, -balance(app, "provider:provider_b").await);
        assert_eq!(balance(app, "provider:provider_a").await, 0);
        let lou = Browser::signed_in(app, "lou", "support-act").await;
        lou.get(&format!("/console{of_recollection}")).await.shows(&[
            "Why this provider", "the provider before it did not open a session",
        ]);

        // No provider is left, but a repeated request needs none.
        app.operator(Method::PUT, "/providers/provider_b", json!({ "active": false })).await.data();
        let repeated = create_recollection(app, checkout("loan-1")).await;
        assert_eq!(repeated.failure().1, "loan already been paid completely");
    }

    async fn a_late_success_at_the_former_provider_saves_the_card_there(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        assert_eq!(card["payment_service"], "provider_b");
        pay_at_paystack(app, &format!("card-{}", text(&card["id"])), &card["id"], 10_000).await;
        let saved = fetch_card(app, &card["id"]).await;
        assert_eq!((&saved["valid"], &saved["payment_service"]), (&json!(true), &json!("provider_a")), "{saved}");
        // The other page is paid, too, and refunded like the first.
        complete_page(app, &card, "success", FLUTTERWAVE_CARD).await;
        assert_eq!(fetch_card(app, &card["id"]).await["payment_service"], "provider_a");
        assert_eq!(balance(app, "verification").await, 0);
        create_loan(app, "loan-1", "ada", &[(30, 900.0)]).await;
        let body = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card" });
        let charged = charge_instrument(app, body).await;
        assert_eq!((&charged["status"], &charged["payment_service"]), (&json!("success"), &json!("provider_a")));
    }

    async fn a_late_success_at_the_former_provider_repays_the_loan_once(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 900.0)]).await;
        let begun = create_recollection(app, checkout("loan-1")).await.data().clone();
        assert_eq!(begun["payment_service"], "provider_b");
        pay_at_paystack(app, &format!("rec-{}", text(&begun["id"])), &begun["id"], 90_000).await;
        let path = format!("/recollection/fetch/{}", text(&begun["id"]));
        let repaid = app.get(&path).await.data().clone();
        assert_eq!((&repaid["status"], &repaid["payment_service"]), (&json!("success"), &json!("provider_a")));
        assert_eq!(balance(app, "wallet").await, -balance(app, "provider:provider_a").await);
        // The other page is paid, too: its money waits for an operator.
        complete_page(app, &begun, "success", FLUTTERWAVE_CARD).await;
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], 900);
        assert_eq!(balance(app, "suspense").await, -balance(app, "provider:provider_b").await);
        assert_eq!(app.get(&path).await.data()["payment_service"], "provider_a");
        assert_eq!(app.events(), ["recollection.success"]);
    }

    async fn a_recollection_stays_at_its_provider_after_an_unknown_outcome(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 900.0)]).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(1));
        assert_eq!(create_recollection(app, checkout("loan-1")).await.failure().0, 502);
        // A new one would go to the other provider.
        set_policy(app, json!({ "route": { "providers": [{ "provider": "provider_b" }] } })).await;
        let repeated = create_recollection(app, checkout("loan-1")).await.data().clone();
        assert_eq!(repeated["payment_service"], "provider_a", "the provider knows it: {repeated}");
    }

    async fn a_late_success_at_the_former_provider_settles_the_payment_there(app: TestApp) {
        route(app, json!({ "route": both_providers("order") })).await;
        disconnect_paystack(app).await;
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["payment_service"], "provider_b");
        pay_at_paystack(app, "order-1", &payment["id"], 250_050).await;
        let paid = app.fetch("order-1").await;
        assert_eq!((&paid["status"], &paid["payment_service"]), (&json!("success"), &json!("provider_a")));
        for account in ["pending", "provider:provider_b"] {
            assert_eq!(balance(app, account).await, 0, "{account}");
        }
        assert_eq!(balance(app, "wallet").await, -balance(app, "provider:provider_a").await);

        // The other page is paid, too: its money waits for an operator.
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(balance(app, "suspense").await, -balance(app, "provider:provider_b").await);
        assert_eq!(app.fetch("order-1").await["payment_service"], "provider_a");
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn the_router_learns_success_rates_and_fees(app: TestApp) {
        route(app, json!({ "route": both_providers("score"), "explore_percent": 0 })).await;
        let preview = path(app, "/routing/preview?amount=2500&channel=card");
        let unknown = app.operator(Method::GET, &preview, Value::Null).await.data().clone();
        assert_eq!(unknown["providers"][0]["estimate"]["fees_percent"], Value::Null);
        for (n, outcome) in ["failed", "failed", "failed"].into_iter().enumerate() {
            let mut order = app.order(&format!("failed-{n}"));
            order["payment_service"] = json!("provider_a");
            let payment = app.post("/payment/initialize", order).await.data().clone();
            app.complete(&payment, outcome).await;
        }
        let mut order = app.order("paid");
        order["payment_service"] = json!("provider_b");
        let payment = app.post("/payment/initialize", order).await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        app.advance(60).await;
        routing::learn(&app.app).await.expect("outcomes");
        let known = app.operator(Method::GET, &preview, Value::Null).await.data().clone();
        let of = |n: usize, what: &str| known["providers"][n]["estimate"][what].as_f64().unwrap_or(-1.0);
        assert!(of(0, "success_rate") < of(1, "success_rate"), "{known}");
        assert!((of(1, "fees_percent") - 1.4).abs() < 0.01, "{known}");
        assert_eq!((&known["provider"], &known["reason"]), (&json!("provider_b"), &json!("score")));
        assert_eq!(app.initialize("routed").await["payment_service"], "provider_b");
    }

    async fn a_payment_that_no_listed_provider_can_take_is_refused(app: TestApp) {
        route(app, json!({ "route": both_providers("score") })).await;
        let refused = async |order: Value| {
            let refused = app.post("/payment/initialize", order).await;
            let (status, message) = refused.failure();
            assert_eq!(status, 400);
            message.to_owned()
        };
        let mut order = app.order("order-1");
        order["currency"] = json!("XOF");
        assert!(refused(order).await.starts_with("the currency field must be one of "));
        let mut order = app.order("order-1");
        order["channels"] = json!(["qr"]);
        for provider in ["provider_a", "provider_b"] {
            let account = json!({ "active": false });
            app.operator(Method::PUT, &format!("/providers/{provider}"), account).await.data();
        }
        assert!(refused(order).await.contains("provider_a: deactivated"));
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    }

    async fn invalid_policies_are_refused_with_the_field(app: TestApp) {
        let rule = |when: Value| json!({
            "route": both_providers("order"),
            "rules": [{ "name": "one", "when": when, "route": both_providers("order") }],
        });
        set_up_flutterwave(app).await;
        for (policy, message) in [
            (json!({}), "the route.providers field is required"),
            (json!({ "route": both_providers("luck") }), "choose_by field must be one of score, weight, order"),
            (json!({ "route": { "providers": [{ "provider": "cash" }] } }), "the provider field must be one of provider_a, provider_b, not cash"),
            (json!({ "route": { "providers": [{ "provider": "provider_a" }, { "provider": "provider_a" }] } }), "providers field must be a list without duplicates"),
            (json!({ "route": both_providers("order"), "explore_percent": 51 }), "explore_percent field must be"),
            (rule(json!({})), "when field must be an object with a condition"),
            (rule(json!({ "min_amount": 5 })), "min_amount field must be omitted, unless currencies has one currency"),
            (rule(json!({ "currencies": ["NGN"], "min_amount": 5, "max_amount": 4 })), "max_amount field must be at least min_amount"),
            (rule(json!({ "card_countries": ["Nigeria"] })), "card_countries field must be a list of ISO 3166 codes"),
            (rule(json!({ "card_bins": ["40840812"] })), "card_bins field must be a list of the first 1 to 6 digits"),
            (rule(json!({ "channels": ["cash"] })), "channels field must be"),
        ] {
            let refused = app.operator(Method::PUT, &path(app, "/routing"), policy).await;
            let (status, text) = refused.failure();
            assert_eq!(status, 400, "{text}");
            assert!(text.contains(message), "{text}");
        }
        let company = app.operator(Method::GET, &path(app, ""), Value::Null).await;
        assert_eq!(company.data()["routing"], Value::Null);
    }

    async fn an_operator_edits_a_policy_on_the_console(app: TestApp) {
        set_up_flutterwave(app).await;
        let mut browser = Browser::signed_in(app, "eve", "company-admin").await;
        let page = format!("/console{}", path(app, "/routing"));
        let empty = browser.get(&page).await;
        empty.shows(&["Routing", "Edit the policy", "There is no policy."]);
        assert!(!empty.html.contains("Remove the policy"));
        let token = empty.form_token();
        let save = async |browser: &mut Browser<'_>, providers: &str| {
            let form = [
                ("form_token", &*token), ("providers", providers), ("choose_by", "weight"),
                ("success_value_percent", "10"), ("explore_percent", "0"),
            ];
            browser.submit(&page, &form).await
        };
        assert_eq!(save(&mut browser, "provider_a: 3, provider_b: 0").await.location, page);
        let saved = browser.get(&page).await;
        saved.shows(&["provider_a: 3, provider_b: 0", "by weight", "10 %", "Success rate", "Remove the policy"]);
        let refused = save(&mut browser, "cash").await;
        let message = "The provider field must be one of provider_a, provider_b, not cash.";
        assert!(refused.status == 400 && refused.html.contains(message), "{}", refused.html);

        for provider in ["provider_a", "provider_b"] {
            app.operator(Method::PUT, &format!("/providers/{provider}"), json!({ "active": false })).await.data();
        }
        browser.get(&page).await.shows(&["provider_a: deactivated", "No listed provider can be used."]);
        for provider in ["provider_a", "provider_b"] {
            app.operator(Method::PUT, &format!("/providers/{provider}"), json!({ "active": true })).await.data();
        }

        // Rules, which the form does not show, are kept.
        let mut policy = json!({ "route": both_providers("order"), "rules": [{
            "name": "dollars", "when": { "currencies": ["USD"] }, "route": { "providers": [{ "provider": "provider_b" }] },
        }] });
        set_policy(app, policy.take()).await;
        save(&mut browser, "provider_a").await;
        browser.get(&page).await.shows(&["dollars", "currencies: USD", "provider_b"]);

        let payment = app.initialize("order-1").await;
        let mut support = Browser::signed_in(app, "sam", "support-act").await;
        let of_payment = format!("/console{}", path(app, &format!("/payments/{}", payment["id"].as_str().expect("an id"))));
        support.get(&of_payment).await.shows(&["Why this provider", "no other provider could be used"]);
        let ada = portal::member(app, &app.company, "company-finance").await;
        let of_member = of_payment.replace("/console/", "/portal/");
        ada.get(&of_member).await.shows(&["Why this provider", "no other provider could be used"]);
        let seen = ada.get(&page.replace("/console/", "/portal/")).await;
        seen.shows(&["Routing", "dollars"]);
        assert!(!seen.html.contains("Edit the policy") && !seen.html.contains("99.0 %"), "{}", seen.html);
        assert_eq!(support.submit(&page, &[("form_token", "x")]).await.status, 403);

        assert_eq!(browser.submit(&format!("{page}/remove"), &[("form_token", &*token)]).await.location, page);
        browser.get(&page).await.shows(&["There is no policy."]);
    }
}
