//! Recollections: manual, and through checkout, card and direct debit.

use futures::future::{join, join_all};
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use crate::{
    app::{Company, NOW, Reply, TestApp, reply},
    codes::{balance, merged},
    lending::{
        SUCCESS_CARD, charge_instrument, complete_page, create_loan, create_recollection,
        create_user, direct_debit, feed_entries, get_loan, put_loan, saved_card,
    },
};

const DAY: i64 = 86_400;

fn manual(amount: f64) -> Value {
    json!({ "loan": "loan-1", "with_provider": false, "amount": amount })
}

fn charge(channel: &str, more: Value) -> Value {
    merged(json!({ "loan": "loan-1", "with_provider": true, "payment_channel": channel }), more)
}

fn checkout(more: Value) -> Value {
    let pages =
        json!({ "success_url": "https://a.example/", "cancel_url": "https://a.example/no" });
    charge("checkout", merged(json!({ "checkout": pages }), more))
}

async fn set_up(app: &TestApp) {
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(10, 1_000.0), (20, 500.0), (30, 500.0)]).await;
}

async fn fetch(app: &TestApp, recollection: &Value) -> Value {
    app.get(&format!("/recollection/fetch/{}", recollection["id"].as_str().unwrap()))
        .await
        .data()
        .clone()
}

async fn verify(app: &TestApp, recollection: &Value) -> Reply {
    app.post(
        &format!("/recollection/verify/{}", recollection["reference"].as_str().unwrap()),
        json!({}),
    )
    .await
}

fn remaining(loan: &Value) -> Vec<f64> {
    let entries = loan["schedule"].as_array().expect("a schedule").iter();
    entries.map(|entry| entry["amount_remaining"].as_f64().expect("a number")).collect()
}

both! {
    async fn a_manual_recollection_repays_the_oldest_installment_first(app: TestApp) {
        set_up(app).await;
        let at = NOW.plus_seconds(-DAY);
        let body = merged(manual(1_200.0), json!({
            "payment_channel": "transfer", "reference": "r-1", "repaid_at": at, "metadata": { "teller": 7 },
        }));
        let made = create_recollection(app, body).await;
        assert_eq!(made.body["message"], "Recollection created successfully");
        let recollection = made.data();
        for (field, value) in [
            ("status", json!("success")),
            ("amount", json!(1_200)),
            ("currency", json!("NGN")),
            ("payment_service", json!("")),
            ("payment_channel", json!("transfer")),
            ("reference", json!("r-1")),
            ("with_provider", json!(false)),
            ("repaid_at", json!(at)),
            ("loan", json!("loan-1")),
            ("user_id", json!("ada")),
            ("metadata", json!({ "teller": 7 })),
        ] {
            assert_eq!(recollection[field], value, "{field}");
        }
        assert_eq!(recollection["user"]["email"], "ada@example.com");
        assert!(recollection.get("card").is_none() && recollection.get("checkout").is_none());
        let loan = get_loan(app, "loan-1").await;
        assert_eq!(remaining(&loan), [0.0, 300.0, 500.0]);
        for (field, value) in [
            ("amount_paid", json!(1_200)),
            ("amount_remaining_to_pay", json!(800)),
            ("last_pay_date", json!(at)),
            ("next_pay_date", loan["schedule"][1]["due_date"].clone()),
            ("paid", json!(false)),
        ] {
            assert_eq!(loan[field], value, "{field}");
        }
        let by_reference = app.get("/recollection/fetch/reference/r-1").await.data().clone();
        assert_eq!((&by_reference["loan"], &by_reference["id"]), (&loan, &recollection["id"]));
        // Never more than the outstanding amount.
        app.advance(1).await;
        let last = create_recollection(app, manual(5_000.0)).await.data().clone();
        assert_eq!((&last["amount"], &last["payment_channel"]), (&json!(800), &json!("cash")));
        assert!(last["reference"].as_str().unwrap().starts_with("rec-"));
        let paid = get_loan(app, "loan-1").await;
        assert_eq!((&paid["paid"], &paid["next_pay_date"], &paid["amount_remaining_to_pay"]), (&json!(true), &Value::Null, &json!(0)));
        app.run_until_idle().await;
        assert_eq!(app.events(), ["recollection.success", "recollection.success"]);
        let transactions = feed_entries(app, "transactions").await;
        assert_eq!(transactions.len(), 2);
        assert_eq!(transactions[0]["installments"].as_array().unwrap().len(), 2);
        assert_eq!((&transactions[0]["applied"], &transactions[0]["overpayment"]), (&json!(1_200), &json!(0)));
        let credit = feed_entries(app, "credit-events").await;
        assert_eq!((&credit[1]["paid"], &credit[1]["days_late"], &credit[1]["user_id"]), (&json!(true), &json!(0), &json!("ada")));
        assert_eq!(balance(app).await, json!(0));
    }

    async fn each_documented_error_is_returned(app: TestApp) {
        set_up(app).await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        create_user(app, "bola").await;
        let foreign = saved_card(app, "bola", SUCCESS_CARD).await;
        create_loan(app, "paid", "ada", &[(10, 100.0)]).await;
        create_recollection(app, json!({ "loan": "paid", "with_provider": false, "reference": "taken" })).await.data();
        put_loan(app, "waiting", json!({
            "user_id": "ada", "amount": 100, "currency": "NGN", "disbursed": false,
            "schedule": [{ "due_date": "2027-01-01", "amount": 100 }],
        })).await;
        put_loan(app, "dollars", json!({
            "user_id": "ada", "amount": 100, "currency": "USD", "disbursed": true,
            "schedule": [{ "due_date": "2027-01-01T10:00:00Z", "amount": 100 }],
        })).await;
        for (body, status, message) in [
            (json!({ "with_provider": false }), 400, "the loan field is required"),
            (json!({ "loan": "loan-1" }), 400, "the with_provider field is required"),
            (json!({ "loan": "none", "with_provider": false }), 404, "loan not found"),
            (json!({ "loan": "paid", "with_provider": false }), 400, "loan already been paid completely"),
            (json!({ "loan": "paid", "with_provider": false, "reference": "taken" }), 400, "loan already been paid completely"),
            (json!({ "loan": "waiting", "with_provider": false }), 400, "loan has not been disbursed"),
            (manual(0.0), 400, "the amount field must be greater than 0"),
            (manual(-5.0), 400, "the amount field must be greater than 0"),
            (merged(manual(1.0), json!({ "reference": "taken" })), 400, "reference already exists"),
            (merged(manual(1.0), json!({ "repaid_at": NOW.plus_seconds(60) })), 400, "the repaid_at field must be in the past"),
            (merged(manual(1.0), json!({ "payment_channel": "x".repeat(41) })), 400, "the payment_channel field must be at most 40 characters"),
            (json!({ "loan": "loan-1", "with_provider": true }), 400, "the payment_channel field is required"),
            (charge("cash", json!({})), 400, "invalid payment channel provided"),
            (charge("checkout", json!({})), 400, "checkout details required"),
            (charge("checkout", json!({ "checkout": {} })), 400, "the checkout.success_url field is required"),
            (charge("card", json!({ "card": "none" })), 404, "card not found"),
            (charge("card", json!({ "card": foreign["id"] })), 404, "card not found"),
            (charge("card", json!({ "card": card["id"], "loan": "dollars" })), 400, "currency mismatch"),
            (charge("direct_debit", json!({})), 404, "direct debit not found"),
        ] {
            let refused = create_recollection(app, body.clone()).await;
            assert_eq!(refused.failure(), (status, message), "{body}");
        }
        let missing = app.get("/recollection/fetch/reference/none").await;
        assert_eq!(missing.failure(), (404, "recollection not found"));
        let other: Company = app.new_company("Beta Lending").await;
        let elsewhere = app.request(&other, reqwest::Method::POST, "/recollection/create", Some(manual(1.0))).await;
        assert_eq!(elsewhere.failure(), (404, "loan not found"));
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [1_000.0, 500.0, 500.0]);
        app.run_until_idle().await;
    }

    async fn a_checkout_recollection_is_settled_by_the_provider(app: TestApp) {
        set_up(app).await;
        let begun = create_recollection(app, checkout(json!({ "amount": 700.0 }))).await.data().clone();
        assert_eq!((&begun["status"], &begun["payment_service"]), (&json!("pending"), &json!("provider_a")));
        assert_eq!(begun["checkout"]["cancel_url"], "https://a.example/no");
        assert_eq!(verify(app, &begun).await.failure(), (400, "payment is still pending"));
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [1_000.0, 500.0, 500.0]);
        complete_page(app, &begun, "success", SUCCESS_CARD).await;
        let settled = fetch(app, &begun).await;
        assert_eq!((&settled["status"], &settled["repaid_at"]), (&json!("success"), &json!(NOW)));
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [300.0, 500.0, 500.0]);
        // On the service account, the wallet is credited less the provider fee of 1.5 %.
        assert_eq!(balance(app).await, json!(689.5));
        assert_eq!(verify(app, &settled).await.data()["status"], "success");
        assert_eq!(app.events(), ["recollection.success"]);
    }

    async fn a_failed_recollection_does_not_change_the_loan(app: TestApp) {
        set_up(app).await;
        let begun = create_recollection(app, checkout(json!({}))).await.data().clone();
        complete_page(app, &begun, "failed", "4084080000005408").await;
        assert_eq!(verify(app, &begun).await.data()["status"], "failed");
        app.run_until_idle().await;
        assert_eq!(app.events(), ["recollection.failed"]);
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [1_000.0, 500.0, 500.0]);
        for (minor, currency, message) in [(1, "NGN", "amount mismatch"), (200_000, "USD", "currency mismatch")] {
            let begun = create_recollection(app, checkout(json!({}))).await.data().clone();
            let url = format!("{}/complete", begun["checkout"]["url"].as_str().unwrap());
            let service_ref = format!("rec-{}", begun["id"].as_str().unwrap());
            assert!(app.simulators.paystack().tamper(&service_ref, minor, currency));
            app.client.post(url).json(&json!({ "outcome": "success" })).send().await.unwrap();
            assert_eq!(verify(app, &begun).await.failure(), (400, message));
            assert_eq!(fetch(app, &begun).await["status"], "pending");
        }
        app.run_until_idle().await;
    }

    async fn a_saved_card_is_charged_by_the_job_queue_and_never_beyond_the_outstanding_amount(app: TestApp) {
        set_up(app).await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let charged = charge_instrument(app, charge("card", json!({ "amount": 1_000 }))).await;
        assert_eq!((&charged["status"], &charged["card"]), (&json!("success"), &card["id"]));
        assert!(charged.get("checkout").is_none());
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [0.0, 500.0, 500.0]);
        app.advance(1).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
        let declined = charge_instrument(app, charge("card", json!({ "card": card["id"] }))).await;
        assert_eq!(declined["status"], "failed");
        app.advance(1).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        let challenged = charge_instrument(app, charge("card", json!({}))).await;
        assert_eq!((&challenged["status"], &challenged["amount"]), (&json!("pending"), &json!(1_000)));
        // The next charge of the loan waits, and finds nothing to take.
        let more = charge_instrument(app, charge("card", json!({}))).await;
        assert_eq!(more["status"], "pending");
        complete_page(app, &challenged, "success", SUCCESS_CARD).await;
        assert_eq!(fetch(app, &challenged).await["status"], "success");
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        let more = fetch(app, &more).await;
        assert_eq!((&more["status"], &more["message"]), (&json!("failed"), &json!("loan already been paid completely")));
        let mut events = app.events();
        events[3..].sort_unstable();
        assert_eq!(events, ["card.validation.success", "recollection.success", "recollection.failed", "recollection.failed", "recollection.success"]);
    }

    async fn a_charge_whose_response_was_lost_is_made_once(app: TestApp) {
        set_up(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        for kind in [FaultKind::CutAfter, FaultKind::Cut] {
            app.simulators.faults().push(Fault::new("charge", kind));
            let begun = create_recollection(app, charge("card", json!({ "amount": 1_000 }))).await.data().clone();
            assert_eq!(begun["status"], "pending", "{kind:?}");
            app.advance(60).await;
            assert_eq!(fetch(app, &begun).await["status"], "success", "{kind:?}");
        }
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        let charges = app.simulators.paystack().requests().into_iter();
        // The charge that did not reach the provider was repeated.
        assert_eq!(charges.filter(|(_, path)| path == "/transaction/charge_authorization").count(), 3);
    }

    async fn verifying_a_charge_in_progress_makes_no_other_one(app: TestApp) {
        set_up(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let faults = app.simulators.faults();
        faults.push(Fault::new("charge", FaultKind::Slow).delay_ms(600));
        let begun = create_recollection(app, charge("card", json!({ "reference": "r-1" }))).await.data().clone();
        let verify = async {
            while !faults.list().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            app.post("/recollection/verify/r-1", json!({})).await
        };
        let ((), verified) = join(app.run_until_idle(), verify).await;
        assert_eq!(verified.failure(), (400, "payment is still pending"));
        assert_eq!(fetch(app, &begun).await["status"], "success");
        let charges = app.simulators.paystack().requests().into_iter();
        assert_eq!(charges.filter(|(_, path)| path == "/transaction/charge_authorization").count(), 1);
        assert_eq!(app.events(), ["card.validation.success", "recollection.success"]);
    }

    async fn a_charge_that_never_reaches_the_provider_fails(app: TestApp) {
        set_up(app).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Cut).times(1_000));
        let begun = create_recollection(app, charge("card", json!({}))).await.data().clone();
        app.advance(900).await;
        assert_eq!(fetch(app, &begun).await["status"], "pending");
        app.advance(3_600).await;
        let failed = fetch(app, &begun).await;
        assert_eq!((&failed["status"], &failed["message"]), (&json!("failed"), &json!("the provider could not be reached")));
        assert_eq!(remaining(&get_loan(app, "loan-1").await), [1_000.0, 500.0, 500.0]);
    }

    async fn a_direct_debit_is_pending_until_the_bank_reports_its_result(app: TestApp) {
        set_up(app).await;
        let mandate = direct_debit(app, "dd-1", "ada").await;
        assert!(mandate.get("token").is_none());
        let begun = create_recollection(app, charge("direct_debit", json!({ "amount": 500 }))).await.data().clone();
        assert_eq!((&begun["status"], &begun["direct_debit"]), (&json!("pending"), &json!("dd-1")));
        app.advance(60).await;
        assert_eq!(fetch(app, &begun).await["status"], "success");
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        let hanging = create_recollection(app, charge("direct_debit", json!({ "direct_debit": "dd-1", "amount": 1_500 }))).await.data().clone();
        app.advance(DAY).await;
        assert_eq!(fetch(app, &hanging).await["status"], "pending");
        // The customer pays in cash meanwhile: the debit becomes an overpayment, which is reported.
        create_recollection(app, manual(1_000.0)).await.data();
        app.advance(1).await;
        assert!(app.simulators.paystack().resolve(&format!("rec-{}", hanging["id"].as_str().unwrap()), Outcome::Success));
        app.run_until_idle().await;
        let settled = fetch(app, &hanging).await;
        assert_eq!((&settled["status"], &settled["message"]), (&json!("success"), &json!("overpaid by 1000 NGN")));
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        let last = feed_entries(app, "transactions").await.pop().unwrap();
        assert_eq!((&last["amount"], &last["applied"], &last["overpayment"]), (&json!(1_500), &json!(500), &json!(1_000)));
    }

    async fn concurrent_repayments_never_exceed_the_outstanding_amount(app: TestApp) {
        set_up(app).await;
        let responses = join_all((0..12).map(|_| create_recollection(app, manual(300.0)))).await;
        let paid: f64 = responses.iter().filter(|response| response.status == 200).map(|response| response.data()["amount"].as_f64().unwrap()).sum();
        assert_eq!(paid, 2_000.0);
        let refused = responses.iter().filter(|response| response.status != 200);
        assert!(refused.clone().all(|response| response.failure() == (400, "loan already been paid completely")));
        assert_eq!(refused.count(), 5);
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        app.run_until_idle().await;
    }

    async fn a_repeated_request_creates_one_recollection(app: TestApp) {
        set_up(app).await;
        let send = async |key: &str, body: &Value| {
            let request = app.client.post(format!("{}/api/v1/recollection/create", app.api)).bearer_auth(&app.company.key);
            reply(request.header("idempotency-key", key).json(body)).await
        };
        let body = manual(300.0);
        let first = send("one", &body).await.data().clone();
        assert_eq!(send("one", &body).await.data(), &first);
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        let page = checkout(json!({ "reference": "mine" }));
        assert_eq!(send("two", &page).await.failure().0, 502);
        let begun = send("two", &page).await.data().clone();
        complete_page(app, &begun, "success", SUCCESS_CARD).await;
        assert_eq!(fetch(app, &begun).await["status"], "success");
        let listed = app.get("/recollection/list?loan=loan-1&user_id=ada&sort-created_at=asc").await;
        assert_eq!((&listed.data()["total"], listed.body["message"].as_str()), (&json!(2), Some("Recollections fetched successfully")));
        assert_eq!(app.get("/recollection/list?loan=none").await.data()["total"], 0);
        assert_eq!(app.get("/recollection/list?user_id=nobody").await.data()["total"], 0);
        assert_eq!(app.get("/recollection/list?date-created_at=21-11-2026&limit=1").await.data()["total_page"], 2);
        assert_eq!(app.get("/recollection/list?date-created_at=20-11-2026").await.data()["total"], 0);
    }
}
