use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{
    Fault, FaultKind,
    mpesa::{Answer, Credentials},
};

use super::{PHONE, PUSH, QUERY, Shop, order};

/// Returns the status of a call; `None` if the connection breaks.
async fn status(shop: &Shop, method: Method, path: &str, body: &Value) -> Option<u16> {
    let own = Credentials::default();
    let request = shop.world.request(method, &format!("/mpesa{path}"));
    let request = if path.starts_with("/oauth") {
        request.basic_auth(own.consumer_key, Some(own.consumer_secret))
    } else {
        request.bearer_auth(&shop.token)
    };
    request.json(body).send().await.ok().map(|response| response.status().as_u16())
}

#[tokio::test]
async fn every_operation_can_fail() {
    let shop = Shop::new().await;
    let calls = [
        ("login", Method::GET, "/oauth/v1/generate?grant_type=client_credentials"),
        ("initialize", Method::POST, PUSH),
        ("verify", Method::POST, QUERY),
        ("refund", Method::POST, "/mpesa/reversal/v1/request"),
        ("fetch", Method::POST, "/mpesa/transactionstatus/v1/query"),
    ];
    for (operation, method, path) in calls {
        shop.world.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
        let body = json!({});
        assert_eq!(status(&shop, method.clone(), path, &body).await, Some(500), "{path}");
        assert_ne!(status(&shop, method, path, &body).await, Some(500), "{path}");
    }
    assert!(shop.world.simulators.faults().list().is_empty());
    let requests = shop.world.simulators.mpesa().requests();
    assert_eq!(requests[1], ("GET".to_owned(), "/oauth/v1/generate".to_owned()));
    assert!(requests.contains(&("POST".to_owned(), PUSH.to_owned())));
}

#[tokio::test]
async fn a_cut_drops_the_connection_before_or_after_the_prompt() {
    let shop = Shop::new().await;
    for (kind, prompts) in [(FaultKind::Cut, 0), (FaultKind::CutAfter, 1)] {
        shop.world.simulators.faults().push(Fault::new("initialize", kind));
        let body = order(&shop.world, PHONE);
        assert_eq!(status(&shop, Method::POST, PUSH, &body).await, None);
        assert_eq!(shop.world.simulators.mpesa().pushes().len(), prompts);
    }
}

#[tokio::test]
async fn callbacks_are_lost_held_or_duplicated() {
    let shop = Shop::new().await;
    let pay = async |kind| {
        shop.world.simulators.faults().push(Fault::new("notification", kind));
        shop.paid().await;
        shop.notified().await.len()
    };
    assert_eq!(pay(FaultKind::Cut).await, 0);
    assert_eq!(pay(FaultKind::Duplicate).await, 2);
    assert_eq!(pay(FaultKind::Hold).await, 2);
    assert_eq!(shop.world.simulators.release(), 1);
    assert_eq!(shop.notified().await.len(), 3);
}

#[tokio::test]
async fn controls_of_all_providers_apply() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    let tamper = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/mpesa/tamper").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(tamper(json!({ "reference": id, "taken_minor": 49_900 })).await, 204);
    let usd = json!({ "reference": id, "amount_minor": 50_000, "currency": "USD" });
    assert_eq!(tamper(usd).await, 404, "M-Pesa reports no currency");
    let reversed = json!({ "reference": "loan-7", "reversed": true });
    assert_eq!(tamper(reversed.clone()).await, 404, "nothing is paid");
    assert!(shop.world.simulators.mpesa().answer(&id, Answer::Pay).is_some());
    assert_eq!(tamper(reversed).await, 204);
    assert!(shop.world.simulators.mpesa().pushes()[0].reversed);
}
