//! The charge engine: what the schema refuses, and its effects on payments, cards and recollections.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::{self, Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, TestApp},
    cards::copy_signature,
    codes::{balance, merged},
    exceptions::{exceptions, sum},
    lending::{
        SUCCESS_CARD, charge_instrument, complete_page, create_card, create_loan,
        create_recollection, create_user, fetch_card, get_loan, saved_card,
    },
    references::open_checkouts,
    telemetry::{metric_value, metrics::poll_and_scrape, scrape},
};

const DAY: i64 = 86_400;

pub fn by_checkout(reference: &str, more: Value) -> Value {
    let order = json!({
        "loan": "loan-1", "with_provider": true, "payment_channel": "checkout", "reference": reference,
        "checkout": { "success_url": "https://a.example/" },
    });
    merged(order, more)
}

pub fn by_card(reference: &str, more: Value) -> Value {
    let order = json!({
        "loan": "loan-1", "with_provider": true, "payment_channel": "card", "reference": reference,
    });
    merged(order, more)
}

pub async fn recollection(app: &TestApp, reference: &str) -> Value {
    app.get(&format!("/recollection/fetch/reference/{reference}")).await.data().clone()
}

pub async fn refund_payment(app: &TestApp, payment: &Value) -> crate::app::Reply {
    let id = payment["id"].as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    app.operator(Method::POST, &path, Value::Null).await
}

pub async fn refunds(app: &TestApp, query: &str) -> Vec<Value> {
    let listed = app.operator(Method::GET, &format!("/refunds{query}"), Value::Null).await;
    listed.data()["refunds"].as_array().expect("a list").clone()
}

pub async fn alarms(app: &TestApp, alarm: &str) -> Option<f64> {
    metric_value(&scrape(app).await, &format!("tollhouse_alarms_total{{alarm=\"{alarm}\"}}"))
}

pub async fn run(app: &TestApp, sql: &'static str) -> Result<u64, String> {
    let changed: store::Result<u64> =
        app.app.store.write(async move |tx: &mut Tx| tx.sql(sql).run().await).await;
    changed.map_err(|error| format!("{error:?}"))
}

/// Refunds a payment as its merchant would on Paystack's dashboard.
pub async fn refund_at_paystack(app: &TestApp, body: Value) {
    let refund = app.client.post(format!("{}/paystack/refund", app.simulators.url()));
    let refund = refund.bearer_auth(PAYSTACK_KEY).json(&body).send().await;
    assert!(refund.expect("a response").status().is_success());
}

/// A payment whose first page was lost with its response. Returns that page, and the payment with its
/// current one.
pub async fn lost_and_current_page(app: &TestApp) -> (String, Value) {
    app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
    assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
    let lost = open_checkouts(app).await.remove(0);
    (lost, app.initialize("order-1").await)
}

/// Pays a page of the simulator that a lost response left behind.
pub async fn pay_lost_page(app: &TestApp, path: &str) {
    let url = format!("{}{path}/complete", app.simulators.url());
    let paid = app.client.post(url).json(&json!({ "outcome": "success", "card": SUCCESS_CARD }));
    assert_eq!(paid.send().await.expect("a response").status(), 200);
    app.run_until_idle().await;
}

both! {
    async fn the_schema_refuses_what_the_engine_never_does(app: TestApp) {
        app.paid_payment("order-1").await;
        app.initialize("order-2").await;
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        charge_instrument(app, by_card("r-1", json!({ "amount": 10 }))).await;
        charge_instrument(app, by_card("r-2", json!({ "amount": 10 }))).await;
        for (what, sql) in [
            ("a second charge that counts", "INSERT INTO charges SELECT company_id, 'another', owner_kind, owner_id, 2, method, provider,
                account_id, in_books, lane, amount_minor, currency, taken_minor, taken_currency, credited_minor, refunded_minor, service_ref,
                reference_source, transaction_id, state, counts, superseded, holds_lane, unsure, fence, lease_until, begun_at, requested_at,
                settled_at, session_url, mismatch, created_at, updated_at FROM charges WHERE state = 'succeeded' AND owner_kind = 'payment'"),
            ("a second charge without outcome", "INSERT INTO charges SELECT company_id, 'another', owner_kind, owner_id, 2, method, provider,
                account_id, in_books, lane, amount_minor, currency, taken_minor, taken_currency, credited_minor, refunded_minor, service_ref,
                reference_source, transaction_id, state, counts, superseded, holds_lane, unsure, fence, lease_until, begun_at, requested_at,
                settled_at, session_url, mismatch, created_at, updated_at FROM charges WHERE state = 'open' AND owner_kind = 'payment'"),
            ("a second charge that holds a lane", "UPDATE charges SET holds_lane = TRUE WHERE state = 'queued'"),
            ("an outcome without a request", "UPDATE charges SET state = 'failed' WHERE state = 'queued'"),
            ("another amount after the request", "UPDATE charges SET amount_minor = amount_minor + 1 WHERE fence > 0"),
            ("another account after the request", "UPDATE charges SET account_id = 'another' WHERE fence > 0"),
            ("an earlier fence", "UPDATE charges SET fence = fence - 1 WHERE fence > 0"),
            ("a failure that counts", "UPDATE charges SET counts = TRUE, state = 'failed' WHERE state = 'open'"),
            ("a success without an amount", "UPDATE charges SET state = 'succeeded', holds_lane = FALSE WHERE state = 'open'"),
            ("more refunded than taken", "UPDATE charges SET refunded_minor = taken_minor + 1 WHERE counts"),
            ("a lane held after the outcome", "UPDATE charges SET holds_lane = TRUE WHERE state = 'succeeded'"),
            ("a superseded page of the payer", "UPDATE charges SET superseded = TRUE WHERE session_url IS NOT NULL"),
            ("another reference of a refund", "UPDATE charge_refunds SET refund_ref = 'another'"),
        ] {
            assert!(run(app, sql).await.is_err(), "{what} is possible");
        }
    }

    async fn a_second_success_of_a_payment_raises_an_alarm_and_credits_once(app: TestApp) {
        let (lost, current) = lost_and_current_page(app).await;
        app.complete(&current, "success").await;
        app.run_until_idle().await;
        let credited = app.wallet().await;
        pay_lost_page(app, &lost).await;
        assert_eq!((alarms(app, "paid twice").await, app.wallet().await), (Some(1.0), credited));
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_success_that_was_found_after_the_last_check_is_checked_for_a_reversal(app: TestApp) {
        let page = app.initialize("order-1").await;
        app.advance(5 * DAY).await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        app.complete(&page, "success").await;
        assert_eq!(app.post("/payment/verify/order-1", json!({})).await.status, 200);
        refund_at_paystack(app, json!({ "transaction": "order-1" })).await;
        app.simulators.run_until_idle().await;
        app.advance(DAY).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
    }

    async fn a_card_charge_whose_page_was_lost_holds_up_its_loan_for_72_hours(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(60, 1_000.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        for reference in ["r-1", "r-2"] {
            charge_instrument(app, by_card(reference, json!({ "amount": 100 }))).await;
        }
        app.advance(71 * 3_600).await;
        assert_eq!(recollection(app, "r-2").await["status"], "pending");
        app.advance(3_600).await;
        app.advance(60).await;
        assert_eq!((&recollection(app, "r-1").await["status"], &recollection(app, "r-2").await["status"]), (&json!("pending"), &json!("success")));
    }

    async fn a_reversed_repayment_is_taken_back_exactly(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0), (20, 100.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let charged = charge_instrument(app, by_card("r-1", json!({ "amount": 150 }))).await;
        assert_eq!((&charged["status"], get_loan(app, "loan-1").await["amount_paid"].clone()), (&json!("success"), json!(150)));
        assert!(balance(app).await.as_f64().unwrap() > 0.0);
        let part = json!({ "transaction": format!("rec-{}", charged["id"].as_str().unwrap()) });
        refund_at_paystack(app, part).await;
        // Also without a webhook, a success is verified again.
        app.advance(DAY).await;
        app.run_until_idle().await;
        let loan = get_loan(app, "loan-1").await;
        assert_eq!((&loan["amount_paid"], &loan["amount_remaining_to_pay"]), (&json!(0), &json!(200)));
        let remaining: Vec<&Value> = loan["schedule"].as_array().unwrap().iter().map(|entry| &entry["amount_remaining"]).collect();
        assert_eq!(remaining, [&json!(100), &json!(100)]);
        assert_eq!((balance(app).await, recollection(app, "r-1").await["status"].clone()), (json!(0), json!("failed")));
        // The provider keeps its fees: 2.25 of the repayment, 1.50 of the verification charge.
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "fees").await], [375, -375]);
        assert_eq!(app.events(), ["card.validation.success", "recollection.success", "recollection.reversed"]);
        let raised = exceptions(app, "?state=open").await;
        assert_eq!((raised.len(), &raised[0]["kind"], &raised[0]["expected"]), (1, &json!("repayment_reversed"), &json!(150)));
        assert_eq!(alarms(app, "repayment reversed").await, Some(1.0));
        app.advance(7 * DAY).await;
        assert_eq!(app.events().len(), 3);
    }

    async fn the_collection_of_a_loan_continues_after_its_repayment_is_reversed(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0), (5, 100.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let charged = charge_instrument(app, by_card("r-1", json!({}))).await;
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
        // The job that collects the loan ends.
        app.advance(3 * DAY).await;
        let all = json!({ "transaction": format!("rec-{}", charged["id"].as_str().unwrap()) });
        refund_at_paystack(app, all).await;
        app.advance(DAY).await;
        app.run_until_idle().await;
        assert_eq!((recollection(app, "r-1").await["status"].clone(), get_loan(app, "loan-1").await["amount_paid"].clone()), (json!("failed"), json!(0)));
        app.advance(2 * DAY).await;
        app.run_until_idle().await;
        // Nothing was charged for the installment that was due.
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(100));
    }

    async fn a_success_is_verified_again_for_months(app: TestApp) {
        app.paid_payment("order-1").await;
        let verifications = || app.simulators.paystack().requests().into_iter().filter(|(_, path)| path.starts_with("/transaction/verify/")).count();
        let before = verifications();
        for (days, more) in [(1, 1), (6, 2), (23, 3), (90, 4), (300, 4)] {
            app.advance(days * DAY).await;
            assert_eq!(verifications() - before, more, "after another {days} days");
        }
    }

    async fn a_resumed_page_is_not_opened_after_a_mismatch(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        for (minor, currency, message) in [(1, "NGN", "amount mismatch"), (250_050, "USD", "currency mismatch")] {
            let (order, page) = (format!("order-{minor}"), format!("r-{minor}"));
            app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(2));
            assert_eq!(app.post("/payment/initialize", app.order(&order)).await.failure().0, 502);
            assert_eq!(create_recollection(app, by_checkout(&page, json!({}))).await.failure().0, 502);
            let recollection = recollection(app, &page).await;
            let references = [order.clone(), format!("rec-{}", recollection["id"].as_str().unwrap())];
            for reference in &references {
                assert!(app.simulators.paystack().tamper(reference, minor, currency));
            }
            for path in open_checkouts(app).await {
                pay_lost_page(app, &path).await;
            }
            app.advance(60).await;
            assert_eq!(app.post("/payment/initialize", app.order(&order)).await.failure(), (400, message));
            assert_eq!(create_recollection(app, by_checkout(&page, json!({}))).await.failure(), (400, message));
        }
    }

    async fn a_card_charged_with_another_amount_is_refunded_and_not_saved(app: TestApp) {
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        let reference = card["service_ref"].as_str().unwrap();
        assert!(app.simulators.paystack().tamper(reference, 9_900, "NGN"));
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        app.advance(2 * 3_600).await;
        let shown = fetch_card(app, &card["id"]).await;
        assert_eq!((&shown["valid"], &shown["message"]), (&json!(false), &json!("amount mismatch")));
        assert_eq!(app.events(), ["card.validation.failed"]);
        let made = refunds(app, "?state=done").await;
        assert_eq!((made.len(), &made[0]["amount"], &made[0]["cause"]), (1, &json!(99), &json!("verification")));
    }

    async fn a_page_of_a_forgotten_card_is_refunded_when_it_is_paid(app: TestApp) {
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        app.advance(DAY).await;
        app.advance(31 * DAY).await;
        tollhouse_app::money::cards::sweep(app.app.clone()).await.expect("a sweep");
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        app.advance(2 * 3_600).await;
        assert_eq!((refunds(app, "?state=done").await.len(), alarms(app, "charge without an owner").await), (1, Some(1.0)));
    }

    async fn charges_of_a_loan_are_made_in_order_and_capped_when_their_turn_comes(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        for reference in ["r-1", "r-2", "r-3"] {
            let created = create_recollection(app, by_card(reference, json!({ "amount": 60 }))).await;
            assert_eq!((&created.data()["status"], &created.data()["amount"]), (&json!("pending"), &json!(60)));
            app.app.clock.advance_to(app.app.clock.now().plus_seconds(1));
        }
        app.run_until_idle().await;
        for (reference, status, amount, message) in [
            ("r-1", "success", 60, "Approved"), ("r-2", "success", 40, "Approved"), ("r-3", "failed", 60, "loan already been paid completely"),
        ] {
            let shown = recollection(app, reference).await;
            assert_eq!((&shown["status"], &shown["amount"]), (&json!(status), &json!(amount)), "{shown}");
            if status == "failed" {
                assert_eq!(shown["message"], message);
            }
        }
        assert_eq!(get_loan(app, "loan-1").await["paid"], true);
    }

    async fn a_queued_charge_follows_its_card_to_the_account_that_issued_the_present_token(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        let first = charge_instrument(app, by_card("r-1", json!({ "amount": 100 }))).await;
        charge_instrument(app, by_card("r-2", json!({ "amount": 100, "card": card["id"] }))).await;
        // The card is saved again, at the company's own account.
        let path = format!("/companies/{}/providers/provider_a", app.company.id);
        app.use_paystack(&path, "sk_test_the_companys_own").await;
        create_user(app, "bola").await;
        let same = saved_card(app, "bola", SUCCESS_CARD).await;
        copy_signature(app, &card, &same).await;
        let again = create_card(app, "ada").await;
        complete_page(app, &again, "success", SUCCESS_CARD).await;
        assert_eq!(fetch_card(app, &again["id"]).await["message"], "card already exists");
        complete_page(app, &first, "success", SUCCESS_CARD).await;
        assert_eq!(recollection(app, "r-2").await["status"], "success");
        // Only the first charge was made at the service's account.
        assert_eq!(balance(app).await, json!(98.5));
    }

    async fn refunds_are_listed_by_state_and_age_with_their_last_error(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter).times(1_000));
        app.simulators.faults().push(Fault::new("refund_list", FaultKind::Cut).times(1_000));
        assert_eq!(refund_payment(app, &payment).await.failure().0, 502);
        let listed = refunds(app, "?state=requested").await;
        assert_eq!((listed.len(), &listed[0]["of"], &listed[0]["owner"]), (1, &json!("payment"), &payment["id"]));
        assert!(listed[0]["last_error"].is_string(), "{listed:?}");
        assert_eq!(refunds(app, "?min_age_hours=1").await.len(), 0);
        app.advance(7 * 3_600).await;
        let stalled = refunds(app, "?state=stalled&min_age_hours=6").await;
        assert_eq!((stalled.len(), alarms(app, "refund failed").await), (1, Some(1.0)));
        assert_eq!(metric_value(&poll_and_scrape(app).await, r#"tollhouse_refunds_open{state="stalled"}"#), Some(1.0));
        assert!(stalled[0]["age_s"].as_i64().unwrap() >= 7 * 3_600);
        let events = app.operator(Method::GET, "/events?kind=payment.refund_failed", Value::Null).await;
        assert!(events.status.is_success());
        app.simulators.faults().clear();
        app.advance(3_600).await;
        assert_eq!(refunds(app, "?state=done").await.len(), 1);
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
    }
}
