//! Currencies with other decimals than the naira's, and limits of amounts.

use serde_json::{Value, json};

use crate::{
    app::TestApp,
    sprout::{self, SproutUpstream, repack},
};

async fn initialize(
    app: &TestApp,
    reference: &str,
    amount: Value,
    currency: &str,
) -> crate::app::Reply {
    let mut order = sprout::sprout_order(app, reference);
    order["amount"] = amount;
    order["currency"] = json!(currency);
    app.post("/payment/initialize", order).await
}

async fn install(app: &TestApp) -> SproutUpstream {
    let wasm = repack(artifacts::SPROUT, |manifest| {
        manifest["currencies"] = json!(["KES", "XOF"]);
        manifest["amounts"] =
            json!({ "KES": { "step": 100, "minimum": 1_000, "maximum": 25_000_000 } });
    });
    app.install(&wasm).await;
    let upstream = SproutUpstream::start().await;
    upstream.configure_account(app).await;
    upstream
}

both! {
    async fn amounts_outside_of_the_limits_are_rejected_before_the_provider_is_called(app: TestApp) {
        let upstream = install(app).await;
        for (amount, currency, message) in [
            (json!(2500.5), "KES", "the amount field must be a multiple of 1 KES"),
            (json!(9), "KES", "the amount field must be at least 10 KES"),
            (json!(250_001), "KES", "the amount field must be at most 250000 KES"),
            (json!(25.5), "XOF", "the amount field must be a multiple of 1 XOF"),
            (json!(2500), "NGN", "the currency field must be one of KES, XOF"),
        ] {
            let rejected = initialize(app, "order-1", amount, currency).await;
            assert_eq!(rejected.failure(), (400, message));
            let found = app.get("/payment/fetch/reference/order-1").await;
            assert_eq!(found.failure().0, 404);
        }
        assert_eq!(upstream.sessions.lock().unwrap().len(), 0);
    }

    async fn a_plugin_gets_amounts_in_the_minor_unit_of_the_currency(app: TestApp) {
        let upstream = install(app).await;
        for (reference, currency, minor) in [("order-1", "KES", 250_000), ("order-2", "XOF", 2_500)] {
            initialize(app, reference, json!(2500), currency).await.data();
            assert_eq!(upstream.sessions.lock().unwrap()[reference]["amount"], minor);
            upstream.set_status(reference, "paid");
            let verified = app.post(&format!("/payment/verify/{reference}"), json!({})).await.data().clone();
            assert_eq!(verified["status"], "success", "{verified}");
            assert_eq!((&verified["amount"], &verified["currency"]), (&json!(2500), &json!(currency)));
        }
        app.run_until_idle().await;
    }
}
