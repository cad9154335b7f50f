//! Return URLs of a checkout page: https, http, or the link of an app.

use serde_json::{Value, json};

use crate::{
    app::{Reply, TestApp},
    lending::{create_loan, create_user},
};

/// Creates a payment, a card and a recollection with this checkout.
async fn try_all(app: &TestApp, n: usize, checkout: Value) -> [(&'static str, Reply); 3] {
    let mut payment = app.order(&format!("order-{n}"));
    payment["checkout"] = checkout.clone();
    let card = json!({ "user_id": "ada", "currency": "NGN", "checkout": checkout });
    let recollection = json!({
        "loan": "loan-1", "amount": 1, "with_provider": true, "payment_channel": "checkout", "checkout": checkout,
    });
    [
        ("payment", app.post("/payment/initialize", payment).await),
        ("card", app.post("/card/create", card).await),
        ("recollection", app.post("/recollection/create", recollection).await),
    ]
}

async fn set_up(app: &TestApp) {
    create_user(app, "ada").await;
    create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
}

both! {
    async fn app_links_are_accepted_and_returned(app: TestApp) {
        set_up(app).await;
        for (n, url) in [
            "myapp://paid", "com.example.app:/paid?order=7", "https://lender.example/paid", "http://lender.example/paid", "HTTPS://lender.example",
        ].into_iter().enumerate() {
            let checkout = json!({ "success_url": url, "cancel_url": url });
            for (what, response) in try_all(app, n, checkout).await {
                let made = &response.data()["checkout"];
                assert_eq!((&made["success_url"], &made["cancel_url"]), (&json!(url), &json!(url)), "{what}");
                assert!(made["url"].is_string(), "{what}: {made}");
            }
        }
        // The provider redirects the payer to the link.
        let payment = app.fetch("order-0").await;
        let page = payment["checkout"]["url"].as_str().expect("a URL");
        let paid = app.client.post(format!("{page}/complete")).json(&json!({ "outcome": "success" })).send().await;
        let paid: Value = paid.expect("a response").json().await.expect("JSON");
        let back = paid["redirect_url"].as_str().expect("a URL");
        assert!(back.starts_with("myapp://paid"), "{back}");
        app.run_until_idle().await;
    }

    async fn urls_that_a_browser_executes_or_reads_locally_are_rejected(app: TestApp) {
        set_up(app).await;
        for (n, url) in [
            "javascript:alert(1)", "JavaScript://lender.example/%0aalert(1)", " javascript:alert(1)", "vbscript:x", "data:text/html,<script>", "data:/x",
            "file:///etc/passwd", "blob:https://lender.example/1", "filesystem:https://lender.example/1", "about:blank",
            "mailto:/ada@example.com", "sms:/+2348012345678", "SMSTO://+2348012345678", "tel:/+2348012345678", "ftp://lender.example/x",
            "ws://lender.example", "C:/Windows/paid.html", "c://paid", "view-source://lender.example", "intent://paid#Intent;scheme=file;end", "content://downloads/1", "mailto:ada@example.com", "myapp:paid",
            "//lender.example/paid", "lender.example", "https://", "https://ada:secret@lender.example", "myapp://ada:secret@paid",
        ].into_iter().enumerate() {
            for field in ["success_url", "cancel_url"] {
                let mut checkout = json!({ "success_url": "https://lender.example/paid" });
                checkout[field] = json!(url);
                let message = format!("the checkout.{field} field must be a valid http or https URL, or an app link");
                for (what, response) in try_all(app, n, checkout).await {
                    assert_eq!(response.failure(), (400, &*message), "{what}: {url}");
                }
            }
        }
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        // A callback URL cannot be an app link.
        let mut order = app.order("order-1");
        order["callback_url"] = json!("myapp://paid");
        let refused = app.post("/payment/initialize", order).await;
        assert_eq!(refused.failure(), (400, "the callback_url field must be a valid http or https URL"));
    }
}
