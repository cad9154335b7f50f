//! Service references: the client's reference if possible, and never that of another payment.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{background::jobs, store};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, TestApp, reply},
    lending::{
        SUCCESS_CARD, complete_page, create_loan, create_recollection, create_user, direct_debit,
        saved_card,
    },
    sprout::repack,
    unruly::{self, RecordingUpstream},
};

/// The paths of the open checkout pages, from the simulators' front page.
pub async fn open_checkouts(app: &TestApp) -> Vec<String> {
    let page = app.client.get(format!("{}/", app.simulators.url())).send().await.expect("a page");
    let page = page.text().await.expect("a page");
    let links = page.split("href=\"").filter(|link| link.starts_with("/checkout/"));
    links.filter_map(|link| link.split('"').next()).map(str::to_owned).collect()
}

/// Creates a foreign payment with the same amount and reference on the same account. Returns its
/// checkout URL.
async fn create_foreign_payment(app: &TestApp) -> Value {
    let body = json!({ "email": "eve@example.com", "amount": 250_050, "reference": "order-1" });
    let request =
        app.client.post(format!("{}/paystack/transaction/initialize", app.simulators.url()));
    let response = request.bearer_auth(PAYSTACK_KEY).json(&body).send().await.expect("a response");
    let response: Value = response.json().await.expect("a response in JSON");
    json!({ "checkout": { "url": response["data"]["authorization_url"] } })
}

both! {
    async fn a_reference_already_used_at_the_provider_is_replaced(app: TestApp) {
        create_foreign_payment(app).await;
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["reference"], "order-1");
        assert_ne!(payment["service_ref"], "order-1");
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_payment_in_an_abandoned_session_counts(app: TestApp) {
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        let lost = open_checkouts(app).await;
        let resumed = app.initialize("order-1").await;
        assert_ne!(resumed["service_ref"], "order-1");

        let request = app.client.post(format!("{}{}/complete", app.simulators.url(), lost[0]));
        let done = request.json(&json!({ "outcome": "success" })).send().await.expect("a response");
        assert_eq!(done.status(), 200);
        app.run_until_idle().await;
        let payment = app.fetch("order-1").await;
        assert_eq!((&payment["status"], &payment["service_ref"]), (&json!("success"), &json!("order-1")));
        assert_eq!(app.events(), ["payment.success"]);
        app.complete(&resumed, "success").await; // paid twice, and credited once
        app.run_until_idle().await;
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
    }

    async fn a_reference_that_the_provider_cannot_accept_is_mapped(app: TestApp) {
        let payment = app.initialize("order_1/ä").await;
        assert_eq!(payment["reference"], "order_1/ä");
        assert_ne!(payment["service_ref"], "order_1/ä");
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order_1%2F%C3%A4").await["status"], "success");
    }

    async fn a_foreign_payment_with_the_same_reference_is_not_credited(app: TestApp) {
        let elsewhere = create_foreign_payment(app).await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut).times(1));
        assert_eq!(app.post("/payment/initialize", app.order("order-1")).await.failure().0, 502);
        app.complete(&elsewhere, "success").await;
        app.advance(3600).await;
        let verified = app.post("/payment/verify/order-1", json!({})).await;
        assert_eq!(verified.failure(), (400, "payment still pending"));
        assert_eq!(app.wallet().await["balance"], json!(0));

        let resumed = app.initialize("order-1").await;
        assert_ne!(resumed["service_ref"], "order-1");
        app.complete(&resumed, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(2362.99));
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn every_service_reference_obeys_the_rule_of_the_manifest(app: TestApp) {
        app.install(&repack(artifacts::PROVIDER_A, |manifest| {
            manifest["version"] = json!("99.0.0");
            manifest["reference"] = json!({ "alphabet": "", "max_length": 12 });
        })).await;
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await; // and its refund
        direct_debit(app, "dd-1", "ada").await;
        let mut unnamed = app.order("");
        unnamed.as_object_mut().unwrap().remove("reference");
        for (order, kept) in [(app.order("order-1"), false), (unnamed, false), (app.order("order1"), true)] {
            let payment = app.post("/payment/initialize", order).await.data().clone();
            assert_eq!(payment["service_ref"] == payment["reference"], kept, "{payment}");
            app.complete(&payment, "success").await;
            app.run_until_idle().await;
            let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
            assert_eq!(app.operator(Method::POST, &path, Value::Null).await.data()["status"], "refunded");
        }
        // A payment whose session was lost.
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        assert_eq!(app.post("/payment/initialize", app.order("lost")).await.failure().0, 502);
        let resumed = app.initialize("lost").await;
        assert_ne!(resumed["service_ref"], "lost");
        for channel in ["checkout", "card", "direct_debit"] {
            create_loan(app, channel, "ada", &[(10, 100.0)]).await;
            let made = create_recollection(app, json!({
                "loan": channel, "with_provider": true, "payment_channel": channel, "reference": format!("of {channel}").replace(' ', "-"),
                "checkout": { "success_url": "https://a.example/" },
            })).await.data().clone();
            if channel == "checkout" {
                complete_page(app, &made, "success", SUCCESS_CARD).await;
            }
        }
        // An automatic collection.
        create_loan(app, "due", "ada", &[(2, 100.0)]).await;
        app.advance(3 * 86_400).await;
        assert_eq!(app.get("/recollection/list").await.data()["total"], 4);
        for recollection in app.get("/recollection/list").await.data()["docs"].as_array().unwrap() {
            assert_eq!(recollection["status"], "success", "{recollection}");
        }

        let at_paystack = async |path: &str| {
            let request = app.client.get(format!("{}/paystack{path}", app.simulators.url())).bearer_auth(PAYSTACK_KEY);
            reply(request).await.body["data"].as_array().expect("a list").clone()
        };
        let mut references: Vec<String> = Vec::new();
        for transaction in at_paystack("/transaction?perPage=1000").await {
            references.push(transaction["reference"].as_str().unwrap().to_owned());
        }
        assert_eq!(references.len(), 10, "{references:?}");
        let refunds = at_paystack("/refund").await;
        assert_eq!(refunds.len(), 4);
        for refund in refunds {
            let note = refund["merchant_note"].as_str().unwrap();
            references.push(note.split(['[', ']']).nth(1).expect("our reference").to_owned());
        }
        for reference in &references {
            let obeys = reference.len() <= 12 && reference.bytes().all(|b| b.is_ascii_alphanumeric());
            assert!(obeys, "{reference}");
        }
        assert_eq!(references.iter().collect::<BTreeSet<_>>().len(), references.len(), "{references:?}");
    }

    async fn a_retried_request_keeps_its_reference_when_the_rule_changes(app: TestApp) {
        let shorten = || repack(artifacts::PROVIDER_A, |manifest| {
            manifest["version"] = json!("99.0.0");
            manifest["reference"] = json!({ "alphabet": "", "max_length": 12 });
        });
        let notes = async || {
            let request = app.client.get(format!("{}/paystack/refund", app.simulators.url())).bearer_auth(PAYSTACK_KEY);
            let refunds = reply(request).await.body["data"].as_array().expect("a list").clone();
            refunds.iter().map(|refund| refund["merchant_note"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let payment = app.paid_payment("order-1").await;
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
        app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter));
        assert_eq!(app.operator(Method::POST, &path, Value::Null).await.failure().0, 502);
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        // A payment whose session was never created.
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut));
        assert_eq!(app.post("/payment/initialize", app.order("order-2")).await.failure().0, 502);

        let stored = async || {
            let read = async |tx: &mut store::Tx| tx.sql("SELECT refund_ref FROM charge_refunds WHERE cause = 'verification'").one().await;
            let (refund_ref,): (String,) = app.app.store.select(read).await.expect("a refund");
            refund_ref
        };
        let first = stored().await;
        app.install(&shorten()).await;
        // As if the response to the refund of the card's verification charge had been lost.
        let (company, now) = (app.company.id.clone(), app.app.clock.now());
        app.app.store.write(async move |tx| -> store::Result<()> {
            let lose = "UPDATE charge_refunds SET state = 'requested', provider_id = ''
                 WHERE cause = 'verification' RETURNING id";
            let (refund,): (String,) = tx.sql(lose).one().await?;
            jobs::enqueue(tx, &company, "charge.refund", &refund, now).await
        }).await.expect("a refund");
        app.advance(2 * 3_600).await;
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data()["status"], "done");
        let of_cards = app.operator(Method::GET, "/card-refunds", Value::Null).await.data()["refunds"].clone();
        assert_eq!(of_cards[0]["status"], "done", "{of_cards}");
        assert_eq!(stored().await, first);
        let [of_payment, of_card] = &notes().await[..] else { panic!("two refunds") };
        assert_ne!(of_payment, of_card);
        let resumed = app.initialize("order-2").await;
        assert_ne!(resumed["service_ref"], "order-2");
    }

    async fn a_reference_that_the_provider_returned_is_the_one_that_is_verified(app: TestApp) {
        let upstream = RecordingUpstream::start().await;
        app.install(&repack(artifacts::UNRULY, |manifest| {
            manifest["settings"] = json!({ "base_url": { "kind": "url" }, "mood": { "kind": "text", "default": "rename" } });
            manifest["optional"] = json!(["mood"]);
        })).await;
        let url = unruly::set_account(app, "/providers/unruly", &upstream.url).await;
        let path = format!("/companies/{}", app.company.id);
        app.operator(Method::PATCH, &path, json!({ "payment_service": "unruly" })).await.data();
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        let payment = app.initialize("order-1").await;
        assert_eq!(payment["service_ref"], "renamed-order-1");
        let page = json!({
            "loan": "loan-1", "with_provider": true, "payment_channel": "checkout", "reference": "r-1",
            "checkout": { "success_url": "https://a.example/" },
        });
        let recollection = create_recollection(app, page).await.data().clone();
        let own = format!("rec-{}", recollection["id"].as_str().unwrap());
        let verified = || -> BTreeSet<String> {
            upstream.received().into_iter().map(|got| got.path).filter(|path| path.starts_with("/verify/")).collect()
        };
        let expected: BTreeSet<String> =
            ["/verify/renamed-order-1".to_owned(), format!("/verify/renamed-{own}")].into();
        app.post("/payment/verify/order-1", json!({})).await.failure();
        app.post("/recollection/verify/r-1", json!({})).await.failure();
        assert_eq!(verified(), expected);
        app.advance(3_600).await;
        assert_eq!(verified(), expected);
        // A webhook may contain either reference.
        for named in ["order-1", "renamed-order-1", &*own, &*format!("renamed-{own}")] {
            let before = upstream.received().len();
            assert_eq!(reply(app.client.post(&url).body(named.to_owned())).await.status, 200);
            app.run_until_idle().await;
            assert_eq!(upstream.received().len(), before + 1, "{named}");
        }
        assert_eq!(verified(), expected);
    }
}
