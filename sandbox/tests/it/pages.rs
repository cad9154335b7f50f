use reqwest::{Method, Response};
use serde_json::{Value, json};
use tollhouse_platform::clock;
use tollhouse_sandbox::{Hint, Link, Message};

use crate::world::{SUCCESS, World};

async fn submit(world: &World, id: &str, form: &str) -> Response {
    let request = world.request(Method::POST, &format!("/checkout/{id}"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.body(form.to_owned()).send().await.unwrap()
}

async fn html(world: &World, path: &str) -> String {
    let response = world.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    response.text().await.unwrap()
}

#[tokio::test]
async fn the_checkout_page_shows_what_is_paid() {
    let world = World::new().await;
    let id = world.initialize("page-1").await;
    let page = html(&world, &format!("/checkout/{id}")).await;
    for text in ["NGN 5,000.00", "ada@example.com", "page-1", SUCCESS, "Pay", "Fail", "Leave"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script"));
    let response = world.request(Method::GET, "/checkout/none").send().await.unwrap();
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn a_browser_is_redirected_by_outcome() {
    let world = World::new().await;
    let back = |reference: &str| {
        format!("https://shop.test/back?x=1&trxref={reference}&reference={reference}")
    };
    let cases = [
        ("paid", format!("outcome=success&card={SUCCESS}"), back("paid"), "success"),
        ("failed", "outcome=failed&card=".to_owned(), back("failed"), "failed"),
        (
            "left",
            "outcome=abandoned".to_owned(),
            "https://shop.test/cancel".to_owned(),
            "abandoned",
        ),
    ];
    for (reference, form, location, status) in cases {
        let id = world.initialize(reference).await;
        let response = submit(&world, &id, &form).await;
        assert_eq!(response.status(), 303, "{reference}");
        assert_eq!(response.headers()["location"], location);
        assert_eq!(world.verify(reference).await["status"], status);
    }
}

#[tokio::test]
async fn without_a_redirect_url_the_customer_stays_on_the_page() {
    let world = World::new().await;
    let body = json!({ "email": "a@b.co", "amount": 100 });
    let initialized = world.post("/transaction/initialize", body).await;
    let id = initialized["data"]["access_code"].as_str().unwrap().to_owned();
    let response = submit(&world, &id, "outcome=abandoned").await;
    assert_eq!(response.status(), 200);
    assert!(response.text().await.unwrap().contains("You left"));
    assert_eq!(submit(&world, &id, "outcome=odd").await.status(), 400);
    assert_eq!(submit(&world, &id, "outcome=success&card=1").await.status(), 400);
    assert_eq!(submit(&world, &id, "outcome=success").await.status(), 200);
    assert_eq!(submit(&world, &id, "outcome=success").await.status(), 409);
    assert_eq!(submit(&world, "none", "outcome=success").await.status(), 404);
}

#[tokio::test]
async fn a_checkout_is_completed_over_json() {
    let world = World::new().await;
    let id = world.initialize("try").await;
    assert_eq!(world.complete("none", json!({ "outcome": "success" })).await.0, 404);
    assert_eq!(world.complete(&id, json!({ "outcome": "odd" })).await.0, 400);
    assert_eq!(world.complete(&id, json!({})).await.0, 400);
    assert_eq!(world.complete(&id, json!({ "outcome": "success", "card": "42" })).await.0, 400);
    assert_eq!(world.complete(&id, json!({ "outcome": "abandoned" })).await.0, 200);
    assert_eq!(world.verify("try").await["status"], "abandoned");
    assert_eq!(world.complete(&id, json!({ "outcome": "failed" })).await.0, 200);
    assert_eq!(world.verify("try").await["status"], "failed");
    // The customer can retry on the same page until it is paid.
    assert_eq!(world.complete(&id, json!({ "outcome": "success" })).await.0, 200);
    for outcome in ["success", "failed", "abandoned"] {
        assert_eq!(world.complete(&id, json!({ "outcome": outcome })).await.0, 409);
    }
    assert_eq!(world.verify("try").await["status"], "success");
}

#[tokio::test]
async fn other_channels_need_no_card() {
    let world = World::new().await;
    let body = json!({
        "email": "a@b.co", "amount": 100, "reference": "ussd-1", "channels": ["ussd", "bank"],
    });
    let response = world.post("/transaction/initialize", body).await;
    let id = response["data"]["access_code"].as_str().unwrap();
    assert!(!html(&world, &format!("/checkout/{id}")).await.contains(SUCCESS));
    for card in [SUCCESS, "4084080000005408", "1"] {
        let body = json!({ "outcome": "success", "card": card });
        assert_eq!(world.complete(id, body).await.0, 400, "{card}");
        let form = format!("outcome=success&card={card}");
        assert_eq!(submit(&world, id, &form).await.status(), 400, "{card}");
    }
    assert_eq!(world.verify("ussd-1").await["status"], "abandoned");
    assert_eq!(world.complete(id, json!({ "outcome": "success" })).await.0, 200);
    let paid = world.verify("ussd-1").await;
    assert_eq!((&paid["channel"], &paid["status"]), (&json!("ussd"), &json!("success")));
    assert_eq!(paid["authorization"]["reusable"], false);
}

#[tokio::test]
async fn the_front_page_shows_everything_escaped() {
    let world = World::new().await;
    let id = world.initialize("open-1").await;
    let (what, command) = ("Try <u>this</u>".to_owned(), "curl http://x -d '<b>'".to_owned());
    world.simulators.set_hints(vec![Hint { what, command }]);
    let (what, url) = ("Its <u>viewer</u>".to_owned(), "http://x/docs?a&b".to_owned());
    world.simulators.set_links(vec![Link { what, url }]);
    world.simulators.mailbox().deliver(message("+2348030000001", "<i>code 123456</i>"));
    let event = r#"{"company_id":"c","event":"<script>alert(1)</script>"}"#;
    world.request(Method::POST, "/events").body(event).send().await.unwrap();
    let page = html(&world, "/").await;
    let texts = [
        &format!("href=\"/checkout/{id}\""),
        "open-1",
        "Try &lt;u&gt;this",
        "<a href=\"http://x/docs?a&amp;b\">Its &lt;u&gt;viewer",
        "&lt;b&gt;",
        "&lt;i&gt;code 123456",
        "&lt;script&gt;",
        "signature unknown",
    ];
    for text in texts {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"));
}

fn message(to: &str, text: &str) -> Message {
    Message::sms("Lender", to, text, clock::Timestamp(0))
}

#[tokio::test]
async fn the_mailbox_lists_the_newest_messages_first() {
    let world = World::new().await;
    let list = async |path: &str| -> Value {
        world.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(list("/mailbox").await, json!([]));
    let mailbox = world.simulators.mailbox();
    mailbox.deliver(message("+2348030000001", "one"));
    mailbox.deliver(message("ada@example.com", "two"));
    mailbox.deliver(message("+2348030000001", "three"));
    // An unencoded plus is a space in a query string.
    for to in ["+2348030000001", "%2B2348030000001", "2348030000001"] {
        let found = list(&format!("/mailbox?to={to}")).await;
        assert_eq!((&found[0]["text"], &found[1]["text"]), (&json!("three"), &json!("one")));
        assert_eq!(found.as_array().unwrap().len(), 2);
    }
    assert_eq!(list("/mailbox?to=Ada@example.com").await[0]["text"], "two");
    let keys = list("/mailbox").await[0].as_object().unwrap().len();
    assert_eq!(keys, 6, "channel, to, subject, text, html, at");
}

#[tokio::test]
async fn the_html_of_an_email_is_sandboxed() {
    let world = World::new().await;
    let mailbox = world.simulators.mailbox();
    mailbox.deliver(message("+2348030000001", "one"));
    let markup = "<script>alert(1)</script><b>123456</b>".to_owned();
    let to = "ada@example.com";
    mailbox.deliver(Message { html: Some(markup.clone()), ..message(to, "two") });
    let front = html(&world, "/").await;
    assert!(front.contains("href=\"/mailbox/2/html\"") && !front.contains("/mailbox/1/html"));
    assert!(front.contains("From Lender") && !front.contains("<script"));
    let response = world.request(Method::GET, "/mailbox/2/html").send().await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("sandbox; default-src 'none';"), "{policy}");
    assert!(!policy.contains("script"), "{policy}");
    assert_eq!(response.text().await.unwrap(), markup);
    for path in ["/mailbox/1/html", "/mailbox/3/html", "/mailbox/x/html"] {
        let response = world.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn the_front_page_lists_the_checkouts_of_all_providers_newest_first() {
    let world = World::new().await;
    world.initialize("of-paystack").await;
    let flutterwave = json!({
        "tx_ref": "of-flutterwave", "amount": 1, "redirect_url": "https://shop.test/",
        "customer": { "email": "ada@example.com" },
    });
    let request = world.request(Method::POST, "/flutterwave/v3/payments").json(&flutterwave);
    assert_eq!(request.bearer_auth("FLWSECK_TEST-x-X").send().await.unwrap().status(), 200);
    world.initialize("of-paystack-again").await;
    let page = html(&world, "/").await;
    let at = |reference: &str| page.find(&format!(">{reference}<")).unwrap();
    assert!(at("of-paystack-again") < at("of-flutterwave"));
    assert!(at("of-flutterwave") < at("of-paystack"));
}

#[tokio::test]
async fn the_front_page_lists_recipients_that_simulate_failures() {
    let page = html(&World::new().await, "/").await;
    for text in
        ["<code>0000</code>", "<code>0001</code>", "<code>0002</code>", "<code>refused</code>"]
    {
        assert!(page.contains(text), "{text}");
    }
}
