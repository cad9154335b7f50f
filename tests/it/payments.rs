//! Payments, from initialize to the signed event.

use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{PAYSTACK_KEY, TestApp};

both! {
    async fn a_successful_payment_credits_the_wallet(app: TestApp) {
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["status"], "pending");
        assert_eq!(payment["service_ref"], "order-1");
        assert_eq!(payment["charge"], 0);
        assert_eq!(payment["paid_at"], Value::Null);
        assert_eq!(app.wallet().await["pending"], json!(2500.5));

        app.complete(&payment, "success").await;
        app.run_until_idle().await;

        let paid = app.fetch("order-1").await;
        assert_eq!(paid["status"], "success");
        assert_eq!(paid["payment_channel"], "card");
        assert_eq!(paid["fees"], json!(137.51)); // 1.5 % and 100
        assert_eq!(paid["paid_at"], "2026-11-21T09:00:00.000Z");
        let wallet = app.wallet().await;
        assert_eq!((&wallet["balance"], &wallet["pending"]), (&json!(2362.99), &json!(0)));
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_declined_payment_fails_when_the_reconciler_verifies_it(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "failed").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending"); // no webhook for failures
        app.advance(60).await;
        assert_eq!(app.fetch("order-1").await["status"], "failed");
        assert_eq!(app.wallet().await["pending"], json!(0));
        assert_eq!(app.events(), ["payment.failed"]);
    }

    async fn an_abandoned_payment_stays_pending(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "abandoned").await;
        app.advance(73 * 3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "pending");
        assert_eq!(app.wallet().await["pending"], json!(2500.5));
        assert!(app.events().is_empty());
    }

    async fn a_success_after_a_failure_is_accepted(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "failed").await;
        app.advance(60).await;
        app.complete(&payment, "success").await; // retried on the same checkout page
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        assert_eq!(app.events(), ["payment.failed", "payment.success"]);
    }

    async fn duplicate_webhooks_and_verifications_credit_once(app: TestApp) {
        app.simulators.faults().push(Fault::new("notification", FaultKind::Duplicate).times(1));
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        let verify = async || app.post("/payment/verify/order-1", json!({})).await;
        let (one, two) = tokio::join!(verify(), verify());
        assert_eq!((&one.data()["status"], &two.data()["status"]), (&json!("success"), &json!("success")));
        app.run_until_idle().await;
        app.advance(24 * 3600).await;
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_payment_with_another_amount_or_currency_stays_pending(app: TestApp) {
        for (reference, minor, currency, message) in [
            ("order-1", 10_000, "NGN", "amount mismatch"),
            ("order-2", 250_050, "USD", "currency mismatch"),
        ] {
            let payment = app.initialize(reference).await;
            app.complete(&payment, "success").await;
            assert!(app.simulators.paystack().tamper(reference, minor, currency));
            app.run_until_idle().await;
            assert_eq!(app.fetch(reference).await["status"], "pending");
            let verified = app.post(&format!("/payment/verify/{reference}"), json!({})).await;
            assert_eq!(verified.failure(), (400, message));
        }
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert!(app.events().is_empty());
    }

    async fn verify_returns_the_status_of_a_payment(app: TestApp) {
        let verify = async |reference: &str| {
            app.post(&format!("/payment/verify/{reference}"), json!({})).await
        };
        assert_eq!(verify("nothing").await.failure(), (404, "payment not found"));
        let payment = app.initialize("order-1").await;
        assert_eq!(verify("order-1").await.failure(), (400, "payment still pending"));
        app.complete(&payment, "success").await;
        assert_eq!(verify("order-1").await.data()["status"], "success");
        app.run_until_idle().await;
        assert_eq!(verify("order-1").await.data()["status"], "success");

        let payment = app.initialize("order-2").await;
        app.complete(&payment, "failed").await;
        assert_eq!(verify("order-2").await.data()["status"], "failed");
        app.run_until_idle().await;
    }

    async fn repeated_requests_with_a_reference_return_one_payment(app: TestApp) {
        let (one, two) = tokio::join!(app.initialize("order-1"), app.initialize("order-1"));
        assert_eq!((&one["id"], &one["checkout"]), (&two["id"], &two["checkout"]));
        let again = app.initialize("order-1").await;
        assert_eq!((&one["id"], &one["checkout"]), (&again["id"], &again["checkout"]));
        let requests = app.simulators.paystack().requests();
        assert_eq!(requests.iter().filter(|(_, path)| path == "/transaction/initialize").count(), 1);
        assert_eq!(app.wallet().await["pending"], json!(2500.5));
    }

    async fn a_request_that_waited_for_a_failed_attempt_makes_the_next_one(app: TestApp) {
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut).delay_ms(500));
        let begin = || app.post("/payment/initialize", app.order("order-1"));
        let (one, two) = tokio::join!(begin(), begin());
        let (failed, done) = if one.status == 200 { (two, one) } else { (one, two) };
        assert_eq!(failed.failure().0, 502);
        assert!(done.data()["checkout"]["url"].is_string(), "{}", done.body);
        assert_eq!(app.get("/payment/list").await.data()["total"], 1);
        app.run_until_idle().await;
    }

    async fn payments_on_a_companys_own_account_do_not_change_its_wallet(app: TestApp) {
        let path = format!("/companies/{}/providers/provider_a", app.company.id);
        app.use_paystack(&path, "sk_test_the_companys_own").await;
        let payment = app.initialize("order-1").await;
        assert_eq!(app.wallet().await["pending"], json!(0));
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_dollar_payment_credits_the_dollar_balance(app: TestApp) {
        let mut order = app.order("order-1");
        order["currency"] = json!("USD");
        order["amount"] = json!(10);
        let payment = app.post("/payment/initialize", order).await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let wallet = app.wallet().await;
        assert_eq!(wallet["balance"], json!(0));
        assert_eq!(wallet["balances"]["USD"], json!({ "balance": 9.61, "pending": 0 }));
    }
}

// ---- failures of the provider -------------------------------------------------------------------

both! {
    async fn a_payment_resumes_after_a_failure_of_the_provider(app: TestApp) {
        for (n, kind) in [
            FaultKind::Error500,
            FaultKind::Malformed,
            FaultKind::Cut,
            FaultKind::CutAfter,
        ]
        .into_iter()
        .enumerate()
        {
            app.simulators.faults().push(Fault::new("initialize", kind).times(1));
            let reference = format!("order-{n}");
            let refused = app.post("/payment/initialize", app.order(&reference)).await;
            let (status, message) = refused.failure();
            assert_eq!(status, 502, "{kind:?}");
            assert_eq!(message, "provider_a is unavailable, please try again later");
            let found = app.fetch(&reference).await;
            assert_eq!((&found["status"], &found["checkout"]["url"]), (&json!("pending"), &Value::Null));

            let resumed = app.initialize(&reference).await;
            assert_eq!(resumed["id"], found["id"]);
            app.complete(&resumed, "success").await;
            app.run_until_idle().await;
            assert_eq!(app.fetch(&reference).await["status"], "success", "{kind:?}");
        }
        assert_eq!(app.wallet().await["balance"], json!(4.0 * 2362.99));
    }

    async fn a_payment_that_the_provider_rejects_as_invalid_is_deleted(app: TestApp) {
        let mut order = app.order("order-1");
        order["email"] = json!("ädä@example.com");
        // The second request waits for the first, and gets the same error.
        app.simulators.faults().push(Fault::new("initialize", FaultKind::SlowAfter).times(1).delay_ms(200));
        let begin = async || app.post("/payment/initialize", order.clone()).await;
        let (one, other) = tokio::join!(begin(), begin());
        let message = "the email field must be one that provider_a accepts";
        assert_eq!((one.failure(), other.failure()), ((400, message), (400, message)));
        let gone = app.get("/payment/fetch/reference/order-1").await;
        assert_eq!(gone.failure(), (404, "payment not found"));
        assert_eq!(app.wallet().await["pending"], json!(0));
        assert_eq!(app.initialize("order-1").await["service_ref"], "order-1");
        app.run_until_idle().await;
    }

    async fn a_failed_verification_is_retried(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.simulators.faults().push(Fault::new("verify", FaultKind::Error500).times(3));
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending");
        let verified = app.post("/payment/verify/order-1", json!({})).await;
        assert_eq!(verified.failure().0, 502);
        app.advance(60).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn the_reconciler_settles_a_payment_whose_webhook_was_lost(app: TestApp) {
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(1));
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending");
        app.advance(60).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }
}

/// A slow provider exceeds the call timeout: 504, and the payment resumes.
#[tokio::test]
async fn a_slow_provider_causes_504() {
    let flags = ["--plugin-call-timeout-s=1"];
    let app = TestApp::start_with(crate::app::Engine::Sqlite, &flags).await;
    let slow = Fault::new("initialize", FaultKind::SlowAfter).times(1).delay_ms(3_000);
    app.simulators.faults().push(slow);
    let refused = app.post("/payment/initialize", app.order("order-1")).await;
    let message = "provider_a did not respond in time, please try again later";
    assert_eq!(refused.failure(), (504, message));
    let resumed = app.initialize("order-1").await;
    app.complete(&resumed, "success").await;
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    app.finish().await;
}

// ---- input --------------------------------------------------------------------------------------

both! {
    async fn invalid_input_gets_400_with_the_field_and_stores_nothing(app: TestApp) {
        let edited = |edit: &dyn Fn(&mut Value)| {
            let mut order = app.order("order-1");
            edit(&mut order);
            order
        };
        let set = |field: &'static str, value: Value| {
            edited(&move |order| match field.split_once('.') {
                Some((outer, inner)) => order[outer][inner] = value.clone(),
                None => order[field] = value.clone(),
            })
        };
        let long = "x".repeat(101);
        for (order, message) in [
            (set("user_id", json!(5)), "the user_id field must be a string"),
            (set("email", Value::Null), "the email field is required"),
            (set("email", json!("nobody")), "the email field must be a valid email address"),
            (set("amount", Value::Null), "the amount field is required"),
            (set("amount", json!(0)), "the amount field must be greater than 0"),
            (set("amount", json!(-5)), "the amount field must be greater than 0"),
            (set("amount", json!("5")), "the amount field must be a number"),
            (set("amount", json!(1.005)), "the amount field must be a number with at most 2 decimals"),
            (set("currency", Value::Null), "the currency field is required"),
            (set("currency", json!("EUR")), "the currency field must be one of NGN, USD"),
            (set("currency", json!(1)), "the currency field must be a string"),
            (set("reference", json!(long)), "the reference field must be at most 100 characters"),
            (set("reference", json!("a b")), "the reference field must be visible characters only"),
            (set("narration", json!(["x"])), "the narration field must be a string"),
            (set("callback_url", json!("example.com")), "the callback_url field must be a valid http or https URL"),
            (set("channels", json!("card")), "the channels field must be a list of at most 100 strings"),
            (set("channels", json!(["cash"])), "the channels field must be any of card, bank, ussd, qr, mobile_money, bank_transfer"),
            (set("checkout", Value::Null), "the checkout.success_url field is required"),
            (set("checkout", json!("x")), "the checkout field must be an object"),
            (set("checkout.success_url", json!("x")), "the checkout.success_url field must be a valid http or https URL, or an app link"),
            (set("checkout.cancel_url", json!(7)), "the checkout.cancel_url field must be a string"),
            (set("payment_service", json!("cash")), "the payment_service field must be one of provider_a, provider_b, provider_c"),
            (set("payment_service", json!("provider_b")), "payment service key not found"),
            (set("metadata", json!([])), "the metadata field must be an object"),
            (set("charge", json!(1)), "charge is not allowed"),
            (set("charge", json!("1")), "the charge field must be a number"),
        ] {
            let refused = app.post("/payment/initialize", order.clone()).await;
            assert_eq!(refused.failure(), (400, message), "{order}");
        }
        let first = edited(&|order| {
            order["amount"] = json!(0);
            order["currency"] = json!("EUR");
        });
        let refused = app.post("/payment/initialize", first).await;
        assert_eq!(refused.failure().1, "the amount field must be greater than 0");
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        assert_eq!(app.wallet().await["pending"], json!(0));
        assert!(app.simulators.paystack().requests().is_empty());
    }

    async fn optional_fields_are_stored(app: TestApp) {
        let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada.obi@example.com" });
        app.post("/user/create", user).await.data();
        let order = json!({
            "user_id": "ada", "email": "other@example.com", "amount": 100.00, "currency": "NGN",
            "narration": "first instalment", "callback_url": "https://lender.example/hook",
            "channels": ["card", "ussd", "card"], "charge": 0, "payment_service": "provider_a",
            "checkout": { "success_url": "https://lender.example/ok", "cancel_url": "https://lender.example/no" },
            "metadata": { "loan": 7, "company": "forged", "server": "forged", "event": "forged" },
        });
        let payment = app.post("/payment/initialize", order).await.data().clone();
        assert!(payment["reference"].as_str().unwrap().starts_with("pay-"));
        assert_eq!(payment["email"], "ada.obi@example.com"); // the one on file
        assert_eq!(payment["user_id"], "ada");
        assert!(payment["user"].is_string());
        assert_eq!(payment["channels"], json!(["card", "ussd"]));
        assert_eq!(payment["checkout"]["cancel_url"], "https://lender.example/no");
        let metadata = json!({ "loan": 7, "company": app.company.id, "server": "test", "event": "payment" });
        assert_eq!(payment["metadata"], metadata);
        let fetched = app.get(&format!("/payment/fetch/{}", payment["id"].as_str().unwrap())).await;
        assert_eq!(fetched.data()["user"]["first_name"], "Ada");

        let unknown = json!({ "user_id": "nobody", "amount": 1, "currency": "NGN", "checkout": { "success_url": "https://x.example" } });
        assert_eq!(app.post("/payment/initialize", unknown).await.failure(), (404, "user not found"));
    }

    async fn lists_are_filtered_sorted_and_paged(app: TestApp) {
        let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada.obi@example.com" });
        app.post("/user/create", user).await.data();
        for n in 0..3 {
            let payment = app.initialize(&format!("order-{n}")).await;
            if n == 1 {
                app.complete(&payment, "success").await;
            }
            app.run_until_idle().await;
            app.advance(24 * 3600).await;
        }
        let mut order = app.order("order-3");
        order["user_id"] = json!("ada");
        app.post("/payment/initialize", order).await.data();

        for (query, references) in [
            ("", vec!["order-3", "order-2", "order-1", "order-0"]),
            ("?sort-created_at=asc", vec!["order-0", "order-1", "order-2", "order-3"]),
            ("?sort-updated_at=asc&limit=1", vec!["order-0"]),
            ("?status=success", vec!["order-1"]),
            ("?status=failed", vec![]),
            ("?user_id=ada", vec!["order-3"]),
            ("?provider=provider_b", vec![]),
            ("?provider=provider_a&limit=1", vec!["order-3"]),
            ("?payment_channel=card", vec!["order-1"]),
            ("?created_at=22-11-2026", vec!["order-1"]),
            ("?created_at=21-11-2026/22-11-2026", vec!["order-1", "order-0"]),
            ("?paid_at=22-11-2026", vec!["order-1"]),
            ("?paid_at=23-11-2026", vec![]),
            ("?limit=3&page=2", vec!["order-0"]),
            ("?limit=3&page=3", vec![]),
        ] {
            let listed = app.get(&format!("/payment/list{query}")).await.data().clone();
            let docs = listed["docs"].as_array().unwrap();
            let found: Vec<&str> = docs.iter().map(|doc| doc["reference"].as_str().unwrap()).collect();
            assert_eq!(found, references, "{query}");
            assert!(docs.iter().all(|doc| doc.get("payment_response").is_none()));
        }
        let listed = app.get("/payment/list?limit=3").await.data().clone();
        let paging = json!({ "total": 4, "page": 1, "per_page": 3, "prev": 0, "next": 2, "total_page": 2 });
        for (name, value) in paging.as_object().unwrap() {
            assert_eq!(&listed[name], value, "{name}");
        }
        assert_eq!(listed["docs"][0]["user"]["user_id"], "ada");
        for (query, message) in [
            ("?page=0", "the page field must be a whole number from 1 to 1000000000"),
            ("?limit=0", "the limit field must be a whole number of at least 1"),
            ("?status=paid", "the status field must be one of pending, success, failed, refunded"),
            ("?created_at=2026-11-21", "the created_at field must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY"),
            ("?paid_at=x", "the paid_at field must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY"),
            ("?sort-created_at=up", "the sort-created_at field must be one of asc, desc"),
        ] {
            assert_eq!(app.get(&format!("/payment/list{query}")).await.failure(), (400, message));
        }
    }
}

// ---- webhooks -----------------------------------------------------------------------------------

both! {
    async fn a_webhook_needs_a_signature_and_only_triggers_a_verification(app: TestApp) {
        let url = app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        let payment = app.initialize("order-1").await;
        let body = json!({ "event": "charge.success", "data": { "reference": "order-1", "id": 1, "amount": 250_050, "currency": "NGN", "status": "success" } }).to_string();
        let send = async |url: &str, signature: String| {
            let request = app.client.post(url).header("x-paystack-signature", signature);
            crate::app::reply(request.body(body.clone())).await
        };
        let signature = tollhouse_sandbox::paystack::sign(PAYSTACK_KEY, body.as_bytes());
        let forged = tollhouse_sandbox::paystack::sign("sk_test_another", body.as_bytes());
        assert_eq!(send(&url, forged).await.failure().0, 401);
        assert_eq!(send(&url, String::new()).await.failure().0, 401);
        let nowhere = format!("{}/api/v1/notifications/provider_a/unknown", app.api);
        assert_eq!(send(&nowhere, signature.clone()).await.failure().0, 404);
        let other = url.replace("provider_a", "provider_b");
        assert_eq!(send(&other, signature.clone()).await.failure().0, 404);

        // The signature is valid, but the provider reports no payment.
        assert_eq!(send(&url, signature.clone()).await.status, 200);
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending");

        app.complete(&payment, "success").await;
        assert_eq!(send(&url, signature).await.status, 200); // a duplicate
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.events(), ["payment.success"]);
    }
}
