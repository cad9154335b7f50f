//! Mandates at each provider whose plugin obtains them.
//!
//! A new provider needs an implementation of [`MandateSubject`] and a line in [`conforms`].

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{FAULTS, Subject, monnify::Monnify, paystack::Paystack, request_count, unavailable};
use crate::{
    app::{Reply, TestApp},
    codes::merged,
    lending::{charge_instrument, create_loan, create_user, get_loan},
    mandates::complete_order,
};

const DAY: i64 = 86_400;

/// A provider of mandates, and its simulator.
pub trait MandateSubject: Subject {
    /// Method and path of the requests that begin a mandate.
    const BEGIN: (&'static str, &'static str);
    /// Whether the provider finds a mandate by the reference of its order.
    const KEEPS_REFERENCE: bool;

    /// Ends a mandate that the payer has authorized, without the host.
    async fn end(app: &TestApp, mandate: &Value);
    /// Returns whether the provider would accept a debit of the mandate.
    async fn is_active(app: &TestApp, mandate: &Value) -> bool;
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {$(
        mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn a_mandate_is_authorized_activated_and_charged(app: TestApp) { obtains::<S>(app).await }
                async fn a_mandate_becomes_ready_without_webhooks(app: TestApp) { polls::<S>(app).await }
                async fn a_mandate_whose_response_is_lost_is_begun_again(app: TestApp) { resumes::<S>(app).await }
                async fn a_mandate_that_is_not_begun_again_is_adopted_or_deleted(app: TestApp) { settles_unknown::<S>(app).await }
                async fn a_failed_query_changes_no_status(app: TestApp) { retries::<S>(app).await }
                async fn a_deleted_mandate_is_cancelled_at_the_provider(app: TestApp) { cancels::<S>(app).await }
                async fn a_mandate_that_is_authorized_after_its_deletion_is_cancelled(app: TestApp) { cancels_late::<S>(app).await }
                async fn a_mandate_that_ends_elsewhere_is_cancelled(app: TestApp) { ends_elsewhere::<S>(app).await }
            }
        }
    )*};
}
conforms! {
    provider_a: Paystack;
    provider_c: Monnify;
}

async fn set_up<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    create_user(app, "ada").await;
}

async fn try_create<S: Subject>(app: &TestApp, key: &str) -> Reply {
    let request = app.client.post(format!("{}/api/v1/direct-debit/create", app.api));
    let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", key);
    crate::app::reply(request.json(&complete_order(S::NAME))).await
}

async fn create<S: Subject>(app: &TestApp) -> Value {
    try_create::<S>(app, "key").await.data().clone()
}

async fn fetch(app: &TestApp, mandate: &Value) -> Value {
    let path = format!("/direct-debit/fetch/{}", mandate["id"].as_str().expect("an id"));
    app.get(&path).await.data().clone()
}

async fn list(app: &TestApp) -> Vec<Value> {
    app.get("/direct-debit/list/ada").await.data().as_array().expect("a list").clone()
}

async fn delete(app: &TestApp, mandate: &Value) {
    let id = mandate["id"].as_str().expect("an id");
    let path = format!("/direct-debit/delete/{id}?delete_default=true");
    let deleted = app.request(&app.company, Method::DELETE, &path, None).await;
    assert_eq!(deleted.body["message"], "Direct debit deleted successfully");
}

/// Begins a mandate, authorizes it as the payer, and waits until the bank has activated it.
async fn ready<S: Subject>(app: &TestApp) -> Value {
    let mandate = create::<S>(app).await;
    app.complete(&mandate, "success").await;
    app.advance(60).await;
    let mandate = fetch(app, &mandate).await;
    assert_eq!(mandate["status"], "ready", "{mandate}");
    mandate
}

async fn obtains<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let created = create::<S>(app).await;
    let expected = json!({
        "user_id": "ada", "status": "created", "active": false, "default": false,
        "payment_service": S::NAME, "currency": "NGN", "email": "ada@example.com",
        "max_amount": 50_000, "ends_at": "2027-11-21T09:00:00.000Z", "bank": "",
    });
    for (field, value) in expected.as_object().expect("an object") {
        assert_eq!(&created[field], value, "{field}: {created}");
    }
    let url = created["checkout"]["url"].as_str().expect("a URL");
    assert!(url.starts_with(&app.simulators.url()), "{url}");
    assert_eq!(fetch(app, &created).await, created);
    app.complete(&created, "success").await;
    app.run_until_idle().await;
    let approved = fetch(app, &created).await;
    assert_eq!((&approved["status"], &approved["active"]), (&json!("approved"), &json!(false)));
    assert_eq!(approved["checkout"]["url"], Value::Null);
    app.advance(10).await;
    let ready = fetch(app, &created).await;
    assert_eq!((&ready["status"], &ready["active"]), (&json!("ready"), &json!(true)));
    assert_eq!(ready["default"], true);
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    let debit = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "direct_debit": ready["id"] });
    charge_instrument(app, debit).await;
    app.advance(60).await;
    app.advance(300).await;
    assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(1_000));
    assert_eq!(
        app.events(),
        [
            "direct_debit.created", "direct_debit.approved", "direct_debit.ready",
            "recollection.success"
        ]
    );
}

async fn polls<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let created = create::<S>(app).await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(9));
    app.complete(&created, "success").await;
    app.advance(5).await;
    assert_eq!(fetch(app, &created).await["status"], "created");
    app.advance(55).await;
    app.advance(300).await;
    assert_eq!(fetch(app, &created).await["status"], "ready");
    app.simulators.faults().clear();
}

async fn resumes<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    for kind in FAULTS {
        let key = format!("{kind:?}");
        app.simulators.faults().push(Fault::new("mandate", kind));
        let lost = try_create::<S>(app, &key).await;
        assert_eq!(lost.failure(), (502, &*unavailable::<S>()), "{kind:?}");
        app.advance(60).await;
        let mandate = try_create::<S>(app, &key).await.data().clone();
        assert_eq!(try_create::<S>(app, &key).await.data(), &mandate);
        app.complete(&mandate, "success").await;
        app.advance(60).await;
        assert_eq!(fetch(app, &mandate).await["status"], "ready", "{kind:?}");
    }
    assert_eq!(list(app).await.len(), FAULTS.len());
}

async fn settles_unknown<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    app.simulators.faults().push(Fault::new("mandate", FaultKind::Cut));
    app.simulators.faults().push(Fault::new("mandate", FaultKind::CutAfter));
    for key in ["one", "two"] {
        assert_eq!(try_create::<S>(app, key).await.failure().0, 502);
    }
    assert_eq!(list(app).await.len(), 2);
    app.advance(2 * 3_600).await;
    let kept = list(app).await;
    if S::KEEPS_REFERENCE {
        assert_eq!(kept.len(), 1);
        app.complete(&kept[0], "success").await;
        app.advance(60).await;
        assert_eq!(list(app).await[0]["status"], "ready");
    } else {
        assert_eq!(kept, [Value::Null; 0]);
    }
}

async fn retries<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let created = create::<S>(app).await;
    for kind in FAULTS {
        app.simulators.faults().push(Fault::new("mandate_verify", kind));
    }
    app.complete(&created, "success").await;
    app.run_until_idle().await;
    assert_eq!(fetch(app, &created).await["status"], "created");
    app.advance(3_600).await;
    app.advance(3_600).await;
    assert_eq!(fetch(app, &created).await["status"], "ready");
}

async fn cancels<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let mandate = ready::<S>(app).await;
    assert!(S::is_active(app, &mandate).await);
    app.simulators.faults().push(Fault::new("deactivate", FaultKind::Error500));
    delete(app, &mandate).await;
    app.run_until_idle().await;
    assert!(S::is_active(app, &mandate).await);
    assert_eq!(list(app).await, [Value::Null; 0]);
    app.advance(3_600).await;
    assert!(!S::is_active(app, &mandate).await);
    assert_eq!(app.events().last().expect("an event"), "direct_debit.cancelled");
    let begun = request_count::<S>(app, S::BEGIN);
    app.advance(40 * DAY).await;
    assert_eq!(request_count::<S>(app, S::BEGIN), begun);
}

async fn cancels_late<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let mandate = create::<S>(app).await;
    delete(app, &mandate).await;
    app.run_until_idle().await;
    if S::KEEPS_REFERENCE {
        // The provider cancels it at once, and closes its page.
        assert!(!S::is_active(app, &mandate).await);
        return;
    }
    app.complete(&mandate, "success").await;
    app.run_until_idle().await;
    app.advance(10).await;
    assert!(!S::is_active(app, &mandate).await);
    let events = ["direct_debit.created", "direct_debit.cancelled"];
    assert_eq!(app.events(), events);
}

async fn ends_elsewhere<S: MandateSubject>(app: &TestApp) {
    set_up::<S>(app).await;
    let mandate = ready::<S>(app).await;
    S::end(app, &mandate).await;
    app.advance(7 * DAY).await;
    let ended = fetch(app, &mandate).await;
    assert_eq!((&ended["status"], &ended["active"]), (&json!("cancelled"), &json!(false)));
    assert_eq!(ended["default"], false);
    create_loan(app, "loan-1", "ada", &[(30, 1_000.0)]).await;
    let debit =
        json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit" });
    let named = merged(debit.clone(), json!({ "direct_debit": mandate["id"] }));
    let refused = app.post("/recollection/create", named).await;
    assert_eq!(refused.failure(), (400, "direct debit is not ready"));
    let refused = app.post("/recollection/create", debit).await;
    assert_eq!(refused.failure(), (404, "direct debit not found"));
}
