use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{PHONE, Shop};

async fn html(shop: &Shop, path: &str) -> String {
    let response = shop.world.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

async fn submit(shop: &Shop, phone: &str, form: &str) -> Response {
    let request = shop.world.request(Method::POST, &format!("/phone/{phone}"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.body(form.to_owned()).send().await.unwrap()
}

#[tokio::test]
async fn a_prompt_is_answered_on_the_page_of_the_phone() {
    let shop = Shop::new().await;
    let path = format!("/phone/{PHONE}");
    assert!(html(&shop, &path).await.contains("no open prompt"));
    shop.push(PHONE).await;
    let link = format!("href=\"{path}\"");
    let front = html(&shop, "/").await;
    assert!(front.contains(&link) && front.contains("<code>254708374149</code>"));
    let page = html(&shop, &path).await;
    for text in ["KES 500.00", "174379", "loan-7", "Installment 1", "Wrong PIN", "Cancel"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script"));
    assert_eq!(submit(&shop, PHONE, "answer=odd").await.status(), 400);
    let answered = submit(&shop, PHONE, "answer=wrong_pin").await;
    assert_eq!(answered.status(), 200);
    assert!(answered.text().await.unwrap().contains("The initiator information is invalid."));
    assert_eq!(submit(&shop, PHONE, "answer=pay").await.status(), 409);
    assert!(!html(&shop, "/").await.contains(&link));
    assert_eq!(shop.notified().await[0]["Body"]["stkCallback"]["ResultCode"], 2_001);

    for path in ["/phone/0712345678", "/phone/none"] {
        let response = shop.world.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_prompt_is_answered_over_json() {
    let shop = Shop::new().await;
    let answer = async |phone: &str, body: Value| {
        let request = shop.world.request(Method::POST, &format!("/phone/{phone}/answer"));
        let response = request.json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    assert_eq!(answer(PHONE, json!({ "answer": "pay" })).await.0, 404);
    let id = shop.push(PHONE).await;
    assert_eq!(answer(PHONE, json!({ "answer": "odd" })).await.0, 400);
    assert_eq!(answer(&id, json!({ "answer": "pay" })).await.0, 404);
    let (status, body) = answer(PHONE, json!({ "answer": "insufficient_funds" })).await;
    let expected = json!({ "checkout_request_id": id, "result_code": 1, "receipt": null });
    assert_eq!((status, body), (200, expected));
}

#[tokio::test]
async fn a_prompt_is_completed_like_a_checkout() {
    let shop = Shop::new().await;
    for (outcome, code) in [("success", 0), ("failed", 2_001), ("abandoned", 1_032)] {
        let id = shop.push(PHONE).await;
        let page = html(&shop, &format!("/checkout/{id}")).await;
        for text in ["KES 500.00", PHONE, "M-Pesa", "loan-7"] {
            assert!(page.contains(text), "{text}");
        }
        let card = json!({ "outcome": outcome, "card": "4084084084084081" });
        assert_eq!(shop.world.complete(&id, card).await.0, 400);
        let (status, body) = shop.world.complete(&id, json!({ "outcome": outcome })).await;
        assert_eq!((status, body), (200, json!({ "outcome": outcome, "redirect_url": null })));
        assert_eq!(shop.world.complete(&id, json!({ "outcome": outcome })).await.0, 409);
        let newest = shop.notified().await.pop().unwrap();
        assert_eq!(newest["Body"]["stkCallback"]["ResultCode"], code, "{outcome}");
    }
}
