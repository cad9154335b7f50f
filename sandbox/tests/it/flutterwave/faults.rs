use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{KEY, SUCCESS, Shop, charge, order};

/// Returns the status of a call; `None` if the connection breaks.
async fn status(shop: &Shop, method: Method, path: &str, body: &Value) -> Option<u16> {
    let request = shop.world.request(method, &format!("/flutterwave/v3{path}")).bearer_auth(KEY);
    request.json(body).send().await.ok().map(|response| response.status().as_u16())
}

#[tokio::test]
async fn every_operation_can_fail() {
    let shop = Shop::new().await;
    let token = shop.saved("there").await;
    let id = shop.verify("there").await["id"].clone();
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    let calls = [
        ("initialize", post.clone(), "/payments".to_owned(), order("new")),
        ("verify", get.clone(), format!("/transactions/{id}/verify"), json!({})),
        (
            "verify",
            get.clone(),
            "/transactions/verify_by_reference?tx_ref=there".to_owned(),
            json!({}),
        ),
        ("list", get.clone(), "/transactions".to_owned(), json!({})),
        ("charge", post.clone(), "/tokenized-charges".to_owned(), charge(&token, "charged")),
        ("refund", post.clone(), format!("/transactions/{id}/refund"), json!({ "amount": 1 })),
        ("refund_list", get.clone(), "/refunds".to_owned(), json!({})),
        ("chargeback_list", get.clone(), "/chargebacks".to_owned(), json!({})),
        ("dispute_answer", put.clone(), "/chargebacks/1".to_owned(), json!({})),
        ("refund_status", get.clone(), "/refunds/1".to_owned(), json!({})),
        ("resend", post.clone(), format!("/transactions/{id}/resend-hook"), json!({})),
        ("token", put.clone(), "/tokens/none".to_owned(), json!({})),
        ("mandate", post, "/accounts/tokenize".to_owned(), json!({})),
        ("mandate_verify", get.clone(), "/accounts/token/none".to_owned(), json!({})),
        ("deactivate", put, "/accounts/token/none".to_owned(), json!({})),
        ("bin", get, "/card-bins/553188".to_owned(), json!({})),
    ];
    for (operation, method, path, body) in calls {
        shop.world.simulators.faults().push(Fault::new(operation, FaultKind::Error500));
        assert_eq!(status(&shop, method.clone(), &path, &body).await, Some(500), "{path}");
        assert_ne!(status(&shop, method, &path, &body).await, Some(500), "{path}");
    }
    assert!(shop.world.simulators.faults().list().is_empty());
}

#[tokio::test]
async fn a_cut_drops_the_connection_before_or_after_processing() {
    let shop = Shop::new().await;
    let token = shop.saved("first").await;
    for (tx_ref, kind, done) in
        [("before", FaultKind::Cut, false), ("after", FaultKind::CutAfter, true)]
    {
        shop.world.simulators.faults().push(Fault::new("charge", kind));
        let body = charge(&token, tx_ref);
        assert_eq!(status(&shop, Method::POST, "/tokenized-charges", &body).await, None);
        let path = format!("/transactions/verify_by_reference?tx_ref={tx_ref}");
        let found = status(&shop, Method::GET, &path, &Value::Null).await;
        assert_eq!(found == Some(200), done, "{tx_ref}");
    }
}

#[tokio::test]
async fn webhooks_are_duplicated_lost_and_reordered() {
    let shop = Shop::new().await;
    let faults = shop.world.simulators.faults();
    faults.push(Fault::new("notification", FaultKind::Duplicate));
    faults.push(Fault::new("notification", FaultKind::Cut));
    faults.push(Fault::new("notification", FaultKind::Reorder).times(2));
    shop.pay("twice", SUCCESS).await;
    shop.pay("never", SUCCESS).await;
    shop.notified().await;
    shop.pay("three", SUCCESS).await;
    shop.pay("four", SUCCESS).await;
    let webhooks = shop.notified().await;
    let references: Vec<&str> =
        webhooks.iter().map(|b| b["data"]["tx_ref"].as_str().unwrap()).collect();
    assert_eq!(references, ["twice", "twice", "four", "three"]);
}
