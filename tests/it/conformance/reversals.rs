//! Payments that a provider returns to their payers without the host. No webhook reports them, so
//! the scheduled verifications of a success find them.

use serde_json::json;
use tollhouse_sandbox::{Fault, FaultKind, flutterwave::ChargebackStatus};

use super::{Flutterwave, Subject, paid, request_count};
use crate::app::TestApp;

const DAY: i64 = 86_400;

pub async fn a_reversal_is_recorded_at_the_next_check<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    paid::<S>(app, "order-1").await;
    paid::<S>(app, "order-2").await;
    let balance = app.wallet().await["balance"].as_f64().expect("a number");
    S::reverse(app, "order-1");
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
    app.advance(DAY).await;
    assert_eq!(app.fetch("order-1").await["status"], "refunded");
    assert_eq!(app.fetch("order-2").await["status"], "success");
    assert_eq!(app.wallet().await["balance"].as_f64(), Some(balance / 2.0));
    let events = ["payment.success", "payment.success", "payment.refunded"];
    assert_eq!(app.events(), events);
    app.advance(120 * DAY).await;
    assert_eq!(app.events(), events);
}

async fn status_after(app: &TestApp, days: i64) -> String {
    app.advance(days * DAY).await;
    app.fetch("order-1").await["status"].as_str().expect("a text").to_owned()
}

both! {
    async fn a_part_charged_back_at_flutterwave_leaves_a_success(app: TestApp) {
        Flutterwave::set_up(app).await;
        paid::<Flutterwave>(app, "order-1").await;
        let balance = app.wallet().await["balance"].clone();
        let flutterwave = app.simulators.flutterwave();
        assert!(flutterwave.charge_back("order-1", Some(100_000), ChargebackStatus::Lost));
        assert_eq!(status_after(app, 1).await, "success");
        assert!(flutterwave.charge_back("order-1", Some(150_050), ChargebackStatus::Initiated));
        assert_eq!(status_after(app, 6).await, "success");
        assert_eq!((app.wallet().await["balance"].clone(), app.events()), (balance, vec!["payment.success".to_owned()]));
        // The dispute of the rest is lost, too.
        assert!(flutterwave.charge_back("order-1", Some(150_050), ChargebackStatus::Lost));
        assert_eq!(status_after(app, 23).await, "refunded");
        assert_eq!((&app.wallet().await["balance"], app.events()[1].as_str()), (&json!(0), "payment.refunded"));
    }

    async fn a_refund_on_flutterwaves_dashboard_is_recorded(app: TestApp) {
        Flutterwave::set_up(app).await;
        let payment = paid::<Flutterwave>(app, "order-1").await;
        let flutterwave = app.simulators.flutterwave();
        assert!(flutterwave.refund("order-1", Some(50_000)));
        assert_eq!(status_after(app, 1).await, "success");
        assert!(flutterwave.refund("order-1", None));
        assert_eq!(status_after(app, 6).await, "refunded");
        let refunded = app.fetch("order-1").await;
        assert_eq!((&refunded["message"], &refunded["amount"]), (&json!("Refunded at Flutterwave"), &payment["amount"]));
        assert_eq!((&app.wallet().await["balance"], app.events()[1].as_str()), (&json!(0), "payment.refunded"));
    }

    async fn a_success_is_verified_again_if_flutterwaves_lists_fail(app: TestApp) {
        Flutterwave::set_up(app).await;
        paid::<Flutterwave>(app, "order-1").await;
        for operation in ["refund_list", "chargeback_list"] {
            app.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
        }
        assert!(app.simulators.flutterwave().reverse("order-1"));
        let before = request_count::<Flutterwave>(app, ("GET", "/transactions/verify_by_reference"));
        assert_eq!(status_after(app, 1).await, "success");
        // Each failure is retried.
        app.advance(3_600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        assert_eq!(request_count::<Flutterwave>(app, ("GET", "/transactions/verify_by_reference")) - before, 3);
        assert!(app.simulators.faults().list().is_empty());
    }
}
