//! Refunds of payments, and of parts of them.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{Subject, paid, request_count, unavailable};
use crate::app::TestApp;

pub async fn are_made_once<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    for (n, fault) in
        [None, Some(FaultKind::CutAfter), Some(FaultKind::Malformed)].into_iter().enumerate()
    {
        let reference = format!("order-{n}");
        let id = paid::<S>(app, &reference).await["id"].as_str().expect("an id").to_owned();
        let (path, made) = (
            format!("/companies/{}/payments/{id}/refund", app.company.id),
            request_count::<S>(app, S::REFUND),
        );
        if let Some(kind) = fault {
            app.simulators.faults().push(Fault::new("refund", kind));
        }
        let refunded = app.operator(Method::POST, &path, Value::Null).await;
        match fault {
            None => assert_eq!(refunded.data()["status"], "refunded"),
            Some(_) => assert_eq!(refunded.failure(), (502, &*unavailable::<S>())),
        }
        app.advance(3600).await;
        assert_eq!(app.fetch(&reference).await["status"], "refunded", "{fault:?}");
        // A refund that was not made is requested again; one that was made is found.
        let attempts = if fault == Some(FaultKind::Malformed) { 2 } else { 1 };
        assert_eq!(request_count::<S>(app, S::REFUND) - made, attempts, "{fault:?}");
        let again = app.operator(Method::POST, &path, Value::Null).await;
        assert_eq!(again.failure(), (400, "only successful payment can be refunded"));
        assert_eq!(app.wallet().await["balance"], json!(0));
    }
    assert_eq!(app.events(), ["payment.success", "payment.refunded"].repeat(3));
}

pub async fn beside_others_are_refused<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let id = paid::<S>(app, "order-1").await["id"].as_str().expect("an id").to_owned();
    let balance = app.wallet().await["balance"].clone();
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    S::refund_elsewhere(app, "order-1", 100_000).await;
    let refused = app.operator(Method::POST, &path, Value::Null).await;
    assert_eq!(refused.failure(), (502, &*unavailable::<S>()));
    let refund = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    assert_eq!(refund["status"], "failed");
    assert_eq!(refund["message"], "Refused partly-refunded");
    app.advance(3600).await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(app.wallet().await["balance"], balance);
    assert_eq!(app.events(), ["payment.success"]);
}

pub async fn of_parts_are_made_once<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let id = paid::<S>(app, "order-1").await["id"].as_str().expect("an id").to_owned();
    let path = format!("/companies/{}/payments/{id}/refund", app.company.id);
    let mut refunded = 0;
    for (n, fault) in
        [None, Some(FaultKind::CutAfter), Some(FaultKind::Malformed)].into_iter().enumerate()
    {
        let made = request_count::<S>(app, S::REFUND);
        if let Some(kind) = fault {
            app.simulators.faults().push(Fault::new("refund", kind));
        }
        // Each part has the amount of the ones before.
        let part = app.operator(Method::POST, &path, json!({ "amount": 700 })).await;
        assert_eq!(part.status == 200, fault.is_none(), "{}", part.body);
        // Until the provider has completed it.
        app.advance(6 * 3_600).await;
        refunded += 700;
        let attempts = if fault == Some(FaultKind::Malformed) { 2 } else { 1 };
        assert_eq!(request_count::<S>(app, S::REFUND) - made, attempts, "part {n}");
        let payment = app.fetch("order-1").await;
        assert_eq!(
            (&payment["status"], &payment["refunded"]),
            (&json!("success"), &json!(refunded))
        );
    }
    assert_eq!(app.operator(Method::POST, &path, Value::Null).await.data()["status"], "refunded");
    app.advance(3600).await;
    assert_eq!(app.wallet().await["balance"], json!(0));
    let partly = "payment.partly_refunded";
    assert_eq!(app.events(), ["payment.success", partly, partly, partly, "payment.refunded"]);
}
