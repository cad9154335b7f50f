use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{KEY, SECRET, SUCCESS, Shop, order};

/// Returns the status of a call; `None` if the connection breaks.
async fn status(shop: &Shop, method: Method, path: &str, body: &Value) -> Option<u16> {
    let request = shop.world.request(method, &format!("/monnify/api{path}"));
    let request = match path {
        "/v1/auth/login" => request.basic_auth(KEY, Some(SECRET)),
        _ => request.bearer_auth(&shop.token),
    };
    request.json(body).send().await.ok().map(|response| response.status().as_u16())
}

#[tokio::test]
async fn every_operation_can_fail() {
    let shop = Shop::new().await;
    shop.pay("there", SUCCESS).await;
    let (get, post) = (Method::GET, Method::POST);
    let calls = [
        ("login", &post, "/v1/auth/login"),
        ("initialize", &post, "/v1/merchant/transactions/init-transaction"),
        ("verify", &get, "/v2/transactions/none"),
        ("verify", &get, "/v2/merchant/transactions/query?paymentReference=there"),
        ("charge", &post, "/v1/merchant/cards/charge-card-token"),
        ("authorize", &post, "/v1/merchant/cards/otp/authorize"),
        ("refund", &post, "/v1/refunds/initiate-refund"),
        ("refund_status", &get, "/v1/refunds/none"),
        ("mandate", &post, "/v1/direct-debit/mandate/create"),
        ("mandate_verify", &get, "/v1/direct-debit/mandate/?mandateReferences=none"),
        ("charge", &post, "/v1/direct-debit/mandate/debit"),
        ("verify", &get, "/v1/direct-debit/mandate/debit-status?paymentReference=none"),
        ("deactivate", &Method::PATCH, "/v1/direct-debit/mandate/cancel-mandate/none"),
    ];
    for (operation, method, path) in calls {
        shop.world.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
        let body = json!({});
        assert_eq!(status(&shop, method.clone(), path, &body).await, Some(500), "{path}");
        assert_ne!(status(&shop, method.clone(), path, &body).await, Some(500), "{path}");
    }
    assert!(shop.world.simulators.faults().list().is_empty());
}

#[tokio::test]
async fn a_cut_drops_the_connection_before_or_after_processing() {
    let shop = Shop::new().await;
    for (reference, kind, done) in
        [("before", FaultKind::Cut, false), ("after", FaultKind::CutAfter, true)]
    {
        shop.world.simulators.faults().push(Fault::new("initialize", kind));
        let path = "/v1/merchant/transactions/init-transaction";
        assert_eq!(status(&shop, Method::POST, path, &order(reference)).await, None);
        let path = format!("/v2/merchant/transactions/query?paymentReference={reference}");
        let found = status(&shop, Method::GET, &path, &Value::Null).await;
        assert_eq!(found == Some(200), done, "{reference}");
    }
}

#[tokio::test]
async fn webhooks_are_held_until_released() {
    let shop = Shop::new().await;
    shop.world.simulators.faults().push(Fault::new("notification", FaultKind::Hold));
    shop.pay("held", SUCCESS).await;
    shop.pay("sent", SUCCESS).await;
    assert_eq!(shop.notified().await.len(), 1);
    assert_eq!(shop.world.simulators.release(), 1);
    let webhooks = shop.notified().await;
    assert_eq!(webhooks[1]["eventData"]["paymentReference"], "held");
}
