//! Money that a provider took and that settled nothing: in suspense, until an operator decides.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::{self, Tx, params};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp},
    charges::{
        by_checkout, lost_and_current_page, pay_lost_page, recollection, refund_at_paystack,
        refunds,
    },
    lending::{
        SUCCESS_CARD, complete_page, create_card, create_loan, create_recollection, create_user,
    },
    references::open_checkouts,
    telemetry::{metric_value, metrics::poll_and_scrape},
};

const DAY: i64 = 86_400;

/// Inserts an exception about a charge of the company. Returns its id.
pub async fn insert_exception(app: &TestApp, company_id: &str) -> String {
    let company_id = company_id.to_owned();
    let insert = async move |tx: &mut Tx| {
        tx.sql(
            "INSERT INTO exceptions (company_id, id, kind, charge_id, expected_minor, currency, state, created_at)
             SELECT company_id, 'exception-' || company_id, 'unverified_charge', id, amount_minor, currency, 'open', created_at
             FROM charges WHERE company_id = $1 ORDER BY id LIMIT 1 RETURNING id",
        )
        .params(params![company_id])
        .one::<(String,)>()
        .await
    };
    let inserted: store::Result<(String,)> = app.app.store.write(insert).await;
    inserted.expect("an exception").0
}

pub async fn exceptions(app: &TestApp, query: &str) -> Vec<Value> {
    let listed = app.operator(Method::GET, &format!("/exceptions{query}"), Value::Null).await;
    listed.data()["exceptions"].as_array().expect("a list").clone()
}

async fn resolve(app: &TestApp, exception: &Value, action: &str) -> Reply {
    let (company, id) = (exception["company"].as_str().unwrap(), exception["id"].as_str().unwrap());
    let path = format!("/companies/{company}/exceptions/{id}/resolve");
    app.operator(Method::POST, &path, json!({ "action": action, "reason": "asked the payer" }))
        .await
}

/// The sum of a ledger account, in minor units.
pub async fn sum(app: &TestApp, account: &str) -> i64 {
    let (company, account) = (app.company.id.clone(), account.to_owned());
    let read = async move |tx: &mut Tx| -> store::Result<i64> {
        tx.sql(
            "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM ledger_entries
             WHERE company_id = $1 AND account = $2",
        )
        .params(params![company, account])
        .value()
        .await
    };
    app.app.store.read(read).await.expect("a sum")
}

/// The entries of a ledger account, newest first.
async fn entries(app: &TestApp, account: &str) -> Vec<Value> {
    let path = format!("/companies/{}/wallet/entries?account={account}", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await;
    listed.data()["docs"].as_array().expect("a list").clone()
}

/// A payment whose two pages were paid: the one whose response was lost, after the current one.
async fn paid_twice(app: &TestApp) -> Value {
    let (lost, current) = lost_and_current_page(app).await;
    app.complete(&current, "success").await;
    app.run_until_idle().await;
    pay_lost_page(app, &lost).await;
    let found = exceptions(app, "?state=open").await;
    assert_eq!(
        (found.len(), &found[0]["kind"], &found[0]["owner_id"]),
        (1, &json!("paid_twice"), &current["id"])
    );
    assert_eq!(
        (&found[0]["expected"], &found[0]["seen"], &found[0]["owner_kind"]),
        (&json!(2500.5), &json!(2500.5), &json!("payment"))
    );
    found[0].clone()
}

/// A payment of which the provider took 2,400.00 NGN instead of 2,500.50.
async fn underpaid(app: &TestApp) -> Value {
    let payment = app.initialize("order-1").await;
    assert!(app.simulators.paystack().tamper("order-1", 240_000, "NGN"));
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    let found = exceptions(app, "?state=open").await;
    assert_eq!((found.len(), &found[0]["kind"]), (1, &json!("amount_mismatch")));
    assert_eq!((&found[0]["expected"], &found[0]["seen"]), (&json!(2500.5), &json!(2400)));
    found[0].clone()
}

both! {
    async fn a_second_success_is_in_suspense_until_it_is_refunded(app: TestApp) {
        let exception = paid_twice(app).await;
        let credited = sum(app, "wallet").await;
        assert_eq!((sum(app, "suspense").await, app.events()), (credited, vec!["payment.success".to_owned()]));
        assert_eq!(metric_value(&poll_and_scrape(app).await, r#"tollhouse_exceptions_open{kind="paid_twice"}"#), Some(1.0));
        let resolved = resolve(app, &exception, "refund").await;
        assert_eq!((&resolved.data()["state"], &resolved.data()["reason"]), (&json!("resolved"), &json!("asked the payer")));
        app.advance(3_600).await;
        assert_eq!((sum(app, "suspense").await, sum(app, "wallet").await), (0, credited));
        let made = refunds(app, "?state=done").await;
        assert_eq!((made.len(), &made[0]["amount"]), (1, &json!(2500.5)));
        // The payment itself is not refunded.
        assert_eq!((app.fetch("order-1").await["status"].clone(), app.events().len()), (json!("success"), 1));
        assert_eq!(resolve(app, &exception, "none").await.failure(), (400, "the exception is already resolved"));
    }

    async fn a_page_that_fails_after_another_was_paid_changes_nothing(app: TestApp) {
        let (lost, current) = lost_and_current_page(app).await;
        pay_lost_page(app, &lost).await;
        let credited = sum(app, "wallet").await;
        assert!(credited > 0);
        app.complete(&current, "failed").await;
        app.advance(3_600).await;
        assert_eq!((app.fetch("order-1").await["status"].clone(), sum(app, "wallet").await), (json!("success"), credited));
        assert_eq!((app.events(), sum(app, "pending").await), (vec!["payment.success".to_owned()], 0));
    }

    async fn a_second_success_can_be_credited(app: TestApp) {
        let exception = paid_twice(app).await;
        let credited = sum(app, "wallet").await;
        resolve(app, &exception, "credit").await.data();
        assert_eq!((sum(app, "suspense").await, sum(app, "wallet").await), (0, 2 * credited));
        assert_eq!(exceptions(app, "?state=open").await.len(), 0);
        // A refund at the provider is debited from the account that was credited.
        refund_at_paystack(app, json!({ "transaction": exception["service_ref"] })).await;
        app.advance(DAY).await;
        assert_eq!((sum(app, "wallet").await, app.fetch("order-1").await["status"].clone()), (credited, json!("success")));
    }

    async fn another_amount_is_in_suspense_until_it_is_refunded_and_its_payment_fails(app: TestApp) {
        let exception = underpaid(app).await;
        let suspense = sum(app, "suspense").await;
        assert!(suspense > 0 && suspense < 240_000, "{suspense}");
        assert_eq!((sum(app, "wallet").await, app.fetch("order-1").await["status"].clone()), (0, json!("pending")));
        // Each later check finds the same: one exception, one ledger transaction.
        app.advance(3_600).await;
        assert_eq!((exceptions(app, "").await.len(), sum(app, "suspense").await), (1, suspense));
        resolve(app, &exception, "refund").await.data();
        app.advance(3_600).await;
        assert_eq!((sum(app, "suspense").await, refunds(app, "?state=done").await[0]["amount"].clone()), (0, json!(2400)));
        let payment = app.fetch("order-1").await;
        assert_eq!((&payment["status"], &payment["message"]), (&json!("failed"), &json!("amount mismatch")));
        assert_eq!((app.events(), sum(app, "pending").await), (vec!["payment.failed".to_owned()], 0));
    }

    async fn another_amount_that_is_credited_leaves_its_payment_pending(app: TestApp) {
        let exception = underpaid(app).await;
        resolve(app, &exception, "credit").await.data();
        app.advance(DAY).await;
        assert_eq!((app.events().len(), app.fetch("order-1").await["status"].clone()), (0, json!("pending")));
    }

    async fn a_repayment_of_another_amount_fails_once_it_is_refunded(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        let begun = create_recollection(app, by_checkout("r-1", json!({}))).await.data().clone();
        let service_ref = format!("rec-{}", begun["id"].as_str().expect("an id"));
        assert!(app.simulators.paystack().tamper(&service_ref, 5_000, "NGN"));
        complete_page(app, &begun, "success", SUCCESS_CARD).await;
        let open = exceptions(app, "?state=open").await;
        resolve(app, &open[0], "refund").await.data();
        app.advance(3_600).await;
        assert_eq!(recollection(app, "r-1").await["status"], "failed");
        assert_eq!((app.events(), sum(app, "suspense").await), (vec!["recollection.failed".to_owned()], 0));
    }

    async fn the_timeline_compares_the_requested_with_the_amount_at_the_provider(app: TestApp) {
        let exception = underpaid(app).await;
        resolve(app, &exception, "credit").await.data();
        let payment = exception["owner_id"].as_str().expect("an id");
        let path = format!("/companies/{}/payments/{payment}", app.company.id);
        let timeline = app.operator(Method::GET, &format!("{path}/timeline"), Value::Null).await.data().clone();
        let of = |kind: &str, action: &str| {
            let entries = timeline.as_array().expect("a list").iter();
            let mut found = entries.filter(|entry| entry["kind"] == kind && entry["action"] == action);
            found.next().unwrap_or_else(|| panic!("no {kind} {action} in {timeline}")).clone()
        };
        for entry in [of("charge", "mismatched"), of("exception", "amount_mismatch")] {
            assert_eq!(
                [&entry["amount"], &entry["currency"], &entry["requested"], &entry["requested_currency"]],
                [&json!(2400), &json!("NGN"), &json!(2500.5), &json!("NGN")],
            );
        }
        assert_eq!(of("exception", "resolved")["note"], "asked the payer");
        let resolved = of("audit", "exception.resolve");
        assert_eq!((&resolved["actor"], &resolved["note"]), (&json!("operator"), &json!("asked the payer")));
        assert!(resolved["record"].as_str().is_some_and(|request| !request.is_empty()), "{resolved}");
        assert_eq!(of("webhook", "charge.success")["record"], "order-1");
        for (kind, note) in [("payment.suspense", "provider:provider_a → suspense"), ("payment.credited", "suspense → wallet")] {
            assert_eq!(of("ledger", kind)["note"], note);
        }
        let browser = crate::console::Browser::signed_in(app, "ada", "administrator").await;
        browser.get(&format!("/console{path}")).await.shows(&["Exception: amount mismatch", "Requested: ", "operator: exception.resolve"]);
    }

    async fn a_refused_refund_opens_the_exception_again(app: TestApp) {
        let exception = underpaid(app).await;
        let suspense = sum(app, "suspense").await;
        // A part that was refunded elsewhere leaves too little.
        refund_at_paystack(app, json!({ "transaction": "order-1", "amount": 100 })).await;
        // Another exception of the charge stays resolved.
        let earlier = insert_exception(app, &app.company.id).await;
        let path = format!("/companies/{}/exceptions/{earlier}/resolve", app.company.id);
        app.operator(Method::POST, &path, json!({ "action": "none", "reason": "r" })).await.data();
        app.advance(60).await;
        resolve(app, &exception, "refund").await.data();
        assert_eq!(sum(app, "suspense").await, 0);
        app.advance(120).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((found.len(), &found[0]["reason"], sum(app, "suspense").await), (1, &Value::Null, suspense));
        assert_eq!(resolve(app, &found[0], "credit").await.data()["state"], "resolved");
        assert_eq!((sum(app, "suspense").await, sum(app, "wallet").await), (0, suspense));
    }

    async fn money_in_suspense_that_the_provider_returns_silently_is_noticed(app: TestApp) {
        underpaid(app).await;
        app.advance(4 * DAY).await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        refund_at_paystack(app, json!({ "transaction": "order-1" })).await;
        app.advance(60).await;
        app.advance(3 * DAY).await;
        let found = exceptions(app, "").await;
        assert_eq!((&found[0]["reason"], sum(app, "suspense").await), (&json!("the provider returned the money"), 0));
    }

    async fn another_currency_leaves_suspense_when_the_requested_one_is_paid(app: TestApp) {
        app.initialize("order-1").await;
        assert!(app.simulators.paystack().tamper("order-1", 240_000, "USD"));
        pay_lost_page(app, &open_checkouts(app).await[0]).await;
        let held = entries(app, "suspense").await;
        assert_eq!((held.len(), &held[0]["currency"]), (1, &json!("USD")));
        assert!(app.simulators.paystack().tamper("order-1", 250_050, "NGN"));
        app.post("/payment/verify/order-1", json!({})).await.data();
        let held = entries(app, "suspense").await;
        let held: Vec<_> = held.iter().map(|entry| (entry["currency"].as_str(), entry["amount"].as_f64())).collect();
        assert_eq!((held.len(), held[0].0), (2, Some("USD")));
        assert_eq!(held[0].1.map(|amount| -amount), held[1].1);
        app.run_until_idle().await;
        assert_eq!((app.fetch("order-1").await["status"].clone(), app.events()), (json!("success"), vec!["payment.success".to_owned()]));
    }

    async fn a_reversal_of_money_in_suspense_resolves_its_exception(app: TestApp) {
        underpaid(app).await;
        assert!(sum(app, "suspense").await > 0);
        refund_at_paystack(app, json!({ "transaction": "order-1" })).await;
        app.advance(3_600).await;
        let found = exceptions(app, "").await;
        assert_eq!((&found[0]["state"], &found[0]["reason"]), (&json!("resolved"), &json!("the provider returned the money")));
        assert_eq!(sum(app, "suspense").await, 0);
    }

    async fn a_second_repayment_by_checkout_is_held_in_suspense(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        let order = by_checkout("r-1", json!({ "amount": 100 }));
        assert_eq!(create_recollection(app, order.clone()).await.failure().0, 502);
        let lost = open_checkouts(app).await;
        let again = create_recollection(app, order).await.data().clone();
        complete_page(app, &again, "success", SUCCESS_CARD).await;
        let credited = sum(app, "wallet").await;
        pay_lost_page(app, &lost[0]).await;
        let found = exceptions(app, "?state=open").await;
        assert_eq!((found.len(), &found[0]["kind"], &found[0]["owner_kind"]), (1, &json!("repaid_twice"), &json!("recollection")));
        assert_eq!((sum(app, "wallet").await, sum(app, "suspense").await), (credited, credited));
    }

    async fn a_verification_charge_is_booked_until_its_refund(app: TestApp) {
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::Cut).times(1));
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        let booked = entries(app, "verification").await;
        let kinds: BTreeSet<&str> = booked.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
        assert_eq!((booked.len(), kinds), (2, BTreeSet::from(["card.refund", "card.success"])));
        assert_eq!((sum(app, "wallet").await, sum(app, "verification").await), (0, 0));
        // Held by the refund until the provider accepts it.
        app.advance(3_600).await;
        assert_eq!((sum(app, "verification").await, exceptions(app, "").await.len()), (0, 0));
    }

    async fn a_resolution_names_an_action_and_a_reason(app: TestApp) {
        app.initialize("order-1").await;
        let id = insert_exception(app, &app.company.id).await;
        let path = format!("/companies/{}/exceptions/{id}/resolve", app.company.id);
        for (body, message) in [
            (json!({ "reason": "r" }), "the action field is required"),
            (json!({ "action": "keep", "reason": "r" }), "the action field must be one of credit, refund, absorb, none"),
            (json!({ "action": "none" }), "the reason field is required"),
            (json!({ "action": "credit", "reason": "r" }), "this charge has no money in suspense"),
            (json!({ "action": "refund", "reason": "r" }), "this charge has no refundable amount"),
        ] {
            assert_eq!(app.operator(Method::POST, &path, body).await.failure(), (400, message));
        }
        assert_eq!(exceptions(app, "?state=open").await.len(), 1);
        let unknown = path.replace(&id, "unknown");
        let body = json!({ "action": "none", "reason": "r" });
        assert_eq!(app.operator(Method::POST, &unknown, body).await.failure(), (404, "exception not found"));
    }
}

both! {
    async fn an_exception_has_an_owner_and_notes(app: TestApp) {
        app.initialize("order-1").await;
        let id = insert_exception(app, &app.company.id).await;
        let path = format!("/companies/{}/exceptions/{id}", app.company.id);
        let edit = async |body: Value| app.operator(Method::PATCH, &path, body).await;
        assert_eq!(edit(json!({})).await.failure(), (400, "the mine or the note field is required"));
        edit(json!({ "mine": true, "note": "asked the bank" })).await.data();
        edit(json!({ "note": "the bank confirms it" })).await.data();
        let found = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        let texts: Vec<&Value> = found["notes"].as_array().unwrap().iter().map(|note| &note["text"]).collect();
        assert_eq!((&found["owner"], texts), (&json!("operator"), vec![&json!("asked the bank"), &json!("the bank confirms it")]));
        assert_eq!(edit(json!({ "mine": false })).await.data()["owner"], Value::Null);
        let unknown = format!("/companies/{}/exceptions/none", app.company.id);
        assert_eq!(app.operator(Method::GET, &unknown, Value::Null).await.failure(), (404, "exception not found"));
        assert_eq!(app.operator(Method::PATCH, &unknown, json!({ "mine": true })).await.failure(), (404, "exception not found"));
        for _ in 2..100 {
            edit(json!({ "note": "again" })).await.data();
        }
        assert_eq!(edit(json!({ "note": "again" })).await.failure(), (400, "an exception has at most 100 notes"));
    }
}
