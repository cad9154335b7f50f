//! Disputes: claims of payers against payments, which their bank decides.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::disputes as slice;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Reply, TestApp},
    exceptions::{exceptions, sum},
    principals::entries,
    reconciliation::reconcile,
    simulation::minor,
    telemetry::execute_sql,
};

const DAY: i64 = 86_400;

pub async fn disputes(app: &TestApp, query: &str) -> Vec<Value> {
    let path = format!("/companies/{}/disputes{query}", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await;
    listed.data()["disputes"].as_array().expect("a list").clone()
}

/// Opens a dispute of 10.00 about a successful payment of a company. Returns its id.
pub async fn open_dispute(app: &TestApp, company_id: &str, payment: &Value) -> String {
    let reference = payment["service_ref"].as_str().expect("a reference");
    app.simulators.paystack().open_dispute(reference, Some(1_000)).expect("a dispute");
    app.run_until_idle().await;
    let path = format!("/companies/{company_id}/disputes?state=open");
    let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    listed["disputes"][0]["id"].as_str().expect("an id").to_owned()
}

fn path(app: &TestApp, dispute: &Value) -> String {
    format!("/companies/{}/disputes/{}", app.company.id, dispute["id"].as_str().expect("an id"))
}

fn contest() -> Value {
    json!({
        "action": "contest", "message": "The order was delivered", "customer_name": "Ada Obi",
        "customer_email": "ada@example.com", "customer_phone": "+2348012345678",
        "service": "Order 1", "document_url": "https://acme.example/receipts/1",
    })
}

async fn answer(app: &TestApp, dispute: &Value, body: Value) -> Reply {
    app.operator(Method::POST, &format!("{}/answer", path(app, dispute)), body).await
}

/// A paid payment of 2,500.50 with a dispute of this amount, or of the whole.
async fn disputed(app: &TestApp, amount_minor: Option<u64>) -> (u64, Value) {
    app.paid_payment("order-1").await;
    let id = app.simulators.paystack().open_dispute("order-1", amount_minor).expect("a dispute");
    app.run_until_idle().await;
    (id, disputes(app, "").await[0].clone())
}

/// The balance, the disputed and the owed amount.
async fn wallet(app: &TestApp) -> [Value; 3] {
    let wallet = app.wallet().await["balances"]["NGN"].clone();
    // Amounts of zero are absent, but for the balance.
    ["balance", "disputed", "owed"].map(|field| match &wallet[field] {
        Value::Null => json!(0),
        amount => amount.clone(),
    })
}

async fn refund(app: &TestApp, payment: &Value, body: Value) {
    let id = payment["id"].as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    app.operator(Method::POST, &path, body).await.data();
}

/// The actions of a kind of entry in the timeline of a payment.
async fn timeline(app: &TestApp, payment_id: &Value, kind: &str) -> Vec<Value> {
    let id = payment_id.as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/timeline", app.company.id);
    let entries = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let of_kind = entries.as_array().expect("a list").iter().filter(|entry| entry["kind"] == kind);
    of_kind.map(|entry| entry["action"].clone()).collect()
}

/// The net amount of the payment of [`disputed`], and Paystack's fees in minor units.
const NET: f64 = 2_362.99;
const FEES: i64 = 13_751;

fn amounts(amounts: [f64; 3]) -> [Value; 3] {
    amounts.map(|amount| if amount.fract() == 0.0 { json!(amount as i64) } else { json!(amount) })
}

both! {
    async fn a_lost_dispute_takes_the_held_money(app: TestApp) {
        let (id, dispute) = disputed(app, Some(100_000)).await;
        assert_eq!(
            ["state", "amount", "held", "currency", "reference", "payment_service", "owner_kind", "closed_at"].map(|field| dispute[field].clone()),
            [json!("open"), json!(1000), json!(1000), json!("NGN"), json!("order-1"), json!("provider_a"), json!("payment"), Value::Null],
        );
        assert!(dispute["due_at"].as_str() > dispute["opened_at"].as_str(), "{dispute}");
        assert_eq!(wallet(app).await, amounts([1_362.99, 1_000.0, 0.0]));
        assert_eq!(app.events(), ["payment.success", "payment.disputed"]);
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        let lost = disputes(app, "?state=lost").await[0].clone();
        assert_eq!((&lost["held"], &lost["amount"], lost["closed_at"].is_null()), (&json!(0), &json!(1000), false));
        assert_eq!(wallet(app).await, amounts([1_362.99, 0.0, 0.0]));
        assert_eq!(app.events(), ["payment.success", "payment.disputed", "payment.dispute_closed"]);
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_won_dispute_returns_the_held_money(app: TestApp) {
        let (id, _) = disputed(app, Some(100_000)).await;
        assert!(app.simulators.paystack().decide_dispute(id, true));
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([NET, 0.0, 0.0]));
        assert_eq!(disputes(app, "").await[0]["state"], "won");
        assert_eq!(app.events(), ["payment.success", "payment.disputed", "payment.dispute_closed"]);
    }

    async fn a_payment_whose_whole_amount_is_lost_is_refunded(app: TestApp) {
        let (id, dispute) = disputed(app, None).await;
        assert_eq!((&dispute["amount"], &dispute["held"]), (&json!(2500.5), &json!(NET)));
        assert_eq!(wallet(app).await, amounts([0.0, NET, 0.0]));
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([0.0, 0.0, 0.0]));
        // The provider has taken 2,500.50, returned it, and kept its fees.
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "fees").await], [FEES, -FEES]);
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        let events: BTreeSet<String> = app.events().into_iter().collect();
        assert_eq!(events.len(), 4, "{events:?}");
        assert_eq!(timeline(app, &dispute["owner_id"], "dispute").await, ["opened", "lost"]);
        let ledger = timeline(app, &dispute["owner_id"], "ledger").await;
        assert!(["payment.dispute.held", "payment.dispute.lost", "payment.dispute.fee"].iter().all(|kind| ledger.contains(&json!(kind))), "{ledger:?}");
    }

    async fn the_company_bears_the_fees_of_a_lost_dispute_if_so_configured(app: TestApp, "--refund-fees=company") {
        let (id, _) = disputed(app, None).await;
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([-137.51, 0.0, 137.51]));
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "fees").await], [FEES, 0]);
    }

    async fn losing_the_rest_after_a_partial_refund_books_the_remaining_fees(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund(app, &payment, json!({ "amount": 1000 })).await;
        app.run_until_idle().await;
        let id = app.simulators.paystack().open_dispute("order-1", Some(150_050)).expect("a dispute");
        app.run_until_idle().await;
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([0.0, 0.0, 0.0]));
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "fees").await], [FEES, -FEES]);
        reconcile(app).await;
        assert_eq!(exceptions(app, "?state=open").await.len(), 0);
    }

    async fn the_fees_of_a_reversed_payment_are_booked(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        assert!(app.simulators.paystack().reverse("order-1"));
        app.advance(DAY).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "fees").await], [FEES, -FEES]);
        let ledger = timeline(app, &payment["id"], "ledger").await;
        assert!(ledger.contains(&json!("payment.reversed.fee")), "{ledger:?}");
    }

    async fn a_lost_dispute_may_have_the_money_of_a_failed_refund(app: TestApp) {
        let payment = app.initialize("order-1").await;
        let url = payment["checkout"]["url"].as_str().expect("a URL");
        let card = json!({ "outcome": "success", "card": "4084080000671803" }); // its refunds fail
        app.client.post(format!("{url}/complete")).json(&card).send().await.expect("a response");
        app.run_until_idle().await;
        refund(app, &payment, json!({})).await;
        app.advance(3_600).await;
        assert_eq!(wallet(app).await, amounts([0.0, 0.0, 0.0]), "held until the retry");
        let id = app.simulators.paystack().open_dispute("order-1", Some(100_000)).expect("a dispute");
        app.run_until_idle().await;
        assert!(app.simulators.paystack().decide_dispute(id, false));
        app.run_until_idle().await;
        reconcile(app).await;
        assert_eq!(exceptions(app, "?state=open").await.len(), 0);
    }

    async fn a_refund_that_is_rejected_after_an_unknown_outcome_releases_its_money(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::Cut).times(1));
        let id = payment["id"].as_str().expect("an id");
        let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
        assert_eq!(app.operator(Method::POST, &path, Value::Null).await.failure().0, 502);
        assert_eq!(wallet(app).await, amounts([0.0, 0.0, 0.0]), "held");
        // Leaves less than the amount of the refund.
        let paystack = app.simulators.paystack();
        let id = paystack.open_dispute("order-1", Some(100_000)).expect("a dispute");
        assert!(paystack.decide_dispute(id, false));
        app.advance(7 * 3_600).await;
        assert_eq!(app.operator(Method::GET, &path, Value::Null).await.data()["status"], "failed");
        assert_eq!(wallet(app).await, amounts([1_362.99, 0.0, 0.0]));
        assert_eq!(app.fetch("order-1").await["status"], "success");
        reconcile(app).await;
        // Raised while both might have been paid; an operator closes it.
        let open = exceptions(app, "?state=open").await;
        let kinds: Vec<_> = open.iter().map(|one| &one["kind"]).collect();
        assert_eq!(kinds, ["dispute_lost_after_a_refund"]);
    }

    async fn a_disputed_charge_that_is_not_known_to_be_paid_is_verified(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "failed").await;
        app.advance(60).await;
        assert_eq!(app.fetch("order-1").await["status"], "failed");
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
        app.complete(&payment, "success").await;
        app.simulators.paystack().open_dispute("order-1", Some(100_000)).expect("a dispute");
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        app.advance(DAY).await;
        assert_eq!(wallet(app).await, amounts([1_362.99, 1_000.0, 0.0]));
    }

    async fn a_dispute_lost_before_its_payment_is_recorded_raises_exceptions(app: TestApp) {
        reconcile(app).await;
        let payment = app.initialize("order-1").await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(3));
        app.complete(&payment, "success").await;
        let id = app.simulators.paystack().open_dispute("order-1", None).expect("a dispute");
        assert!(app.simulators.paystack().decide_dispute(id, false));
        slice::sweep(app.app.clone()).await.expect("a sweep");
        app.advance(DAY).await;
        assert_eq!((app.fetch("order-1").await["status"].clone(), wallet(app).await), (json!("failed"), amounts([0.0, 0.0, 0.0])));
        assert_eq!(disputes(app, "?state=lost").await.len(), 1);
        reconcile(app).await;
        let open = exceptions(app, "?state=open").await;
        let kind_and_amount =
            |one: &Value| (one["kind"].to_string(), minor(&one["suspense"]));
        let found: BTreeSet<(String, i64)> = open.iter().map(kind_and_amount).collect();
        let expected = [("payment_not_recorded", 250_050 - FEES), ("dispute_amount_differs", -250_050)];
        let expected = expected.map(|(kind, minor)| (json!(kind).to_string(), minor));
        assert_eq!(found, BTreeSet::from(expected));
        assert_eq!([sum(app, "provider:provider_a").await, sum(app, "suspense").await], [FEES, -FEES]);
    }

    async fn money_that_was_spent_is_owed(app: TestApp) {
        app.paid_payment("order-1").await;
        let debit = json!({ "amount": 2000, "key": "payout" });
        app.operator(Method::POST, &format!("/companies/{}/wallet/debit", app.company.id), debit).await.data();
        let id = app.simulators.paystack().open_dispute("order-1", Some(100_000)).expect("a dispute");
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([-637.01, 1_000.0, 637.01]));
        let browser = crate::console::Browser::signed_in(app, "ada", "finance-read").await;
        browser.get(&format!("/console/companies/{}/wallet", app.company.id)).await.shows(&["Disputed", "Owed"]);
        app.simulators.paystack().decide_dispute(id, true);
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([362.99, 0.0, 0.0]));
    }

    async fn a_disputed_payment_is_not_refunded(app: TestApp) {
        let (id, dispute) = disputed(app, Some(100_000)).await;
        let refund = format!("/companies/{}/payments/{}/refund", app.company.id, dispute["owner_id"].as_str().expect("an id"));
        let refused = app.operator(Method::POST, &refund, Value::Null).await;
        assert_eq!(refused.failure(), (400, "the payment is disputed: answer the dispute instead"));
        app.simulators.paystack().decide_dispute(id, true);
        app.run_until_idle().await;
        assert_eq!(app.operator(Method::POST, &refund, Value::Null).await.data()["status"], "refunded");
        app.advance(3_600).await;
    }

    async fn a_dispute_is_contested_once(app: TestApp) {
        let (id, dispute) = disputed(app, Some(100_000)).await;
        for (field, message) in [("customer_name", "the customer_name field is required"), ("service", "the service field is required"), ("message", "the message field is required")] {
            let mut body = contest();
            body[field] = Value::Null;
            assert_eq!(answer(app, &dispute, body).await.failure(), (400, message));
        }
        let contested = answer(app, &dispute, contest()).await.data().clone();
        assert_eq!((&contested["state"], contested["answered_at"].is_null()), (&json!("answered"), false));
        assert_eq!(answer(app, &dispute, contest()).await.failure(), (400, "the dispute is not open"));
        assert_eq!(wallet(app).await, amounts([1_362.99, 1_000.0, 0.0]));
        let entry = entries(app, &format!("/companies/{}/audit", app.company.id), "dispute.answer").await;
        assert_eq!((entry.len(), &entry[0]["detail"]["action"]), (1, &json!("contest")));
        assert!(!entry[0]["detail"].to_string().contains("ada@example.com"), "{entry:?}");
        app.simulators.paystack().decide_dispute(id, true);
        app.run_until_idle().await;
        assert_eq!((wallet(app).await, disputes(app, "?state=won").await.len()), (amounts([NET, 0.0, 0.0]), 1));
    }

    async fn an_accepted_dispute_is_lost_at_once(app: TestApp) {
        let (_, dispute) = disputed(app, Some(100_000)).await;
        let accepted = answer(app, &dispute, json!({ "action": "accept", "message": "Our mistake" })).await;
        assert_eq!(accepted.data()["state"], "lost");
        app.run_until_idle().await;
        assert_eq!(wallet(app).await, amounts([1_362.99, 0.0, 0.0]));
        assert_eq!(app.events(), ["payment.success", "payment.disputed", "payment.dispute_closed"]);
    }

    async fn an_answer_whose_response_is_lost_is_found_out(app: TestApp) {
        let (_, dispute) = disputed(app, Some(100_000)).await;
        app.simulators.faults().push(Fault::new("dispute_answer", FaultKind::CutAfter).times(2));
        assert_eq!(answer(app, &dispute, contest()).await.failure().0, 502);
        app.run_until_idle().await;
        assert_eq!(disputes(app, "").await[0]["state"], "answered");
    }

    async fn a_refused_answer_leaves_the_dispute_open(app: TestApp) {
        let (id, dispute) = disputed(app, Some(100_000)).await;
        // The webhook of the decision is lost, and the dispute has ended at the provider.
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        app.simulators.paystack().decide_dispute(id, false);
        let ended = answer(app, &dispute, contest()).await;
        assert_eq!(ended.data()["state"], "lost");
        app.run_until_idle().await;
    }

    async fn disputes_without_a_webhook_are_listed_daily(app: TestApp) {
        app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
        app.simulators.paystack().open_dispute("order-1", Some(100_000)).expect("a dispute");
        app.run_until_idle().await;
        assert_eq!(disputes(app, "").await.len(), 0);
        slice::sweep(app.app.clone()).await.expect("a sweep");
        slice::sweep(app.app.clone()).await.expect("a sweep without effect");
        app.run_until_idle().await;
        assert_eq!(disputes(app, "?state=open").await.len(), 1);
        app.advance(DAY).await;
        assert_eq!((disputes(app, "").await.len(), wallet(app).await), (1, amounts([1_362.99, 1_000.0, 0.0])));
    }

    async fn a_resolved_contradiction_is_not_reported_again_each_day(app: TestApp) {
        let (id, _) = disputed(app, Some(100_000)).await;
        app.simulators.paystack().decide_dispute(id, true);
        app.run_until_idle().await;
        execute_sql(app, "UPDATE disputes SET state = 'lost', lost_minor = amount_minor").await;
        let open = async || {
            let found = app.operator(Method::GET, "/exceptions?state=open", Value::Null).await;
            found.data()["exceptions"].as_array().expect("a list").clone()
        };
        slice::sweep(app.app.clone()).await.expect("a sweep");
        app.run_until_idle().await;
        let found = open().await;
        assert_eq!((found.len(), &found[0]["kind"]), (1, &json!("dispute_changed_after_its_end")));
        let path = format!("/companies/{}/exceptions/{}/resolve", app.company.id, found[0]["id"].as_str().expect("an id"));
        app.operator(Method::POST, &path, json!({ "action": "none", "reason": "the bank was asked" })).await.data();
        app.advance(2 * DAY).await;
        assert_eq!(open().await.len(), 0);
    }

    async fn duplicate_webhooks_hold_the_money_once(app: TestApp) {
        app.simulators.faults().push(Fault::new("notification", FaultKind::Duplicate).times(9));
        disputed(app, Some(100_000)).await;
        app.advance(DAY).await;
        assert_eq!(wallet(app).await, amounts([1_362.99, 1_000.0, 0.0]));
        assert_eq!(app.events().iter().filter(|event| *event == "payment.disputed").count(), 1);
    }

    async fn all_disputes_are_listed_for_operators(app: TestApp) {
        let (_, dispute) = disputed(app, Some(100_000)).await;
        let other = app.new_company("Other Lending").await;
        let all = app.operator(Method::GET, "/disputes?limit=1", Value::Null).await.data().clone();
        assert_eq!((&all["disputes"][0]["id"], &all["disputes"][0]["company"]), (&dispute["id"], &json!(app.company.id)));
        let foreign = format!("/companies/{}/disputes/{}", other.id, dispute["id"].as_str().expect("an id"));
        assert_eq!(app.operator(Method::GET, &foreign, Value::Null).await.status, 404);
        assert_eq!(app.operator(Method::POST, &format!("{foreign}/answer"), contest()).await.status, 404);
        let none = app.operator(Method::GET, &format!("/companies/{}/disputes", other.id), Value::Null).await.data().clone();
        assert_eq!(none["disputes"], json!([]));
    }

    async fn a_dispute_is_answered_on_the_console(app: TestApp) {
        let (_, dispute) = disputed(app, Some(100_000)).await;
        let mut browser = crate::console::Browser::signed_in(app, "ada", "finance-act").await;
        let page = format!("/console{}", path(app, &dispute));
        browser.get("/console/disputes?state=open").await.shows(&["order-1", &page]);
        browser.get(&format!("/console/companies/{}/disputes", app.company.id)).await.shows(&["order-1"]);
        let shown = browser.get(&page).await;
        shown.shows(&["Contest the dispute", "Accept the dispute", "Answer by"]);
        let token = shown.form_token();
        let fields = contest();
        let mut form = vec![("form_token", &*token)];
        form.extend(["message", "customer_name", "customer_email", "customer_phone", "service", "document_url"].map(|name| (name, fields[name].as_str().expect("text"))));
        let sent = browser.submit(&format!("{page}/contest"), &form).await;
        assert_eq!((sent.status, &*sent.location), (303, &*page), "{}", sent.html);
        let answered = browser.get(&page).await;
        answered.shows(&["answered"]);
        assert!(!answered.html.contains("Contest the dispute"), "{}", answered.html);
        let reader = crate::console::Browser::signed_in(app, "eve", "support-read").await;
        assert!(!reader.get(&page).await.html.contains("Contest the dispute"));
    }
}
