//! Conformance suite of providers that ask payers on the phone, with a state and a notification URL
//! for each payment and refund.
//!
//! A new provider needs an implementation of [`PushSubject`] and a line in [`conforms`].

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{jenga::Jenga, momo::Momo, mpesa::Mpesa};
use crate::app::{Reply, TestApp};

/// Maximum duration of a plugin call.
const CALL_S: i64 = 30;

/// A push as its simulator knows it.
pub struct Push {
    pub id: String,
    pub reference: String,
    pub notification_url: String,
}

#[derive(Clone, Copy)]
pub enum PayerAnswer {
    Confirms,
    Declines,
}

/// A provider and its simulator.
pub trait PushSubject {
    const NAME: &'static str;
    const CURRENCY: &'static str;
    /// A payer who does not answer automatically.
    const PHONE: &'static str;
    /// A number that the provider rejects in the response to the push, if it rejects any there.
    const FOREIGN_PHONE: Option<&'static str>;
    /// `false`: only the response of the push, or its notification, identifies it.
    const IS_FOUND_BY_REFERENCE: bool;
    /// The seconds after which an unanswered push has certainly expired.
    const EXPIRES_S: i64;
    /// `false`: the plugin does not export `session-refunds`.
    const HAS_REFUNDS: bool = true;

    /// Returns the component; `None` if it cannot be built here.
    fn component() -> Option<Vec<u8>>;
    fn credentials(app: &TestApp) -> Value;
    /// Returns all pushes, oldest first.
    fn pushes(app: &TestApp) -> Vec<Push>;
    fn answer(app: &TestApp, push: &str, answer: PayerAnswer);
    /// Returns what payers have paid and got back, in the major unit.
    fn totals(app: &TestApp) -> (u64, u64);
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {
        $(mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn a_confirmed_push_is_a_successful_payment(app: TestApp) { succeeds::<S>(app).await }
                async fn a_declined_push_is_a_failed_payment(app: TestApp) { fails::<S>(app).await }
                async fn a_push_needs_a_phone_number_that_the_provider_serves(app: TestApp) { needs_phone::<S>(app).await }
                async fn the_page_shows_the_progress(app: TestApp) { shows_progress::<S>(app).await }
                async fn a_lost_notification_is_replaced_by_the_schedule(app: TestApp) { checks_by_schedule::<S>(app).await }
                async fn a_notification_before_the_response_is_not_lost(app: TestApp) { takes_early_notification::<S>(app).await }
                async fn a_push_whose_response_was_lost_can_be_confirmed(app: TestApp) { confirms_lost_response::<S>(app).await }
                async fn a_push_whose_response_was_lost_is_not_repeated_while_it_is_open(app: TestApp) { waits_for_expiry::<S>(app).await }
                async fn a_push_that_was_answered_is_not_shown_again(app: TestApp) { reports_answer::<S>(app).await }
                async fn only_the_url_of_a_push_accepts_its_notifications(app: TestApp) { authenticates_by_url::<S>(app).await }
                async fn a_refund_ends_with_its_result(app: TestApp) { refunds::<S>(app).await }
                async fn a_refund_whose_response_was_lost_is_made_once(app: TestApp) { refunds_once::<S>(app).await }
            }
        })*
    };
}
conforms! {
    jenga: Jenga;
    momo: Momo;
    mpesa: Mpesa;
}

/// The built-in subjects.
pub const SUBJECTS: &[&str] = &[Jenga::NAME, Mpesa::NAME];

/// Sets up the service account. Returns `None` if the component cannot be built here.
pub async fn set_up<S: PushSubject>(app: &TestApp) -> Option<()> {
    app.install(&S::component()?).await;
    let set = json!({ "credentials": S::credentials(app), "active": true });
    let path = format!("/providers/{}", S::NAME);
    let account = app.operator(Method::PUT, &path, set).await;
    assert_eq!(account.status, 200, "{}", account.body);
    Some(())
}

fn order<S: PushSubject>(reference: &str) -> Value {
    json!({
        "email": "ada@example.com", "phone": S::PHONE, "amount": 1000, "currency": S::CURRENCY,
        "payment_service": S::NAME, "reference": reference,
        "checkout": {
            "success_url": "https://lender.example/paid",
            "cancel_url": "https://lender.example/not-paid",
        },
    })
}

async fn initialize<S: PushSubject>(app: &TestApp, reference: &str) -> Reply {
    app.post("/payment/initialize", order::<S>(reference)).await
}

/// Returns the only push.
fn only_push<S: PushSubject>(app: &TestApp) -> Push {
    let mut pushes = S::pushes(app);
    assert_eq!(pushes.len(), 1, "one push");
    pushes.remove(0)
}

async fn page(app: &TestApp, payment: &Value) -> String {
    let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
    let response = app.client.get(url).send().await.expect("a response");
    assert_eq!(response.status(), StatusCode::OK);
    let policy = response.headers()["content-security-policy"].to_str().expect("a text");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    response.text().await.expect("a body")
}

async fn succeeds<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    let begun = initialize::<S>(app, "order-1").await;
    let payment = begun.data();
    assert_eq!(payment["status"], "pending", "{}", begun.body);
    assert!(payment["checkout"]["prompt"].is_string(), "{}", begun.body);
    let push = only_push::<S>(app);
    // A repeated request sends no second push.
    assert_eq!(initialize::<S>(app, "order-1").await.data()["id"], payment["id"]);
    assert_eq!(S::pushes(app).len(), 1);
    S::answer(app, &push.id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    let paid = app.fetch("order-1").await;
    assert_eq!((&paid["status"], &paid["amount"]), (&json!("success"), &json!(1000)), "{paid}");
    assert_eq!(paid["payment_channel"], "mobile_money");
    assert_eq!(app.events(), ["payment.success"]);
    let wallet = app.wallet().await;
    let balances = wallet["balances"].to_string();
    assert!(balances.contains(S::CURRENCY), "{wallet}");
}

async fn fails<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    initialize::<S>(app, "order-1").await;
    S::answer(app, &only_push::<S>(app).id, PayerAnswer::Declines);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "failed");
    assert_eq!(app.events(), ["payment.failed"]);
    assert_eq!(S::totals(app), (0, 0));
}

async fn needs_phone<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    let with = |phone: Value| {
        let mut order = order::<S>("order-1");
        order["phone"] = phone;
        async move { app.post("/payment/initialize", order).await }
    };
    let missing = with(Value::Null).await;
    assert_eq!(missing.failure(), (400, "the phone field is required"));
    if let Some(foreign) = S::FOREIGN_PHONE {
        let message = format!("{} does not serve this phone number", S::NAME);
        assert_eq!(with(json!(foreign)).await.failure(), (400, &*message));
    }
    assert_eq!(with(json!("0722000000")).await.status, 400);
    assert!(S::pushes(app).is_empty());

    let user = json!({
        "user_id": "ada", "email": "ada@example.com", "first_name": "Ada", "last_name": "Obi",
        "phone": S::PHONE,
    });
    assert_eq!(app.post("/user/create", user).await.status, 200);
    let mut of_user = order::<S>("order-2");
    of_user["user_id"] = json!("ada");
    of_user["phone"].take();
    let begun = app.post("/payment/initialize", of_user).await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    only_push::<S>(app);
}

async fn shows_progress<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    let paid = initialize::<S>(app, "order-1").await.data().clone();
    let prompt = paid["checkout"]["prompt"].as_str().expect("a prompt");
    let shown = page(app, &paid).await;
    assert!(shown.contains(prompt) && shown.contains("http-equiv=\"refresh\""), "{shown}");
    assert!(shown.contains("1000") && !shown.contains("lender.example"), "{shown}");
    app.advance(S::EXPIRES_S + 1).await;
    let expired = page(app, &paid).await;
    assert!(!expired.contains(prompt), "{expired}");
    assert!(expired.contains("href=\"https://lender.example/not-paid\""), "{expired}");
    app.advance(3_600).await;
    initialize::<S>(app, "order-2").await;
    let second = initialize::<S>(app, "order-2").await.data().clone();
    let push = S::pushes(app).pop().expect("a push");
    S::answer(app, &push.id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    let done = page(app, &second).await;
    assert!(done.contains("url=https://lender.example/paid"), "{done}");
    let third = initialize::<S>(app, "order-3").await.data().clone();
    let push = S::pushes(app).pop().expect("a push");
    S::answer(app, &push.id, PayerAnswer::Declines);
    app.run_until_idle().await;
    let declined = page(app, &third).await;
    assert!(declined.contains("https://lender.example/not-paid"), "{declined}");
    assert!(!declined.contains("refresh"), "{declined}");
    // No other page opens with this signature.
    let url = second["checkout"]["url"].as_str().expect("a URL");
    let (start, signature) = url.rsplit_once('/').expect("a signature");
    let (start, _) = start.rsplit_once('/').expect("a charge");
    let (_, other) =
        third["checkout"]["url"].as_str().expect("a URL").rsplit_once("/pay/").expect("a page");
    let other = other.split('/').nth(1).expect("a charge");
    let forged = app.client.get(format!("{start}/{other}/{signature}")).send().await;
    assert_eq!(forged.expect("a response").status(), 404);
}

async fn checks_by_schedule<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    initialize::<S>(app, "order-1").await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    S::answer(app, &only_push::<S>(app).id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "pending");
    app.advance(60).await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
}

async fn takes_early_notification<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    let slow = Fault::new("initialize", FaultKind::SlowAfter).delay_ms(1_500);
    app.simulators.faults().push(slow);
    let answered = async {
        loop {
            if let Some(push) = S::pushes(app).pop() {
                S::answer(app, &push.id, PayerAnswer::Confirms);
                return app.run_until_idle().await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let (begun, ()) = tokio::join!(initialize::<S>(app, "order-1"), answered);
    assert_eq!(begun.status, 200, "{}", begun.body);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(app.events(), ["payment.success"]);
    if !S::HAS_REFUNDS {
        return;
    }
    // State and notification are stored separately: the refund finds both.
    refund::<S>(app, begun.data()).await;
    app.advance(60).await;
    assert_eq!(S::totals(app), (1000, 1000));
}

async fn confirms_lost_response<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
    assert_eq!(initialize::<S>(app, "order-1").await.status, 502);
    S::answer(app, &only_push::<S>(app).id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(app.events(), ["payment.success"]);
}

async fn waits_for_expiry<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
    if !S::IS_FOUND_BY_REFERENCE {
        // Without this notification of its expiry, nothing identifies the push.
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    }
    assert_eq!(initialize::<S>(app, "order-1").await.status, 502);
    app.advance(61).await;
    let again = initialize::<S>(app, "order-1").await;
    if S::IS_FOUND_BY_REFERENCE {
        // The provider knows the request, and the payer sees it.
        assert_eq!(again.status, 200, "{}", again.body);
        assert!(again.data()["checkout"]["prompt"].is_string(), "{}", again.body);
        S::answer(app, &only_push::<S>(app).id, PayerAnswer::Confirms);
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        return;
    }
    let message = "the payer may still confirm an earlier request for this reference";
    assert_eq!(again.failure(), (409, message));
    let wait: i64 = again.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..S::EXPIRES_S + CALL_S).contains(&wait), "{wait}");
    app.advance(wait - 1).await;
    assert_eq!(initialize::<S>(app, "order-1").await.failure(), (409, message));
    assert_eq!(S::pushes(app).len(), 1);
    app.advance(1).await;
    let again = initialize::<S>(app, "order-1").await;
    assert_eq!(again.status, 200, "{}", again.body);
    let [first, second] = <[Push; 2]>::try_from(S::pushes(app)).ok().expect("two pushes");
    assert_ne!(first.reference, second.reference);
    assert_ne!(first.notification_url, second.notification_url);
    S::answer(app, &second.id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(S::totals(app).0, 1000);
}

async fn reports_answer<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
    assert_eq!(initialize::<S>(app, "order-1").await.status, 502);
    S::answer(app, &only_push::<S>(app).id, PayerAnswer::Declines);
    if S::IS_FOUND_BY_REFERENCE {
        // The notification is lost too, so the host must query the push by its reference.
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    }
    app.run_until_idle().await;
    app.advance(30).await;
    let again = initialize::<S>(app, "order-1").await;
    assert_eq!(again.data()["status"], "failed", "{}", again.body);
    assert_eq!(again.data()["checkout"]["prompt"], Value::Null, "{}", again.body);
    assert_eq!(S::pushes(app).len(), 1);
}

async fn authenticates_by_url<S: PushSubject>(app: &TestApp) {
    let Some(()) = set_up::<S>(app).await else { return };
    for reference in ["order-1", "order-2"] {
        initialize::<S>(app, reference).await;
        let push = S::pushes(app).pop().expect("a push");
        S::answer(app, &push.id, PayerAnswer::Declines);
    }
    app.run_until_idle().await;
    let urls: Vec<String> = S::pushes(app).into_iter().map(|push| push.notification_url).collect();
    assert_ne!(urls[0], urls[1]);
    let parts: Vec<Vec<&str>> = urls.iter().map(|url| url.rsplitn(3, '/').collect()).collect();
    let forged = format!("{}/{}/{}", parts[0][2], parts[0][1], parts[1][0]);
    let post = async |url: &str| {
        app.client.post(url).body("{}").send().await.expect("a response").status().as_u16()
    };
    assert_eq!(post(&forged).await, 404);
    let other = app.new_company("Beta Lending").await;
    let elsewhere = urls[0].replace(app.company.id.as_str(), other.id.as_str());
    assert_ne!(elsewhere, urls[0]);
    assert_eq!(post(&elsewhere).await, 404);
    assert_eq!(post(&format!("{}x", urls[0])).await, 404);
    assert_eq!(post(&urls[0].replace(S::NAME, "provider_a")).await, 404);
    // A plugin that ignores the contents of notifications may accept any body.
    assert!([200, 400].contains(&post(&urls[0]).await));
    app.run_until_idle().await;
    // The account's own URL needs the interface for signed webhooks.
    let (account, _) = parts[0][2].rsplit_once('/').expect("a company");
    assert_eq!(post(account).await, 404);
}

async fn refund<S: PushSubject>(app: &TestApp, payment: &Value) -> Reply {
    let path = format!(
        "/companies/{}/payments/{}/refund",
        app.company.id,
        payment["id"].as_str().expect("an id")
    );
    app.operator(Method::POST, &path, json!({})).await
}

async fn pay<S: PushSubject>(app: &TestApp, reference: &str) -> Option<Value> {
    set_up::<S>(app).await?;
    initialize::<S>(app, reference).await;
    S::answer(app, &only_push::<S>(app).id, PayerAnswer::Confirms);
    app.run_until_idle().await;
    Some(app.fetch(reference).await)
}

/// Makes a payment for which the host keeps a state and the data of a notification.
pub async fn pay_by_phone(app: &TestApp) {
    pay::<Mpesa>(app, "push-1").await;
}

async fn refunds<S: PushSubject>(app: &TestApp) {
    let Some(payment) = pay::<S>(app, "order-1").await else { return };
    let refunded = refund::<S>(app, &payment).await;
    if !S::HAS_REFUNDS {
        let message = format!("{} does not support refunds", S::NAME);
        assert_eq!(refunded.failure(), (400, &*message));
        assert_eq!(app.fetch("order-1").await["status"], "success");
        return;
    }
    assert_eq!(refunded.data()["status"], "refunded", "{}", refunded.body);
    app.advance(60).await;
    assert_eq!(S::totals(app), (1000, 1000));
    assert_eq!(last_refund(app, &payment).await["status"], "done");
    assert_eq!(app.events().last().map(String::as_str), Some("payment.refunded"));
}

async fn last_refund(app: &TestApp, payment: &Value) -> Value {
    let path = format!(
        "/companies/{}/payments/{}/refund",
        app.company.id,
        payment["id"].as_str().expect("an id")
    );
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

async fn refunds_once<S: PushSubject>(app: &TestApp) {
    if !S::HAS_REFUNDS {
        return;
    }
    let Some(payment) = pay::<S>(app, "order-1").await else { return };
    app.simulators.faults().push(Fault::new("refund", FaultKind::CutAfter));
    assert_eq!(refund::<S>(app, &payment).await.status, 502);
    // A query after the notification does not wait for a minute, like a request.
    app.advance(30).await;
    assert_eq!(last_refund(app, &payment).await["status"], "done");
    app.advance(3_600).await;
    assert_eq!(S::totals(app), (1000, 1000));
    assert_eq!(last_refund(app, &payment).await["status"], "done");
    assert_eq!(app.fetch("order-1").await["status"], "refunded");
}
