//! Conformance suite of payment providers: each provider passes it against its simulator.
//!
//! A new provider needs an implementation of [`Subject`] and a line in [`conforms`].

mod accounts;
mod cards;
mod debits;
mod disputes;
mod flutterwave;
mod jenga;
mod mandates;
mod momo;
pub mod monnify;
pub mod mpesa;
mod paystack;
mod recordings;
mod refunds;
mod reversals;
pub mod sessions;
mod settlements;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_plugins::{Manifest, PluginKind};
use tollhouse_sandbox::{Fault, FaultKind};

use self::{flutterwave::Flutterwave, monnify::Monnify, paystack::Paystack};
use crate::app::{Engine, Reply, TestApp, postgres, reply};

/// A provider and its simulator.
trait Subject {
    const NAME: &'static str;
    /// Method and path of the endpoints for checkout, refunds and charges of saved cards.
    const CHECKOUT: (&'static str, &'static str);
    const REFUND: (&'static str, &'static str);
    const CHARGE: (&'static str, &'static str);
    /// The provider fee for 2,500.50 NGN.
    const FEES: f64;
    const SUPPORTS_USD: bool;

    /// Sets up the service account; returns its notification URL.
    async fn set_up(app: &TestApp) -> String;
    fn requests(app: &TestApp) -> Vec<(String, String)>;
    /// Returns the body of the provider's webhook for a successful payment of 2,500.50 NGN.
    fn notification(reference: &str) -> String;
    /// Returns the signature header of a webhook, made with the account's secret or a wrong one.
    fn signature(body: &str, authentic: bool) -> (&'static str, String);
    /// Makes the provider report another amount or currency.
    fn tamper(app: &TestApp, reference: &str, minor: u64, currency: &str);
    /// Makes the provider report another amount as charged, and the right one as requested.
    fn tamper_taken(app: &TestApp, reference: &str, minor: u64);
    /// Uses up a reference without the host.
    async fn take_reference(app: &TestApp, reference: &str);
    /// Refunds this amount of a payment without the host.
    async fn refund_elsewhere(app: &TestApp, reference: &str, minor: u64);
    /// Returns a payment to its payer without the host and without a webhook.
    fn reverse(app: &TestApp, reference: &str);
    /// Creates an active mandate of ada@example.com; returns its token.
    async fn mandate(app: &TestApp) -> String;
    /// Returns the tokens in the provider's response that could charge the payer again.
    async fn reusable_tokens(app: &TestApp, reference: &str) -> Vec<String>;
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {
        const SUBJECTS: &[&str] = &[$(<$subject>::NAME),*];
        $(mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn initializing_a_payment_returns_a_checkout_url(app: TestApp) { initializes::<S>(app).await }
                async fn a_successful_payment_is_credited_minus_the_fees(app: TestApp) { succeeds::<S>(app).await }
                async fn a_declined_payment_fails(app: TestApp) { fails::<S>(app).await }
                async fn an_abandoned_payment_stays_pending(app: TestApp) { stays_pending::<S>(app).await }
                async fn a_payment_unknown_to_the_provider_stays_pending(app: TestApp) { keeps_unknown_pending::<S>(app).await }
                async fn amounts_are_exact_to_the_minor_unit(app: TestApp) { keeps_amounts_exact::<S>(app).await }
                async fn usd_payments_succeed_or_are_rejected(app: TestApp) { handles_usd::<S>(app).await }
                async fn a_different_amount_or_currency_is_not_a_success(app: TestApp) { rejects_mismatches::<S>(app).await }
                async fn an_undercharged_payment_is_not_a_success(app: TestApp) { rejects_undercharges::<S>(app).await }
                async fn a_refund_is_made_once(app: TestApp) { refunds::are_made_once::<S>(app).await }
                async fn parts_of_a_payment_are_refunded_once(app: TestApp) { refunds::of_parts_are_made_once::<S>(app).await }
                async fn a_payment_partially_refunded_elsewhere_is_not_refunded(app: TestApp) { refunds::beside_others_are_refused::<S>(app).await }
                async fn a_payment_returned_elsewhere_is_refunded_at_the_next_check(app: TestApp) { reversals::a_reversal_is_recorded_at_the_next_check::<S>(app).await }
                async fn only_signed_webhooks_are_accepted(app: TestApp) { checks_signatures::<S>(app).await }
                async fn a_reference_used_elsewhere_is_replaced(app: TestApp) { replaces_reference::<S>(app).await }
                async fn a_provider_failure_during_initialization_loses_no_payment(app: TestApp) { resumes_initialization::<S>(app).await }
                async fn a_provider_failure_during_verification_changes_no_status(app: TestApp) { retries_verification::<S>(app).await }
                async fn tokens_are_never_returned(app: TestApp) { hides_tokens::<S>(app).await }
                async fn a_card_is_verified_and_its_charge_is_refunded(app: TestApp) { cards::verifies::<S>(app).await }
                async fn a_charge_of_a_saved_card_succeeds_or_is_declined_or_challenged(app: TestApp) { cards::charges::<S>(app).await }
                async fn a_debit_of_a_bank_account_succeeds_or_is_declined(app: TestApp) { debits::debits::<S>(app).await }
                async fn a_debit_whose_response_is_lost_is_made_once(app: TestApp) { debits::debits_once::<S>(app).await }
                async fn a_charge_whose_response_is_lost_is_made_once(app: TestApp) { cards::charges_once::<S>(app).await }
                async fn a_provider_test_accepts_valid_credentials(app: TestApp) { tests_credentials::<S>(app).await }
            }

            #[tokio::test]
            async fn recorded_calls_replay_without_differences() {
                recordings::repeats::<S>().await;
            }

            #[tokio::test]
            async fn a_slow_provider_times_out_on_sqlite() {
                times_out::<S>(Engine::Sqlite).await;
            }

            #[tokio::test]
            async fn a_slow_provider_times_out_on_postgres() {
                let Some(server) = postgres() else { return };
                times_out::<S>(Engine::Postgres(server)).await;
            }
        })*
    };
}
conforms! {
    provider_a: Paystack;
    provider_b: Flutterwave;
    provider_c: Monnify;
}

/// Sets up the service account at the Flutterwave simulator.
pub async fn set_up_flutterwave(app: &TestApp) {
    Flutterwave::set_up(app).await;
}

/// Returns the transaction with this reference at Flutterwave.
pub async fn flutterwave_transaction(app: &TestApp, reference: &str) -> Value {
    flutterwave::verified(app, reference).await
}

#[test]
fn every_built_in_provider_is_tested() {
    let names: Vec<&str> = artifacts::BUILT_IN
        .iter()
        .filter(|component| {
            let manifest = Manifest::read(component.wasm);
            manifest.expect("a built-in component").kind == PluginKind::Provider
        })
        .map(|component| component.name)
        .collect();
    let mut tested = [SUBJECTS, sessions::SUBJECTS].concat();
    tested.sort_unstable();
    assert_eq!(names, tested);
}

// ---- the suite ----------------------------------------------------------------------------------

async fn tests_credentials<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let path = format!("/providers/{}/test", S::NAME);
    for _ in 0..2 {
        let tested = app.operator(Method::POST, &path, json!({})).await;
        assert_eq!(tested.data()["outcome"], "accepted", "{}", tested.body);
    }
    // The account keeps its credentials: the test also sends wrong ones.
    begin::<S>(app, "order-1").await;
}

async fn try_begin<S: Subject>(app: &TestApp, reference: &str) -> Reply {
    let mut order = app.order(reference);
    order["payment_service"] = json!(S::NAME);
    app.post("/payment/initialize", order).await
}

async fn begin<S: Subject>(app: &TestApp, reference: &str) -> Value {
    try_begin::<S>(app, reference).await.data().clone()
}

async fn verify(app: &TestApp, reference: &str) -> Reply {
    app.post(&format!("/payment/verify/{reference}"), json!({})).await
}

async fn paid<S: Subject>(app: &TestApp, reference: &str) -> Value {
    let payment = begin::<S>(app, reference).await;
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    app.fetch(reference).await
}

fn request_count<S: Subject>(app: &TestApp, request: (&str, &str)) -> usize {
    let requests = S::requests(app);
    requests.iter().filter(|(method, path)| (&**method, &**path) == request).count()
}

fn unavailable<S: Subject>() -> String {
    format!("{} is unavailable, please try again later", S::NAME)
}

async fn initializes<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let payment = begin::<S>(app, "order-1").await;
    assert_eq!(
        (&payment["status"], &payment["payment_service"]),
        (&json!("pending"), &json!(S::NAME))
    );
    assert_eq!((&payment["service_ref"], &payment["fees"]), (&json!("order-1"), &json!(0)));
    let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
    assert!(url.starts_with(&app.simulators.url()), "{url}");
    let response = payment["payment_response"].as_str().expect("a text");
    assert!(serde_json::from_str::<Value>(response).is_ok_and(|raw| raw.is_object()), "{response}");
    assert_eq!(request_count::<S>(app, S::CHECKOUT), 1);
    assert_eq!(verify(app, "order-1").await.failure(), (400, "payment still pending"));
}

async fn succeeds<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let payment = paid::<S>(app, "order-1").await;
    assert_eq!(
        (&payment["status"], &payment["payment_channel"]),
        (&json!("success"), &json!("card"))
    );
    assert_eq!((&payment["amount"], &payment["fees"]), (&json!(2500.5), &json!(S::FEES)));
    assert_eq!(payment["paid_at"], "2026-11-21T09:00:00.000Z");
    assert_eq!(verify(app, "order-1").await.data()["status"], "success");
    let balance = ((2500.5 - S::FEES) * 100.0).round() / 100.0;
    assert_eq!(app.wallet().await["balance"].as_f64(), Some(balance));
    assert_eq!(app.events(), ["payment.success"]);
}

async fn fails<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let payment = begin::<S>(app, "order-1").await;
    app.complete(&payment, "failed").await;
    app.advance(60).await;
    let failed = app.fetch("order-1").await;
    assert_eq!((&failed["status"], &failed["paid_at"]), (&json!("failed"), &Value::Null));
    assert_ne!(failed["message"], ""); // the provider's reason
    assert_eq!(app.wallet().await["pending"], json!(0));
    assert_eq!(app.wallet().await["balance"], json!(0));
    assert_eq!(app.events(), ["payment.failed"]);
}

async fn stays_pending<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let payment = begin::<S>(app, "order-1").await;
    app.complete(&payment, "abandoned").await;
    assert_eq!(verify(app, "order-1").await.failure(), (400, "payment still pending"));
    app.advance(80 * 3600).await;
    assert_eq!(app.fetch("order-1").await["status"], "pending");
    app.complete(&payment, "success").await; // the payer returns to the page
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
}

async fn keeps_unknown_pending<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    app.simulators.faults().push(Fault::new("initialize", FaultKind::Cut));
    assert_eq!(try_begin::<S>(app, "order-1").await.failure().0, 502);
    assert_eq!(verify(app, "order-1").await.failure(), (400, "payment still pending"));
    app.advance(2 * 3600).await;
    assert_eq!(app.fetch("order-1").await["status"], "pending");
    assert!(app.events().is_empty());
    let resumed = begin::<S>(app, "order-1").await;
    assert_eq!(resumed["service_ref"], "order-1"); // still unused at the provider
}

async fn keeps_amounts_exact<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let mut balance = 0;
    let minor = |amount: &Value| (amount.as_f64().expect("a number") * 100.0).round() as i64;
    for (n, amount) in
        [json!(50), json!(100.01), json!(2499.99), json!(1_234_567.89)].into_iter().enumerate()
    {
        let reference = format!("order-{n}");
        let mut order = app.order(&reference);
        order["payment_service"] = json!(S::NAME);
        order["amount"] = amount.clone();
        let payment = app.post("/payment/initialize", order).await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let payment = app.fetch(&reference).await;
        assert_eq!((&payment["status"], &payment["amount"]), (&json!("success"), &amount));
        assert!(
            minor(&payment["fees"]) > 0 && minor(&payment["fees"]) < minor(&amount),
            "{payment}"
        );
        balance += minor(&amount) - minor(&payment["fees"]);
        assert_eq!(minor(&app.wallet().await["balance"]), balance, "{amount}");
    }
}

async fn handles_usd<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let mut order = app.order("order-1");
    (order["payment_service"], order["currency"]) = (json!(S::NAME), json!("USD"));
    let begun = app.post("/payment/initialize", order).await;
    if !S::SUPPORTS_USD {
        assert_eq!(begun.failure(), (400, "the currency field must be one of NGN"));
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        return;
    }
    app.complete(begun.data(), "success").await;
    app.run_until_idle().await;
    let payment = app.fetch("order-1").await;
    assert_eq!((&payment["status"], &payment["currency"]), (&json!("success"), &json!("USD")));
    let left = (2500.5 - payment["fees"].as_f64().expect("a number")) * 100.0;
    let wallet = app.wallet().await;
    assert_eq!(wallet["balances"]["USD"]["balance"].as_f64(), Some(left.round() / 100.0));
    assert_eq!(wallet["balance"], json!(0));
}

async fn rejects_mismatches<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    for (reference, minor, currency, message) in [
        ("order-1", 250_049, "NGN", "amount mismatch"),
        ("order-2", 250_051, "NGN", "amount mismatch"),
        ("order-3", 250_050, "USD", "currency mismatch"),
    ] {
        let payment = begin::<S>(app, reference).await;
        app.complete(&payment, "success").await;
        S::tamper(app, reference, minor, currency);
        app.run_until_idle().await;
        assert_eq!(verify(app, reference).await.failure(), (400, message));
        assert_eq!(app.fetch(reference).await["status"], "pending");
    }
    assert_eq!(app.wallet().await["balance"], json!(0));
    assert!(app.events().is_empty());
}

async fn rejects_undercharges<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    for (reference, taken) in [("order-1", 250_049), ("order-2", 1), ("order-3", 0)] {
        let payment = begin::<S>(app, reference).await;
        app.complete(&payment, "success").await;
        S::tamper_taken(app, reference, taken);
        app.run_until_idle().await;
        assert_eq!(verify(app, reference).await.failure(), (400, "amount mismatch"), "{taken}");
        assert_eq!(app.fetch(reference).await["status"], "pending", "{taken}");
    }
    assert_eq!(app.wallet().await["balance"], json!(0));
    assert!(app.events().is_empty());
    // A larger amount includes the fees that the payer bears.
    let payment = begin::<S>(app, "order-4").await;
    app.complete(&payment, "success").await;
    S::tamper_taken(app, "order-4", 260_050);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-4").await["status"], "success");
}

async fn checks_signatures<S: Subject>(app: &TestApp) {
    let url = S::set_up(app).await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut)); // lose the webhook
    let payment = begin::<S>(app, "order-1").await;
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    let send = async |signature: Option<(&'static str, String)>, body: &str| {
        let request = app.client.post(&url).body(body.to_owned());
        let request = signature.into_iter().fold(request, |r, (name, value)| r.header(name, value));
        let response = reply(request).await;
        app.run_until_idle().await;
        response
    };
    let (body, other) = (S::notification("order-1"), S::notification("order-2"));
    for (why, signature) in [
        ("none", None),
        ("of a wrong secret", Some(S::signature(&body, false))),
        ("of another body", Some(S::signature(&other, true))),
        ("empty", Some((S::signature(&body, true).0, String::new()))),
    ] {
        assert_eq!(
            send(signature, &body).await.failure(),
            (401, "the signature is not valid"),
            "{why}"
        );
        assert_eq!(app.fetch("order-1").await["status"], "pending", "{why}");
    }
    let garbage = "no JSON";
    let refused = send(Some(S::signature(garbage, true)), garbage).await;
    assert_eq!(refused.failure(), (400, "the notification cannot be read"));
    assert_eq!(send(Some(S::signature(&other, true)), &other).await.status, 200); // unknown payment
    assert_eq!(app.fetch("order-1").await["status"], "pending");
    assert_eq!(send(Some(S::signature(&body, true)), &body).await.status, 200);
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(app.events(), ["payment.success"]);
}

async fn replaces_reference<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    S::take_reference(app, "order-1").await;
    let payment = begin::<S>(app, "order-1").await;
    let service_ref = payment["service_ref"].as_str().expect("a text");
    assert!(service_ref.starts_with("pay-"), "{service_ref}");
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    assert_eq!(app.events(), ["payment.success"]);
}

const FAULTS: [FaultKind; 4] =
    [FaultKind::Cut, FaultKind::CutAfter, FaultKind::Error500, FaultKind::Malformed];

async fn resumes_initialization<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    for (n, kind) in FAULTS.into_iter().enumerate() {
        let reference = format!("order-{n}");
        app.simulators.faults().push(Fault::new("initialize", kind));
        assert_eq!(
            try_begin::<S>(app, &reference).await.failure(),
            (502, &*unavailable::<S>()),
            "{kind:?}"
        );
        let found = app.fetch(&reference).await;
        assert_eq!(
            (&found["status"], &found["checkout"]["url"]),
            (&json!("pending"), &Value::Null)
        );
        let payment = paid::<S>(app, &reference).await;
        assert_eq!(
            (&payment["id"], &payment["status"]),
            (&found["id"], &json!("success")),
            "{kind:?}"
        );
    }
    assert_eq!(app.events(), ["payment.success"; 4]);
}

async fn retries_verification<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    for (n, kind) in FAULTS.into_iter().enumerate() {
        let reference = format!("order-{n}");
        let payment = begin::<S>(app, &reference).await;
        app.simulators.faults().push(Fault::new("verify", kind).times(2)); // for the webhook and for us
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(
            verify(app, &reference).await.failure(),
            (502, &*unavailable::<S>()),
            "{kind:?}"
        );
        assert_eq!(app.fetch(&reference).await["status"], "pending", "{kind:?}");
        app.advance(60).await;
        assert_eq!(app.fetch(&reference).await["status"], "success", "{kind:?}");
    }
    assert_eq!(app.events(), ["payment.success"; 4]);
}

async fn times_out<S: Subject>(engine: Engine) {
    let app = TestApp::start_with(engine, &["--plugin-call-timeout-s=1"]).await;
    S::set_up(&app).await;
    let late = format!("{} did not respond in time, please try again later", S::NAME);
    let slow = |operation: &str| Fault::new(operation, FaultKind::SlowAfter).delay_ms(3_000);
    app.simulators.faults().push(slow("initialize"));
    assert_eq!(try_begin::<S>(&app, "order-1").await.failure(), (504, &*late));
    begin::<S>(&app, "order-1").await["checkout"]["url"].as_str().expect("a URL");
    let payment = begin::<S>(&app, "order-2").await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    app.simulators.faults().push(slow("verify"));
    assert_eq!(verify(&app, "order-2").await.failure(), (504, &*late));
    assert_eq!(app.fetch("order-2").await["status"], "pending");
    app.advance(60).await;
    assert_eq!(app.fetch("order-2").await["status"], "success");
    app.finish().await;
}

async fn hides_tokens<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    let begun = begin::<S>(app, "order-1").await;
    app.complete(&begun, "success").await;
    let verified = verify(app, "order-1").await.body;
    app.run_until_idle().await;
    let tokens = S::reusable_tokens(app, "order-1").await;
    assert!(!tokens.is_empty() && tokens.iter().all(|token| token.len() > 6), "{tokens:?}");
    let listed = app.get("/payment/list").await.body;
    let event_bodies =
        app.simulators.events().iter().map(|event| event.body.clone()).collect::<String>();
    for shown in [begun, verified, app.fetch("order-1").await, listed, json!(event_bodies)] {
        for token in &tokens {
            assert!(!shown.to_string().contains(token), "{token} in {shown}");
        }
    }
    let kept = app.fetch("order-1").await["payment_response"].as_str().map(str::to_owned);
    assert!(kept.is_some_and(|kept| kept.contains("order-1")), "an empty response proves nothing");
}
