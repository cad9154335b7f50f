use serde_json::{Value, json};

use super::{SUCCESS, Shop};

const PATH: &str = "/v1/refunds/initiate-refund";

fn request(transaction: &Value, reference: &str, amount: Value) -> Value {
    json!({
        "transactionReference": transaction, "refundReference": reference, "refundAmount": amount,
        "refundReason": "Order was cancelled", "customerNote": "Refund of loan 7",
    })
}

async fn paid(shop: &Shop, reference: &str, card: &str) -> Value {
    shop.pay(reference, card).await["transactionReference"].clone()
}

#[tokio::test]
async fn a_refund_is_in_progress_for_ten_seconds() {
    let shop = Shop::new().await;
    let transaction = paid(&shop, "pay", SUCCESS).await;
    let begun = shop.post(PATH, request(&transaction, "refund-1", json!("5000.00"))).await;
    assert_eq!(
        (&begun["refundStatus"], &begun["refundType"]),
        (&json!("IN_PROGRESS"), &json!("FULL_REFUND"))
    );
    assert_eq!((&begun["completedOn"], &begun["refundAmount"]), (&json!(""), &json!(5_000)));
    assert_eq!(begun["createdOn"], "21/11/2026 11:00:00 AM");
    assert_eq!(begun["transactionReference"], transaction);
    shop.world.advance(9).await;
    assert_eq!(shop.get("/v1/refunds/refund-1").await, begun);
    shop.world.advance(1).await;
    let done = shop.get("/v1/refunds/refund-1").await;
    assert_eq!(
        (&done["refundStatus"], &done["completedOn"]),
        (&json!("COMPLETED"), &json!("21/11/2026 11:00:10 AM"))
    );
    assert_eq!(shop.status("pay").await["paymentStatus"], "REVERSED");
    let webhook = shop.notified().await.pop().unwrap();
    assert_eq!(webhook["eventType"], "SUCCESSFUL_REFUND");
    let data = &webhook["eventData"];
    assert_eq!(
        (&data["refundReference"], &data["refundStatus"]),
        (&json!("refund-1"), &json!("COMPLETED"))
    );
    assert_eq!(
        (&data["merchantReason"], &data["refundAmount"]),
        (&json!("Order was cancelled"), &json!(5_000))
    );
}

#[tokio::test]
async fn a_partial_refund_leaves_the_transaction_paid() {
    let shop = Shop::new().await;
    let transaction = paid(&shop, "pay", SUCCESS).await;
    let begun = shop.post(PATH, request(&transaction, "refund-1", json!(100))).await;
    assert_eq!(begun["refundType"], "PARTIAL_REFUND");
    shop.world.advance(10).await;
    assert_eq!(shop.status("pay").await["paymentStatus"], "PAID");
}

#[tokio::test]
async fn refusals_have_codes() {
    let shop = Shop::new().await;
    let transaction = paid(&shop, "pay", SUCCESS).await;
    let short = paid(&shop, "short", "5061020000000000086").await;
    let open = shop.begin("open").await["transactionReference"].clone();
    shop.post(PATH, request(&transaction, "taken", json!(3_000))).await;
    let with = |name: &str, value: Value| {
        let mut body = request(&transaction, "new", json!(1_000));
        body[name] = value;
        body
    };
    let mut other_account = with("destinationAccountNumber", json!("0123456789"));
    other_account["destinationAccountBankCode"] = json!("bank");
    let cases = [
        (with("transactionReference", json!("MNFY|none")), 404, "R1"),
        (with("transactionReference", open), 400, "R2"),
        (with("refundAmount", json!(5_000.01)), 400, "R3"),
        (with("refundAmount", json!(99.99)), 400, "R4"),
        (with("transactionReference", short), 400, "R5"),
        (with("destinationAccountNumber", json!("0123456789")), 400, "R6"),
        (other_account, 400, "R6"),
        (with("refundReason", json!("x".repeat(65))), 400, "R8"),
        (with("customerNote", json!("x".repeat(17))), 400, "R8"),
        (with("refundReference", json!("taken")), 400, "R9"),
        (with("refundAmount", json!(2_000.01)), 400, "R12"),
        (with("refundAmount", json!(null)), 400, "99"),
        (with("customerNote", json!(null)), 400, "99"),
    ];
    for (body, status, code) in cases {
        assert_eq!(shop.refused(PATH, body).await, (status, code.to_owned()));
    }
    assert_eq!(shop.refused("/v1/refunds/none", Value::Null).await, (404, "R7".to_owned()));
}

#[tokio::test]
async fn refunds_to_a_failing_card_fail() {
    let shop = Shop::new().await;
    let transaction = paid(&shop, "pay", "5061020000000000094").await;
    shop.post(PATH, request(&transaction, "refund-1", json!(5_000))).await;
    shop.world.advance(10).await;
    assert_eq!(shop.get("/v1/refunds/refund-1").await["refundStatus"], "FAILED");
    assert_eq!(shop.events().await, ["SUCCESSFUL_TRANSACTION", "FAILED_REFUND"]);
    assert_eq!(shop.status("pay").await["paymentStatus"], "PAID");
    // The failed amount can be refunded again.
    shop.post(PATH, request(&transaction, "refund-2", json!(5_000))).await;
}
