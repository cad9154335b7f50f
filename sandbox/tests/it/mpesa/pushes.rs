use serde_json::{Value, json};
use tollhouse_sandbox::mpesa::{Answer, Totals};

use super::{PHONE, PUSH, QUERY, Shop, TIMESTAMP, order, password, question};

/// Returns the callback of the only notification.
async fn callback(shop: &Shop) -> Value {
    let notified = shop.notified().await;
    assert_eq!(notified.len(), 1, "{notified:?}");
    notified[0]["Body"]["stkCallback"].clone()
}

#[tokio::test]
async fn a_payment_has_the_documented_shapes() {
    let shop = Shop::new().await;
    let begun = shop.post(PUSH, order(&shop.world, PHONE)).await;
    let id = begun["CheckoutRequestID"].as_str().unwrap();
    // In East Africa Time.
    assert!(id.starts_with("ws_CO_21112026130000"), "{id}");
    assert_eq!(begun["CustomerMessage"], "Success. Request accepted for processing");
    let (status, pending) = shop.query(id).await;
    assert_eq!((status, &pending["errorCode"]), (500, &json!("500.001.1001")));
    assert_eq!(pending["errorMessage"], "The transaction is being processed");

    shop.world.advance(5).await;
    let push = shop.world.simulators.mpesa().answer(PHONE, Answer::Pay).unwrap();
    assert_eq!((push.amount, push.account_reference.as_str()), (500, "loan-7"));
    assert_eq!(push.timestamp, TIMESTAMP);
    let (status, paid) = shop.query(id).await;
    let expected = json!({
        "ResponseCode": "0",
        "ResponseDescription": "The service request has been accepted successfully",
        "MerchantRequestID": begun["MerchantRequestID"], "CheckoutRequestID": id,
        "ResultCode": "0", "ResultDesc": "The service request is processed successfully.",
    });
    assert_eq!((status, paid), (200, expected));

    let callback = callback(&shop).await;
    assert_eq!((&callback["ResultCode"], &callback["CheckoutRequestID"]), (&json!(0), &json!(id)));
    let items = &callback["CallbackMetadata"]["Item"];
    assert_eq!((&items[0]["Name"], items[0]["Value"].as_f64()), (&json!("Amount"), Some(500.0)));
    let receipt = json!({ "Name": "MpesaReceiptNumber", "Value": push.receipt });
    assert_eq!(items[1], receipt);
    assert_eq!(push.receipt.unwrap().len(), 10);
    assert_eq!(items[2], json!({ "Name": "Balance" }));
    let rest = [
        json!({ "Name": "TransactionDate", "Value": 20_261_121_130_005_u64 }),
        json!({ "Name": "PhoneNumber", "Value": 254_712_345_678_u64 }),
    ];
    assert_eq!(items.as_array().unwrap()[3..], rest);
    let (headers, _) = shop.world.receiver.received().remove(0);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(shop.world.simulators.mpesa().totals(), Totals { taken: 500, returned: 0 });
}

#[tokio::test]
async fn a_failure_has_no_metadata() {
    let cases = [
        (Answer::WrongPin, 2_001, "The initiator information is invalid."),
        (Answer::Cancel, 1_032, "Request cancelled by user."),
        (Answer::InsufficientFunds, 1, "The balance is insufficient for the transaction."),
    ];
    for (answer, code, description) in cases {
        let shop = Shop::new().await;
        let id = shop.push(PHONE).await;
        assert!(shop.world.simulators.mpesa().answer(&id, answer).is_some());
        let callback = callback(&shop).await;
        assert_eq!(
            (&callback["ResultCode"], &callback["ResultDesc"]),
            (&json!(code), &json!(description))
        );
        assert_eq!(callback["CallbackMetadata"], Value::Null);
        let (status, body) = shop.query(&id).await;
        assert_eq!((status, &body["ResultCode"]), (200, &json!(code.to_string())));
        assert_eq!(shop.world.simulators.mpesa().totals(), Totals::default());
        // An answer is final.
        assert!(shop.world.simulators.mpesa().answer(&id, Answer::Pay).is_none());
    }
}

#[tokio::test]
async fn a_prompt_without_an_answer_fails_after_a_minute() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    shop.world.advance(59).await;
    assert_eq!(shop.query(&id).await.0, 500);
    assert!(shop.notified().await.is_empty());
    shop.world.advance(1).await;
    let callback = callback(&shop).await;
    assert_eq!(callback["ResultCode"], 1_037);
    assert_eq!(callback["ResultDesc"], "DS timeout user cannot be reached.");
    assert_eq!(shop.query(&id).await.1["ResultCode"], "1037");
}

#[tokio::test]
async fn magic_payers_answer_by_themselves() {
    for (phone, code) in [("254708374149", 0), ("254700000001", 1), ("254700000002", 1_032)] {
        let shop = Shop::new().await;
        shop.push(phone).await;
        shop.world.advance(2).await;
        assert!(shop.notified().await.is_empty(), "{phone}");
        shop.world.advance(1).await;
        assert_eq!(callback(&shop).await["ResultCode"], code, "{phone}");
        shop.world.advance(60).await;
        assert_eq!(shop.notified().await.len(), 1, "{phone}");
    }
}

#[tokio::test]
async fn a_payer_has_one_prompt_at_a_time() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    let message =
        "Unable to lock subscriber, a transaction is already in process for the current subscriber";
    let locked = (500, "500.001.1001".to_owned(), message.to_owned());
    assert_eq!(shop.rejected(PUSH, order(&shop.world, PHONE)).await, locked);
    shop.push("254112345678").await;
    assert!(shop.world.simulators.mpesa().answer(&id, Answer::Cancel).is_some());
    let again = shop.push(PHONE).await;
    assert_ne!(again, id);
    let pushes = shop.world.simulators.mpesa().pushes();
    assert_eq!(pushes.len(), 3);
    assert_eq!(pushes[2].checkout_request_id, again);
}

#[tokio::test]
async fn every_field_is_checked() {
    let shop = Shop::new().await;
    let cases = [
        ("BusinessShortCode", json!("17437x"), "BusinessShortCode"),
        ("Password", Value::Null, "Password"),
        ("Timestamp", json!("2026-11-21"), "Timestamp"),
        ("TransactionType", json!("Pay"), "TransactionType"),
        ("Amount", json!(0), "Amount"),
        ("Amount", json!(250_001), "Amount"),
        ("Amount", json!(1.5), "Amount"),
        ("Amount", json!("1.00"), "Amount"),
        ("PhoneNumber", json!("0712345678"), "PhoneNumber"),
        ("PhoneNumber", json!("+254712345678"), "PhoneNumber"),
        ("PhoneNumber", json!("254812345678"), "PhoneNumber"),
        ("PartyA", json!("254712345679"), "PartyA"),
        ("PartyB", json!("600000"), "PartyB"),
        ("CallBackURL", json!("/callback"), "CallBackURL"),
        ("CallBackURL", json!("ftp://shop.test/"), "CallBackURL"),
        ("AccountReference", json!("thirteen-char"), "AccountReference"),
        ("TransactionDesc", json!("fourteen-chars"), "TransactionDesc"),
    ];
    for (field, value, name) in cases {
        let mut body = order(&shop.world, PHONE);
        body[field] = value.clone();
        let expected = (400, "400.002.02".to_owned(), format!("Bad Request - Invalid {name}"));
        assert_eq!(shop.rejected(PUSH, body).await, expected, "{field} {value}");
    }
    let rejections = [
        ("BusinessShortCode", json!("600000"), "Merchant does not exist"),
        ("Password", json!(password("20261121130001")), "Wrong credentials"),
    ];
    for (field, value, message) in rejections {
        let mut body = order(&shop.world, PHONE);
        body[field] = value.clone();
        if field == "BusinessShortCode" {
            body["PartyB"] = value;
        }
        let expected = (500, "500.001.1001".to_owned(), message.to_owned());
        assert_eq!(shop.rejected(PUSH, body).await, expected);
    }
    let (status, code, _) = shop.rejected(PUSH, json!([])).await;
    assert_eq!((status, code.as_str()), (400, "400.002.05"));
    assert!(shop.world.simulators.mpesa().pushes().is_empty());
}

#[tokio::test]
async fn numbers_and_strings_are_equal_and_tills_differ_from_shortcodes() {
    let shop = Shop::new().await;
    let mut body = order(&shop.world, PHONE);
    body["BusinessShortCode"] = json!(174_379);
    body["Amount"] = json!("250000");
    body["PartyA"] = json!(254_712_345_678_u64);
    body["TransactionType"] = json!("CustomerBuyGoodsOnline");
    body["PartyB"] = json!(600_000);
    shop.post(PUSH, body).await;
    assert_eq!(shop.world.simulators.mpesa().pushes()[0].amount, 250_000);
}

#[tokio::test]
async fn a_query_needs_the_password_and_a_known_id() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    let failed = |message: &str| (500, "500.001.1001".to_owned(), message.to_owned());
    let unknown = failed("The transaction does not exist");
    assert_eq!(shop.rejected(QUERY, question("ws_CO_none")).await, unknown);
    let mut body = question(&id);
    body["Password"] = json!("wrong");
    assert_eq!(shop.rejected(QUERY, body).await, failed("Wrong credentials"));
}

#[tokio::test]
async fn a_callback_is_sent_once() {
    let shop = Shop::new().await;
    shop.world.receiver.respond_with(500);
    shop.paid().await;
    assert_eq!(shop.notified().await.len(), 1);
    shop.world.advance(86_400).await;
    assert_eq!(shop.notified().await.len(), 1);
}

#[tokio::test]
async fn another_amount_is_reported_after_tampering() {
    let shop = Shop::new().await;
    let id = shop.push(PHONE).await;
    assert!(shop.world.simulators.mpesa().tamper("loan-7", 499));
    assert!(!shop.world.simulators.mpesa().tamper("none", 499));
    assert!(shop.world.simulators.mpesa().answer(&id, Answer::Pay).is_some());
    let items = callback(&shop).await["CallbackMetadata"]["Item"].clone();
    assert_eq!(items[0]["Value"].as_f64(), Some(499.0));
}
