//! A provider webhook reaches only records of its own account.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, paystack::sign};

use crate::app::{Company, PAYSTACK_KEY, Reply, TestApp, reply};

/// Sends a webhook about a successful payment of `reference`, signed with `key`.
async fn notify(app: &TestApp, url: &str, key: &str, reference: &str) -> Reply {
    let body = json!({ "event": "charge.success", "data": {
        "reference": reference, "id": 1, "amount": 250_050, "currency": "NGN", "status": "success",
    } })
    .to_string();
    let request = app.client.post(url).header("x-paystack-signature", sign(key, body.as_bytes()));
    reply(request.body(body)).await
}

/// Makes a successful payment whose webhook is lost: any verification would settle it.
async fn pay_without_webhook(app: &TestApp, company: &Company) {
    let order = Some(app.order("order-1"));
    let payment = app.request(company, Method::POST, "/payment/initialize", order).await;
    app.simulators.faults().push(Fault::new("notification", FaultKind::Cut).times(1));
    app.complete(payment.data(), "success").await;
    app.run_until_idle().await;
    assert_eq!(status(app, company).await, "pending");
}

async fn status(app: &TestApp, company: &Company) -> Value {
    let path = "/payment/fetch/reference/order-1";
    app.request(company, Method::GET, path, None).await.data()["status"].clone()
}

both! {
    async fn a_webhook_of_another_account_does_not_settle_a_payment_of_the_service_account(app: TestApp) {
        let service = app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        let b = app.new_company("Beta Lending").await;
        let own = format!("/companies/{}/providers/provider_a", b.id);
        let own = app.use_paystack(&own, "sk_test_beta").await;
        pay_without_webhook(app, &app.company).await;

        assert_eq!(notify(app, &own, "sk_test_beta", "order-1").await.status, 200);
        let forged = notify(app, &service, "sk_test_beta", "order-1").await;
        assert_eq!(forged.failure(), (401, "the signature is not valid"));
        app.run_until_idle().await;
        assert_eq!(status(app, &app.company).await, "pending");
        assert_eq!(app.wallet().await["balance"], 0);

        assert_eq!(notify(app, &service, PAYSTACK_KEY, "order-1").await.status, 200);
        app.run_until_idle().await;
        assert_eq!(status(app, &app.company).await, "success");
        assert_eq!(app.events(), ["payment.success"]);
    }

    async fn a_reference_is_looked_up_only_in_the_account_of_the_webhook(app: TestApp) {
        let b = app.new_company("Beta Lending").await;
        let mut urls = Vec::new();
        for (company, key) in [(&app.company, "sk_test_acme"), (&b, "sk_test_beta")] {
            let path = format!("/companies/{}/providers/provider_a", company.id);
            urls.push(app.use_paystack(&path, key).await);
            pay_without_webhook(app, company).await;
        }
        assert_ne!(urls[0], urls[1]);
        assert_eq!(notify(app, &urls[1], "sk_test_acme", "order-1").await.failure().0, 401);
        assert_eq!(notify(app, &urls[1], "sk_test_beta", "order-1").await.status, 200);
        app.run_until_idle().await;
        assert_eq!((status(app, &app.company).await, status(app, &b).await), (json!("pending"), json!("success")));
        assert_eq!(notify(app, &urls[0], "sk_test_acme", "order-1").await.status, 200);
        app.run_until_idle().await;
        assert_eq!(status(app, &app.company).await, "success");
    }
}
