//! Refunds: the money is held, the refund is requested at the provider, its result is recorded.

use futures::future::join_all;
use reqwest::{Method, header::RETRY_AFTER};
use serde_json::{Value, json};
use tollhouse_platform::{
    random::Random,
    store::{self, Tx},
};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp},
    simulation::minor,
};

fn path(app: &TestApp, payment: &Value) -> String {
    format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap())
}

async fn refund(app: &TestApp, payment: &Value, body: Value) -> Reply {
    app.operator(Method::POST, &path(app, payment), body).await
}

/// Pays with a card whose refunds are accepted and then fail.
async fn paid_with_failing_refunds(app: &TestApp, reference: &str) -> Value {
    let payment = app.initialize(reference).await;
    let url = payment["checkout"]["url"].as_str().expect("a page");
    let card = json!({ "outcome": "success", "card": "4084080000671803" });
    app.client.post(format!("{url}/complete")).json(&card).send().await.expect("a response");
    app.run_until_idle().await;
    payment
}

/// Refunds at the provider, without the host.
async fn refund_at_paystack(app: &TestApp, body: Value) {
    let refund = app.client.post(format!("{}/paystack/refund", app.simulators.url()));
    let response = refund.bearer_auth(PAYSTACK_KEY).json(&body).send().await.expect("a response");
    assert!(response.status().is_success());
}

/// The amounts of all refunds at the provider, newest first.
async fn refunded_at_paystack(app: &TestApp) -> Vec<i64> {
    let list = app.client.get(format!("{}/paystack/refund", app.simulators.url()));
    let response = list.bearer_auth(PAYSTACK_KEY).send().await.expect("a response");
    let refunds: Value = response.json().await.expect("JSON");
    refunds["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|made| made["amount"].as_i64().unwrap())
        .collect()
}

/// The balance of a ledger account of the company.
async fn balance_of(app: &TestApp, account: &str) -> Value {
    let path = format!("/companies/{}/wallet/entries?account={account}&limit=1000", app.company.id);
    let entries = app.operator(Method::GET, &path, Value::Null).await.data()["docs"].clone();
    json!(entries.as_array().unwrap().iter().map(|entry| minor(&entry["amount"])).sum::<i64>())
}

both! {
    async fn a_refund_debits_the_wallet_and_sends_an_event(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let refund = async || app.operator(Method::POST, &path(app, &payment), Value::Null).await;
        assert_eq!(refund().await.data()["status"], "refunded");
        assert_eq!(refund().await.failure(), (400, "only successful payment can be refunded"));
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn only_successful_payments_are_refunded(app: TestApp) {
        let payment = app.initialize("order-1").await;
        let refused = app.operator(Method::POST, &path(app, &payment), Value::Null).await;
        assert_eq!(refused.failure(), (400, "only successful payment can be refunded"));
    }

    async fn a_refund_that_the_balance_does_not_cover_needs_force(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let debit = json!({ "amount": 2000, "key": "payout" });
        app.operator(Method::POST, &format!("/companies/{}/wallet/debit", app.company.id), debit).await.data();
        let refund = async |body: Value| app.operator(Method::POST, &path(app, &payment), body).await;
        let message = "insufficient balance, please top up your wallet.";
        assert_eq!(refund(json!({})).await.failure(), (400, message));
        assert_eq!(app.wallet().await["balance"], json!(362.99));
        assert_eq!(refund(json!({ "force": true })).await.data()["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(-2000));
        app.run_until_idle().await;
    }

    async fn a_refund_whose_response_is_lost_is_made_once(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter).times(1));
        let refused = app.operator(Method::POST, &path(app, &payment), Value::Null).await;
        assert_eq!(refused.failure().0, 502);
        assert_eq!(app.wallet().await["balance"], json!(0)); // held
        // The first request may still be processed: an operator waits like the job.
        let repeated = refund(app, &payment, Value::Null).await;
        let message = "an earlier request for this refund has an unknown outcome: \
                       wait before you repeat it";
        assert_eq!(repeated.failure(), (409, message));
        assert_eq!(repeated.headers[RETRY_AFTER], "60");
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        let refunds = app.simulators.paystack().requests();
        assert_eq!(refunds.iter().filter(|(method, path)| method == "POST" && path == "/refund").count(), 1);
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn a_refund_without_a_response_is_requested_at_growing_intervals(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::Error500).times(100));
        assert_eq!(refund(app, &payment, Value::Null).await.failure().0, 502);
        let requests = || {
            let all = app.simulators.paystack().requests();
            all.iter().filter(|(method, path)| method == "POST" && path == "/refund").count()
        };
        let mut sent = vec![requests()];
        for _ in 0..4 {
            app.advance(900).await;
            sent.push(requests());
        }
        // Each minute at first, because the earlier request may still be processed.
        assert_eq!(sent, [1, 9, 10, 10, 11]);
        app.simulators.faults().clear();
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
    }

    async fn a_refund_made_at_the_provider_is_recorded(app: TestApp) {
        app.paid_payment("order-1").await;
        refund_at_paystack(app, json!({ "transaction": "order-1" })).await;
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn a_failed_refund_can_be_requested_again(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        let refund = async || app.operator(Method::POST, &path(app, &payment), Value::Null).await;
        assert_eq!(refund().await.data()["status"], "refunded");
        app.advance(3600).await;
        assert_eq!(refund().await.data()["status"], "refunded"); // retried, held only once
        app.advance(3600).await;
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn the_status_of_a_refund_can_be_fetched(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let path = path(app, &payment);
        let fetch_refund = async || app.operator(Method::GET, &path, Value::Null).await;
        assert_eq!(fetch_refund().await.failure(), (404, "refund not found"));
        app.operator(Method::POST, &path, Value::Null).await.data();
        assert_eq!(fetch_refund().await.data()["status"], "pending");
        app.advance(3600).await;
        let refund = fetch_refund().await.data().clone();
        assert_eq!((&refund["status"], &refund["amount"]), (&json!("done"), &json!(2500.5)));
        assert_eq!(refund["payment"], payment["id"]);
    }

    async fn a_refund_with_unknown_outcome_is_held_until_the_provider_reports_its_status(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter).times(1));
        let path = path(app, &payment);
        assert_eq!(app.operator(Method::POST, &path, Value::Null).await.failure().0, 502);
        // The provider cannot be reached now, which does not determine the earlier outcome.
        let nowhere = json!({ "credentials": { "secret_key": PAYSTACK_KEY, "base_url": "http://127.0.0.1:9" } });
        app.operator(Method::PUT, "/providers/provider_a", nowhere).await.data();
        app.advance(3600).await;
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data()["status"], "requested");
        app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        app.advance(2 * 3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.refunded"]);
    }

    async fn concurrent_requests_for_a_refund_make_it_once(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund_list", FaultKind::Slow).times(1).delay_ms(200));
        let path = path(app, &payment);
        let refunds = (0..6).map(|_| app.operator(Method::POST, &path, Value::Null));
        let responses = join_all(refunds).await;
        let done = responses.iter().filter(|response| response.status == 200).count();
        let busy = (409, "another request for this refund is in progress");
        assert_eq!((done, responses.iter().filter(|a| a.status != 200 && a.failure() == busy).count()), (1, 5));
        let requests = app.simulators.paystack().requests();
        assert_eq!(requests.iter().filter(|(method, path)| method == "POST" && path == "/refund").count(), 1);
        app.advance(3600).await;
        assert_eq!(app.wallet().await["balance"], json!(0));
    }

    async fn a_refund_that_cannot_be_requested_holds_no_money(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.operator(Method::PUT, "/providers/provider_a", json!({ "credentials": null })).await.data();
        let refused = app.operator(Method::POST, &path(app, &payment), Value::Null).await;
        assert_eq!(refused.failure(), (400, "payment service key not found"));
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
    }
}

both! {
    async fn parts_are_refunded_one_after_the_other(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let part = refund(app, &payment, json!({ "amount": 1000 })).await.data().clone();
        assert_eq!((&part["status"], &part["refunded"]), (&json!("success"), &json!(1000)));
        // 2362.99 × 1000 / 2500.5, rounded down.
        assert_eq!(app.wallet().await["balance"], json!(1417.99));
        let busy = (409, "a refund of 1000 NGN is in progress: wait until it ends");
        assert_eq!(refund(app, &payment, json!({ "amount": 500.5 })).await.failure(), busy);
        assert_eq!(refund(app, &payment, json!({})).await.failure(), busy);
        app.advance(3600).await;
        assert_eq!(refund(app, &payment, json!({ "amount": 500.5 })).await.data()["refunded"], json!(1500.5));
        app.advance(3600).await;
        let rest = refund(app, &payment, json!({})).await.data().clone();
        assert_eq!((&rest["status"], &rest["refunded"]), (&json!("refunded"), &Value::Null));
        app.advance(3600).await;
        assert_eq!(app.wallet().await["balance"], json!(0));
        let partly = "payment.partly_refunded";
        assert_eq!(app.events(), ["payment.success", partly, partly, "payment.refunded"]);
        assert_eq!(refunded_at_paystack(app).await, [100_000, 50_050, 100_000]);
        assert_eq!(refund(app, &payment, json!({ "amount": 1 })).await.failure(), (400, "only successful payment can be refunded"));
    }

    async fn at_most_what_is_left_is_refunded(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        for (amount, message) in [
            (json!(0), "the amount field must be greater than 0"),
            (json!(-1), "the amount field must be greater than 0"),
            (json!("1"), "the amount field must be a number"),
            (json!(2500.51), "the amount field must be at most 2500.5, which is left to refund"),
        ] {
            assert_eq!(refund(app, &payment, json!({ "amount": amount })).await.failure(), (400, message));
        }
        refund(app, &payment, json!({ "amount": 2000 })).await.data();
        app.advance(3600).await;
        let message = "the amount field must be at most 500.5, which is left to refund";
        assert_eq!(refund(app, &payment, json!({ "amount": 501 })).await.failure(), (400, message));
        assert_eq!(refund(app, &payment, json!({ "amount": 500.5 })).await.data()["status"], "refunded");
        app.run_until_idle().await;
    }

    async fn a_part_whose_response_is_lost_is_refunded_once(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        app.advance(3600).await;
        // The second part has the amount of the first one.
        app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter).times(1));
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.failure().0, 502);
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["refunded"], json!(2000));
        assert_eq!(refunded_at_paystack(app).await, [100_000, 100_000]);
        assert_eq!(app.wallet().await["balance"], json!(472.98));
    }

    async fn a_part_that_fails_at_the_provider_is_no_longer_shown_as_refunded(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.data()["refunded"], json!(1000));
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await.get("refunded"), None);
        assert_eq!(app.wallet().await["balance"], json!(1417.99)); // held until the retry
        // Another part needs none of that money.
        assert_eq!(refund(app, &payment, json!({ "amount": 500 })).await.data()["refunded"], json!(500));
        assert_eq!(app.wallet().await["balance"], json!(945.49));
        app.advance(3600).await;
        assert_eq!(app.wallet().await["balance"], json!(945.49));
        // The repetition of the first one does.
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.data()["refunded"], json!(1000));
        assert_eq!(app.wallet().await["balance"], json!(945.49));
        app.advance(3600).await;
    }

    async fn a_part_that_is_requested_twice_by_mistake_is_refunded_once(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let body = json!({ "amount": 1000, "already_refunded": 0 });
        refund(app, &payment, body.clone()).await.data();
        let message = "1000 NGN has already been refunded";
        assert_eq!(refund(app, &payment, body.clone()).await.failure(), (409, message));
        app.advance(3600).await;
        assert_eq!(refund(app, &payment, body).await.failure(), (409, message));
        let more = json!({ "amount": 500, "already_refunded": 1000 });
        assert_eq!(refund(app, &payment, more).await.data()["refunded"], json!(1500));
        app.run_until_idle().await;
    }

    async fn a_refused_retry_of_a_failed_refund_keeps_the_money(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        assert_eq!(refund(app, &payment, json!({})).await.data()["status"], "refunded");
        app.advance(3600).await;
        let message = "the refund of the remaining amount failed: repeat it without an amount";
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.failure(), (400, message));
        // Leaves too little, until it fails too.
        refund_at_paystack(app, json!({ "transaction": "order-1", "amount": 1_000 })).await;
        assert_eq!(refund(app, &payment, json!({})).await.failure().0, 502);
        assert_eq!(app.wallet().await["balance"], json!(0));
        app.advance(3600).await;
        assert_eq!(refund(app, &payment, json!({})).await.data()["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
        app.advance(3600).await;
    }

    async fn a_refused_refund_of_another_part_returns_its_money(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        // The second one replaces the first one, and keeps its money.
        for _ in 0..2 {
            refund(app, &payment, json!({ "amount": 1000 })).await.data();
            app.advance(3600).await;
        }
        let balance = app.wallet().await["balance"].clone();
        // Leaves too little.
        refund_at_paystack(app, json!({ "transaction": "order-1", "amount": 210_000 })).await;
        assert_eq!(refund(app, &payment, json!({ "amount": 500 })).await.failure().0, 502);
        assert_eq!(app.wallet().await["balance"], balance);
        app.advance(3600).await;
    }

    async fn a_refused_retry_keeps_the_money_even_after_another_part(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        app.advance(3600).await;
        refund(app, &payment, json!({ "amount": 500 })).await.data();
        // As if the provider had made this part.
        let done = "UPDATE charge_refunds SET state = 'done' WHERE number = 2";
        let made: store::Result<u64> =
            app.app.store.write(async move |tx: &mut Tx| tx.sql(done).run().await).await;
        assert_eq!(made.expect("a statement"), 1);
        let balance = app.wallet().await["balance"].clone();
        // Leaves too little.
        refund_at_paystack(app, json!({ "transaction": "order-1", "amount": 150_000 })).await;
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.failure().0, 502);
        assert_eq!(app.wallet().await["balance"], balance);
        app.advance(3600).await;
    }

    async fn the_migration_finds_open_retries_of_failed_refunds(app: TestApp) {
        let payment = paid_with_failing_refunds(app, "order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        app.advance(3600).await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        let other = app.paid_payment("order-2").await;
        refund(app, &other, json!({ "amount": 500 })).await.data();
        let undo = async |tx: &mut Tx| -> store::Result<u64> {
            tx.sql("ALTER TABLE charge_refunds DROP COLUMN replaces").run().await?;
            tx.sql("DELETE FROM _sqlx_migrations WHERE version = 49").run().await
        };
        app.app.store.write(undo).await.expect("statements");
        let limits = store::StoreLimits::default();
        store::Store::open(&app.database.url, limits, Random::system()).await.expect("a migration");
        let list = "SELECT amount_minor, state, replaces FROM charge_refunds ORDER BY number, amount_minor";
        let read = async move |tx: &mut Tx| -> store::Result<Vec<(i64, String, bool)>> { tx.sql(list).all().await };
        let rows = app.app.store.read(read).await.expect("a list");
        let expected = [(50_000, "pending", false), (100_000, "failed", false), (100_000, "pending", true)];
        assert_eq!(rows, expected.map(|(amount, state, replaces)| (amount, state.to_owned(), replaces)));
        app.advance(3600).await;
    }

    async fn a_reversal_during_the_refund_of_a_part_is_recorded_after_it(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        let reversed = json!({ "reference": "order-1", "reversed": true });
        let tamper = app.client.put(format!("{}/paystack/tamper", app.simulators.url()));
        assert!(tamper.json(&reversed).send().await.expect("a response").status().is_success());
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
    }

    async fn a_payment_whose_rest_is_refunded_at_the_provider_is_refunded(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        app.advance(3600).await;
        let rest = json!({ "transaction": "order-1", "amount": 150_050 });
        refund_at_paystack(app, rest).await;
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(app.wallet().await["balance"], json!(0));
        assert_eq!(app.events(), ["payment.success", "payment.partly_refunded", "payment.refunded"]);
    }

    async fn the_service_bears_the_fees_of_a_refund(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        assert_eq!(balance_of(app, "fees").await, json!(-5500));
        app.advance(3600).await;
        refund(app, &payment, json!({})).await.data();
        assert_eq!(balance_of(app, "fees").await, json!(-13751));
        // The provider has taken 2500.5, returned it, and kept its fees.
        assert_eq!(balance_of(app, "provider:provider_a").await, json!(13751));
        app.run_until_idle().await;
    }

    async fn the_company_bears_the_fees_of_a_refund_if_so_configured(app: TestApp, "--refund-fees=company") {
        let payment = app.paid_payment("order-1").await;
        let message = "insufficient balance, please top up your wallet.";
        assert_eq!(refund(app, &payment, json!({})).await.failure(), (400, message));
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        refund(app, &payment, json!({ "amount": 1000 })).await.data();
        assert_eq!(app.wallet().await["balance"], json!(1362.99));
        assert_eq!(balance_of(app, "fees").await, json!(0));
        app.advance(3600).await;
        refund(app, &payment, json!({ "force": true })).await.data();
        assert_eq!(app.wallet().await["balance"], json!(-137.51));
        app.run_until_idle().await;
    }

    async fn a_refused_refund_returns_the_fees_too(app: TestApp, "--refund-fees=company") {
        let payment = app.paid_payment("order-1").await;
        let elsewhere = json!({ "transaction": "order-1", "amount": 200_000 });
        refund_at_paystack(app, elsewhere).await;
        assert_eq!(refund(app, &payment, json!({ "amount": 1000 })).await.failure().0, 502);
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        app.run_until_idle().await;
    }
}
