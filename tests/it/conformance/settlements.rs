//! Lists of transactions and settlements at each provider whose plugin has them.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, ListedKind, ListedLine, ListingChange};

use super::{Subject, flutterwave::Flutterwave, monnify::Monnify, paid, paystack::Paystack};
use crate::{app::TestApp, exceptions::exceptions};

/// A provider that lists its transactions.
trait Settlements: Subject {
    /// Whether it lists settlements.
    const SETTLES: bool;

    fn change(app: &TestApp, reference: &str, change: ListingChange) -> bool;
    fn add(app: &TestApp, line: &ListedLine) -> Option<String>;
    fn settle(app: &TestApp, paid_minor: Option<u64>) -> Option<String>;
}

impl Settlements for Paystack {
    const SETTLES: bool = true;

    fn change(app: &TestApp, reference: &str, change: ListingChange) -> bool {
        app.simulators.paystack().change_listing(reference, change)
    }

    fn add(app: &TestApp, line: &ListedLine) -> Option<String> {
        app.simulators.paystack().add_listed(line)
    }

    fn settle(app: &TestApp, paid_minor: Option<u64>) -> Option<String> {
        app.simulators.paystack().settle(paid_minor)
    }
}

impl Settlements for Flutterwave {
    const SETTLES: bool = true;

    fn change(app: &TestApp, reference: &str, change: ListingChange) -> bool {
        app.simulators.flutterwave().change_listing(reference, change)
    }

    fn add(app: &TestApp, line: &ListedLine) -> Option<String> {
        app.simulators.flutterwave().add_listed(line)
    }

    fn settle(app: &TestApp, paid_minor: Option<u64>) -> Option<String> {
        app.simulators.flutterwave().settle(paid_minor)
    }
}

impl Settlements for Monnify {
    const SETTLES: bool = false;

    fn change(app: &TestApp, reference: &str, change: ListingChange) -> bool {
        app.simulators.monnify().change_listing(reference, change)
    }

    fn add(app: &TestApp, line: &ListedLine) -> Option<String> {
        app.simulators.monnify().add_listed(line)
    }

    fn settle(_app: &TestApp, _paid_minor: Option<u64>) -> Option<String> {
        None
    }
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {$(
        mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn payments_and_refunds_match(app: TestApp) { matches::<S>(app).await }
                async fn each_difference_is_found(app: TestApp) { finds_differences::<S>(app).await }
                async fn settlements_are_compared_with_their_payments(app: TestApp) { settles::<S>(app).await }
                async fn a_list_that_fails_is_continued(app: TestApp) { continues::<S>(app).await }
            }
        }
    )*};
}
conforms! {
    provider_a: Paystack;
    provider_b: Flutterwave;
    provider_c: Monnify;
}

async fn account<S: Subject>(app: &TestApp) -> String {
    let listed = app.operator(Method::GET, "/providers", Value::Null).await.data().clone();
    let mut accounts = listed.as_array().expect("a list").iter();
    let found = accounts.find(|one| one["provider"] == S::NAME).expect("an account");
    found["account"].as_str().expect("an id").to_owned()
}

/// Lists the transactions of the service account, and waits for the check. Returns today's report.
async fn reconcile<S: Subject>(app: &TestApp) -> Value {
    let account = account::<S>(app).await;
    let path = format!("/accounts/{account}/reconcile");
    assert_eq!(app.operator(Method::POST, &path, json!({})).await.status, 200);
    app.run_until_idle().await;
    app.advance(30).await;
    let today = app.app.clock.now().to_datetime().format("%Y-%m-%d");
    app.operator(Method::GET, &format!("/accounts/{account}/days/{today}"), Value::Null)
        .await
        .data()
        .clone()
}

async fn open(app: &TestApp) -> Vec<Value> {
    exceptions(app, "?state=open").await
}

async fn refund_part(app: &TestApp, payment: &Value) {
    let id = payment["id"].as_str().expect("an id");
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": 500 })).await.data();
    app.run_until_idle().await;
}

async fn matches<S: Settlements>(app: &TestApp) {
    S::set_up(app).await;
    let payment = paid::<S>(app, "order-1").await;
    paid::<S>(app, "order-2").await;
    refund_part(app, &payment).await;
    let report = reconcile::<S>(app).await;
    let totals = report["totals"].as_array().expect("a list");
    let total =
        |n: usize| ["kind", "listed", "matched", "amount"].map(|field| totals[n][field].clone());
    assert_eq!(total(0), [json!("payment"), json!(2), json!(2), json!(5001)], "{report}");
    assert_eq!(total(1), [json!("refund"), json!(1), json!(1), json!(500)], "{report}");
    assert_eq!(totals[0]["fees"], json!(2.0 * S::FEES), "{report}");
    assert_eq!(open(app).await, [Value::Null; 0]);
}

async fn finds_differences<S: Settlements>(app: &TestApp) {
    S::set_up(app).await;
    paid::<S>(app, "order-1").await;
    let line = |kind, reference: &str| ListedLine {
        kind,
        reference: reference.to_owned(),
        amount_minor: 100_000,
        fees_minor: Some(1_000),
        currency: "NGN".to_owned(),
    };
    S::add(app, &line(ListedKind::Payment, "ghost")).expect("a payment");
    S::add(app, &line(ListedKind::Refund, "order-1")).expect("a refund");
    let change = ListingChange { amount_minor: Some(240_000), ..ListingChange::default() };
    assert!(S::change(app, "order-1", change));
    reconcile::<S>(app).await;
    let mut kinds: Vec<_> = open(app)
        .await
        .iter()
        .map(|one| one["kind"].as_str().expect("a kind").to_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["payment_amount_differs", "payment_not_recorded", "refund_not_recorded"]);
    assert!(S::change(
        app,
        "order-1",
        ListingChange { fees_minor: Some(1), ..ListingChange::default() }
    ));
    reconcile::<S>(app).await;
    let found = open(app).await;
    assert!(
        found.iter().any(|one| one["kind"] == "fee_differs"
            && one["service_ref"].as_str().is_some_and(|it| !it.is_empty())),
        "{found:?}"
    );
}

async fn settles<S: Settlements>(app: &TestApp) {
    S::set_up(app).await;
    paid::<S>(app, "order-1").await;
    if !S::SETTLES {
        assert_eq!(reconcile::<S>(app).await["settlements"], json!([]));
        return;
    }
    S::settle(app, None).expect("a settlement");
    let report = reconcile::<S>(app).await;
    assert_eq!(report["settlements"][0]["gross"], json!(2500.5), "{report}");
    assert_eq!(open(app).await, [Value::Null; 0]);
    paid::<S>(app, "order-2").await;
    let id = S::settle(app, Some(100_000)).expect("a settlement");
    reconcile::<S>(app).await;
    let found = open(app).await;
    assert_eq!(
        (found.len(), &found[0]["kind"], &found[0]["subject"]),
        (1, &json!("settlement_differs"), &json!(format!("settlement:{id}")))
    );
    assert_eq!(found[0]["seen"], json!(1000));
}

/// A response that fails is requested again; what was recorded before stays.
async fn continues<S: Settlements>(app: &TestApp) {
    S::set_up(app).await;
    paid::<S>(app, "order-1").await;
    app.simulators.faults().push(Fault::new("refund_list", FaultKind::Error500));
    reconcile::<S>(app).await;
    app.advance(3_600).await;
    let report = reconcile::<S>(app).await;
    assert!(!report["listed_until"].is_null(), "{report}");
    assert_eq!(report["totals"][0]["matched"], 1, "{report}");
}
