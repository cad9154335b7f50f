//! Mandates that companies begin: defaults, deletion, idempotency, and what they refuse. The
//! conformance suite tests the life of a mandate at each provider.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp, reply},
    codes::merged,
    lending::{charge_instrument, create_loan, create_user, direct_debit, get_loan},
    simulation::crashing_host::CrashingHost,
};

const DAY: i64 = 86_400;

pub fn order(user_id: &str) -> Value {
    json!({
        "user_id": user_id, "currency": "NGN",
        "checkout": { "success_url": "https://lender.example/authorized" },
    })
}

/// A request with all that some provider requires.
pub fn complete_order(payment_service: &str) -> Value {
    let more = json!({
        "payment_service": payment_service, "max_amount": 50_000, "ends_at": "2027-11-21T09:00:00Z",
        "account": { "bank_code": "058", "account_number": "0123456789" },
    });
    merged(order("ada"), more)
}

async fn create(app: &TestApp) -> Value {
    app.post("/direct-debit/create", order("ada")).await.data().clone()
}

/// Authorizes a mandate as the payer, and waits until the bank has activated it.
async fn authorize(app: &TestApp, mandate: &Value) -> Value {
    app.complete(mandate, "success").await;
    app.advance(10).await;
    fetch(app, mandate).await
}

async fn fetch(app: &TestApp, mandate: &Value) -> Value {
    let path = format!("/direct-debit/fetch/{}", mandate["id"].as_str().expect("an id"));
    app.get(&path).await.data().clone()
}

async fn list(app: &TestApp, query: &str) -> Vec<Value> {
    let listed = app.get(&format!("/direct-debit/list/ada{query}")).await;
    assert_eq!(listed.body["message"], "Direct debits retrieved successfully");
    listed.data().as_array().expect("a list").clone()
}

async fn delete(app: &TestApp, mandate: &Value, query: &str) -> Reply {
    let path = format!("/direct-debit/delete/{}{query}", mandate["id"].as_str().expect("an id"));
    app.request(&app.company, Method::DELETE, &path, None).await
}

fn deactivations(app: &TestApp) -> usize {
    let requests = app.simulators.paystack().requests();
    requests.iter().filter(|(_, path)| path == "/customer/authorization/deactivate").count()
}

async fn rows(app: &TestApp) -> i64 {
    let count = async |tx: &mut store::Tx| {
        tx.sql("SELECT COUNT(*) FROM direct_debits").one::<(i64,)>().await
    };
    app.app.store.read(count).await.expect("a count").0
}

both! {
    async fn the_first_mandate_is_the_default_and_can_be_deleted_on_request(app: TestApp) {
        create_user(app, "ada").await;
        let first = authorize(app, &create(app).await).await;
        let second = authorize(app, &create(app).await).await;
        let defaults = [&first, &second].map(|mandate| mandate["default"].clone());
        assert_eq!(defaults, [json!(true), json!(false)]);
        assert_eq!(list(app, "?status=ready").await.len(), 2);
        assert_eq!(list(app, "?status=created").await.len(), 0);
        assert_eq!(list(app, "?sort-created_at=asc").await[0]["id"], first["id"]);
        let refused = delete(app, &first, "").await;
        assert_eq!(refused.failure(), (400, "default direct debit cannot be deleted"));
        assert_eq!(delete(app, &first, "?delete_default=true").await.status, 200);
        app.run_until_idle().await;
        assert_eq!(deactivations(app), 1);
        assert_eq!(fetch(app, &second).await["default"], true);
        assert_eq!(delete(app, &first, "").await.failure(), (404, "direct debit not found"));
        let path = format!("/direct-debit/fetch/{}", first["id"].as_str().expect("an id"));
        assert_eq!(app.get(&path).await.failure(), (404, "direct debit not found"));
        assert_eq!(rows(app).await, 2);
        app.advance(31 * DAY).await;
        let swept = tollhouse_app::lending::mandates::sweep(app.app.clone()).await;
        assert_eq!((swept.expect("a number"), rows(app).await), (1, 1));
    }

    async fn invalid_requests_are_rejected(app: TestApp) {
        create_user(app, "ada").await;
        app.install(artifacts::PROVIDER_B).await;
        app.install(artifacts::PROVIDER_C).await;
        for (change, failure) in [
            (json!({ "user_id": "eve" }), (404, "user not found")),
            (json!({ "checkout": {} }), (400, "the checkout.success_url field is required")),
            (json!({ "ends_at": "2020-01-01T00:00:00Z" }), (400, "the ends_at field must be in the future")),
            (json!({ "account": { "bank_code": "058" } }), (400, "the account.account_number field is required")),
            (json!({ "max_amount": 0 }), (400, "the max_amount field must be greater than 0")),
            (json!({ "payment_service": "provider_b" }), (400, "the payment_service field must be a provider with mandates")),
            (json!({ "payment_service": "provider_c" }), (400, "payment service key not found")),
            (json!({ "currency": "USD" }), (400, "the currency field must be one that provider_a accepts")),
        ] {
            let refused = app.post("/direct-debit/create", merged(order("ada"), change)).await;
            assert_eq!(refused.failure(), failure);
        }
        // A request that certainly had no effect leaves no mandate.
        assert_eq!(rows(app).await, 0);
        app.advance(60).await;
    }

    async fn a_field_that_the_provider_requires_is_named(app: TestApp) {
        crate::conformance::monnify::set_up(app).await;
        create_user(app, "ada").await;
        let complete = complete_order("provider_c");
        for field in ["account", "max_amount", "ends_at"] {
            let refused = app.post("/direct-debit/create", merged(complete.clone(), json!({ field: null }))).await;
            let message = format!("the {field} field must be one that provider_c accepts");
            assert_eq!(refused.failure(), (400, &*message));
        }
        assert_eq!(rows(app).await, 0);
    }

    async fn a_request_repeated_with_its_idempotency_key_begins_one_mandate(app: TestApp) {
        create_user(app, "ada").await;
        let send = async || {
            let request = app.client.post(format!("{}/api/v1/direct-debit/create", app.api));
            let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", "key-1");
            reply(request.json(&order("ada"))).await
        };
        let first = send().await;
        assert_eq!(send().await.data(), first.data());
        assert_eq!(list(app, "").await.len(), 1);
        app.run_until_idle().await;
        assert_eq!(app.events(), ["direct_debit.created"]);
    }

    async fn a_request_that_crashes_at_any_point_is_continued_under_its_key(app: TestApp) {
        create_user(app, "ada").await;
        let mut crashes = 0;
        loop {
            let key = format!("crash-{crashes}");
            let send = async |api: &str| {
                let request = app.client.post(format!("{api}/api/v1/direct-debit/create"));
                let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", &key);
                reply(request.json(&order("ada"))).await
            };
            let host = CrashingHost::start(app, crashes).await;
            let answered = host.until_crash(send(&host.api)).await;
            drop(host);
            // The lease of the key ends.
            app.advance(600).await;
            let mandate = send(&app.api).await.data().clone();
            assert_eq!(authorize(app, &mandate).await["status"], "ready");
            if let Some(answered) = answered {
                assert_eq!(answered.data(), &mandate);
                break;
            }
            crashes += 1;
        }
        assert!(crashes >= 4, "{crashes}");
        assert_eq!(list(app, "?status=ready").await.len(), crashes + 1);
        for kind in ["direct_debit.created", "direct_debit.ready"] {
            let events = app.events();
            assert_eq!(events.iter().filter(|event| *event == kind).count(), crashes + 1, "{kind}");
        }
    }

    async fn a_mandate_that_is_not_ready_is_not_charged(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(1, 100.0)]).await;
        let mandate = create(app).await;
        let debit = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "direct_debit": mandate["id"] });
        let refused = app.post("/recollection/create", debit.clone()).await;
        assert_eq!(refused.failure(), (400, "direct debit is not ready"));
        app.complete(&mandate, "success").await;
        app.run_until_idle().await;
        assert_eq!(fetch(app, &mandate).await["status"], "approved");
        let refused = app.post("/recollection/create", debit.clone()).await;
        assert_eq!(refused.failure(), (400, "direct debit is not ready"));
        let named = merged(debit.clone(), json!({ "direct_debit": null }));
        let refused = app.post("/recollection/create", named).await;
        assert_eq!(refused.failure(), (404, "direct debit not found"));
        app.advance(10).await;
        assert_eq!(charge_instrument(app, debit).await["direct_debit"], mandate["id"]);
        app.advance(60).await;
        app.advance(300).await;
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(100));
    }

    async fn a_due_installment_is_debited_only_once_the_mandate_is_ready(app: TestApp) {
        create_user(app, "ada").await;
        let mandate = create(app).await;
        let schedule = json!([
            { "due_date": crate::lending::date_in_days(1), "amount": 60 },
            { "due_date": crate::lending::date_in_days(4), "amount": 40 },
        ]);
        let loan = json!({ "user_id": "ada", "amount": 100, "currency": "NGN", "disbursed": true, "schedule": schedule });
        crate::lending::put_loan(app, "loan-1", loan).await;
        app.advance(2 * DAY).await;
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(0));
        authorize(app, &mandate).await;
        app.advance(3 * DAY).await;
        app.advance(3_600).await;
        let paid = get_loan(app, "loan-1").await["amount_paid"].as_f64().expect("a number");
        assert!(paid >= 40.0, "{paid}");
    }

    async fn a_mandate_that_is_not_authorized_in_time_is_cancelled(app: TestApp) {
        create_user(app, "ada").await;
        let mandate = create(app).await;
        app.complete(&mandate, "failed").await;
        app.advance(29 * DAY).await;
        assert_eq!(fetch(app, &mandate).await["status"], "created");
        app.advance(2 * DAY).await;
        assert_eq!(fetch(app, &mandate).await["status"], "cancelled");
        assert_eq!(app.events(), ["direct_debit.created", "direct_debit.cancelled"]);
        // The page is still open at the provider.
        app.complete(&mandate, "success").await;
        app.run_until_idle().await;
        assert_eq!((fetch(app, &mandate).await["status"].clone(), deactivations(app)), (json!("cancelled"), 1));
        app.advance(40 * DAY).await;
    }

    async fn a_mandate_of_another_system_is_ready_and_only_hidden_by_its_deletion(app: TestApp) {
        create_user(app, "ada").await;
        let put = direct_debit(app, "dd-1", "ada").await;
        assert_eq!((&put["status"], &put["checkout"]), (&json!("ready"), &Value::Null));
        assert_eq!(list(app, "").await, std::slice::from_ref(&put));
        let begun = authorize(app, &create(app).await).await;
        assert_eq!(begun["default"], false);
        assert_eq!(delete(app, &put, "?delete_default=true").await.status, 200);
        app.run_until_idle().await;
        assert_eq!(deactivations(app), 0);
        assert_eq!(fetch(app, &begun).await["default"], true);
        assert_eq!(direct_debit(app, "dd-1", "ada").await["status"], "ready");
        assert_eq!(list(app, "").await.len(), 2);
    }

    async fn the_account_of_a_mandate_stays_that_of_its_provider_account(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(30, 100.0)]).await;
        let mandate = authorize(app, &create(app).await).await;
        // Another account of the company does not know the mandate.
        let own = format!("/companies/{}/providers/provider_a", app.company.id);
        app.use_paystack(&own, "sk_test_own").await;
        let debit = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "direct_debit": mandate["id"] });
        charge_instrument(app, debit).await;
        app.advance(60).await;
        app.advance(300).await;
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(100));
    }

    async fn a_mandate_deleted_while_its_response_is_lost_is_forgotten(app: TestApp) {
        create_user(app, "ada").await;
        app.simulators.faults().push(Fault::new("mandate", FaultKind::CutAfter));
        let lost = app.post("/direct-debit/create", order("ada")).await;
        assert_eq!(lost.failure().0, 502);
        let [mandate] = &list(app, "").await[..] else { panic!("one mandate") };
        assert_eq!(mandate["checkout"]["url"], Value::Null);
        assert_eq!(delete(app, mandate, "").await.status, 200);
        app.advance(31 * DAY).await;
        assert_eq!(list(app, "").await, [Value::Null; 0]);
        assert_eq!(app.events(), ["direct_debit.cancelled"]);
    }
}
