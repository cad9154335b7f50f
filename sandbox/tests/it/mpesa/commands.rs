use serde_json::{Value, json};
use tollhouse_sandbox::mpesa::{Credentials, Totals, security_credential};

use super::Shop;

const REVERSAL: &str = "/mpesa/reversal/v1/request";
const STATUS: &str = "/mpesa/transactionstatus/v1/query";

fn command(shop: &Shop, receipt: &str) -> Value {
    let own = Credentials::default();
    json!({
        "Initiator": own.initiator,
        "SecurityCredential": security_credential(&own.initiator_password),
        "TransactionID": receipt, "ResultURL": format!("{}/result", shop.world.receiver.url),
        "QueueTimeOutURL": "https://shop.test/timeout", "Remarks": "Paid twice",
    })
}

fn reversal(shop: &Shop, receipt: &str) -> Value {
    let mut body = command(shop, receipt);
    body["CommandID"] = json!("TransactionReversal");
    body["Amount"] = json!(500);
    body["ReceiverParty"] = json!(Credentials::default().shortcode);
    body["RecieverIdentifierType"] = json!("11");
    body
}

fn status(shop: &Shop, receipt: &str) -> Value {
    let mut body = command(shop, receipt);
    body["CommandID"] = json!("TransactionStatusQuery");
    body["PartyA"] = json!(Credentials::default().shortcode);
    body["IdentifierType"] = json!("4");
    body["Occasion"] = json!("Check");
    body
}

/// Returns all results received so far.
async fn results(shop: &Shop) -> Vec<Value> {
    let notified = shop.notified().await.into_iter();
    notified.map(|mut body| body["Result"].take()).filter(|result| !result.is_null()).collect()
}

/// Executes a command and returns its result.
async fn result(shop: &Shop, path: &str, body: Value) -> Value {
    let accepted = shop.post(path, body).await;
    shop.world.advance(10).await;
    let mut results = results(shop).await;
    results.retain(|result| result["ConversationID"] == accepted["ConversationID"]);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["OriginatorConversationID"], accepted["OriginatorConversationID"]);
    results.remove(0)
}

/// Returns the value of a parameter.
fn parameter(result: &Value, key: &str) -> Value {
    let parameters = result["ResultParameters"]["ResultParameter"].as_array().unwrap();
    parameters.iter().find(|parameter| parameter["Key"] == key).unwrap()["Value"].clone()
}

#[tokio::test]
async fn a_reversal_returns_the_money_after_ten_seconds() {
    let shop = Shop::new().await;
    let receipt = shop.paid().await;
    let accepted = shop.post(REVERSAL, reversal(&shop, &receipt)).await;
    assert_eq!(accepted["ResponseDescription"], "Accept the service request successfully.");
    let conversation = accepted["ConversationID"].as_str().unwrap();
    assert!(conversation.starts_with("AG_20261121_"), "{conversation}");
    shop.world.advance(9).await;
    assert_eq!(shop.notified().await.len(), 1, "the callback of the payment");
    shop.world.advance(1).await;
    let result = shop.notified().await.pop().unwrap()["Result"].clone();
    assert_eq!((&result["ResultType"], &result["ResultCode"]), (&json!(0), &json!(0)));
    assert_eq!(result["ConversationID"], conversation);
    assert_ne!(result["TransactionID"], json!(receipt));
    assert_eq!(parameter(&result, "OriginalTransactionID"), json!(receipt));
    assert_eq!(parameter(&result, "Amount").as_f64(), Some(500.0));
    assert_eq!(parameter(&result, "TransCompletedTime"), json!(20_261_121_130_010_u64));
    let balance = "Utility Account|KES|0.00|0.00|0.00|0.00";
    assert_eq!(parameter(&result, "DebitAccountBalance"), balance);
    let reference = json!({ "Key": "QueueTimeoutURL", "Value": "https://shop.test/timeout" });
    assert_eq!(result["ReferenceData"]["ReferenceItem"], reference);
    let mpesa = shop.world.simulators.mpesa();
    assert_eq!(mpesa.totals(), Totals { taken: 500, returned: 500 });
    assert!(mpesa.pushes()[0].reversed);
}

#[tokio::test]
async fn a_payment_is_reversed_once() {
    let shop = Shop::new().await;
    let receipt = shop.paid().await;
    // Both are accepted before the first is executed.
    shop.post(REVERSAL, reversal(&shop, &receipt)).await;
    let second = result(&shop, REVERSAL, reversal(&shop, &receipt)).await;
    assert_eq!(second["ResultCode"], "R000001");
    let results = results(&shop).await;
    assert_eq!(results.len(), 2);
    assert!(results.iter().any(|result| result["ResultCode"] == 0));
    assert_eq!(shop.world.simulators.mpesa().totals().returned, 500);
}

#[tokio::test]
async fn a_failed_reversal_returns_nothing() {
    let shop = Shop::new().await;
    let receipt = shop.paid().await;
    let with = |field: &str, value: Value| {
        let mut body = reversal(&shop, &receipt);
        body[field] = value;
        body
    };
    let cases = [
        (with("TransactionID", json!("TNONE00000")), json!("R000002")),
        (with("Initiator", json!("nobody")), json!(2_001)),
        (with("SecurityCredential", json!(security_credential("wrong"))), json!(2_001)),
        (with("SecurityCredential", json!("tollhouse_initiator_password")), json!(2_001)),
        (with("ReceiverParty", json!("600000")), json!(11)),
        (with("Amount", json!(499)), json!(2_006)),
    ];
    for (body, code) in cases {
        let result = result(&shop, REVERSAL, body).await;
        assert_eq!(result["ResultCode"], code);
        assert_eq!(result["ResultParameters"], Value::Null);
        assert!(result["TransactionID"].as_str().unwrap().ends_with("0000000"));
    }
    assert!(shop.world.simulators.mpesa().set_balance("174379", 499));
    let poor = result(&shop, REVERSAL, reversal(&shop, &receipt)).await;
    assert_eq!(poor["ResultCode"], 1);
    assert_eq!(shop.world.simulators.mpesa().totals().returned, 0);
}

#[tokio::test]
async fn every_field_is_checked() {
    let shop = Shop::new().await;
    let cases = [
        ("Initiator", Value::Null),
        ("SecurityCredential", Value::Null),
        ("CommandID", json!("Reversal")),
        ("TransactionID", Value::Null),
        ("Amount", json!("500.00")),
        ("ReceiverParty", Value::Null),
        ("RecieverIdentifierType", json!("4")),
        ("ResultURL", json!("result")),
        ("QueueTimeOutURL", Value::Null),
        ("Remarks", Value::Null),
        ("Remarks", json!("x".repeat(101))),
        ("Occasion", json!("x".repeat(101))),
    ];
    for (field, value) in cases {
        let mut body = reversal(&shop, "TLJ7RT61SV");
        body[field] = value;
        let message = format!("Bad Request - Invalid {field}");
        let expected = (400, "400.002.02".to_owned(), message);
        assert_eq!(shop.rejected(REVERSAL, body).await, expected);
    }
}

#[tokio::test]
async fn the_status_of_a_payment_arrives_later() {
    let shop = Shop::new().await;
    let receipt = shop.paid().await;
    let paid = result(&shop, STATUS, status(&shop, &receipt)).await;
    assert_eq!(paid["ResultCode"], 0);
    assert_eq!(parameter(&paid, "ReceiptNo"), json!(receipt));
    assert_eq!(parameter(&paid, "TransactionStatus"), "Completed");
    assert_eq!(parameter(&paid, "Amount").as_f64(), Some(500.0));
    let reference = json!({ "Key": "Occasion", "Value": "Check" });
    assert_eq!(paid["ReferenceData"]["ReferenceItem"], reference);

    assert!(shop.world.simulators.mpesa().reverse(&receipt));
    assert!(!shop.world.simulators.mpesa().reverse(&receipt));
    let reversed = result(&shop, STATUS, status(&shop, &receipt)).await;
    assert_eq!(parameter(&reversed, "TransactionStatus"), "Reversed");
    let unknown = result(&shop, STATUS, status(&shop, "TNONE00000")).await;
    assert_eq!(unknown["ResultCode"], "R000002");
}
