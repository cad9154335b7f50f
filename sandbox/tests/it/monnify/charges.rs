use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use super::{CONTRACT, KEY, SUCCESS, Shop, last_step};

const PATH: &str = "/v1/merchant/cards/charge-card-token";
const OTP: &str = "/v1/merchant/cards/otp/authorize";

fn charge(token: &Value, reference: &str) -> Value {
    json!({
        "cardToken": token, "amount": 30, "customerName": "Ada Obi",
        "customerEmail": "ada@example.com", "paymentReference": reference,
        "paymentDescription": "Installment 2", "currencyCode": "NGN", "contractCode": CONTRACT,
        "apiKey": KEY, "metaData": { "loan": 7 },
    })
}

#[tokio::test]
async fn a_saved_card_is_charged_again() {
    let shop = Shop::new().await;
    let token = shop.saved("first", SUCCESS).await;
    let body = shop.post(PATH, charge(&token, "second")).await;
    assert_eq!((&body["status"], &body["paymentStatus"]), (&json!("SUCCESS"), &json!("PAID")));
    assert_eq!((&body["amountPaid"], &body["authorizedAmount"]), (&json!("30.00"), &json!(30)));
    assert_eq!(body["cardDetails"]["cardToken"], token);
    let status = shop.status("second").await;
    for (name, value) in status.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name}");
    }
    assert_eq!(shop.events().await.len(), 2);
}

#[tokio::test]
async fn a_token_belongs_to_its_customer_and_a_reference_is_used_once() {
    let shop = Shop::new().await;
    let token = shop.saved("first", SUCCESS).await;
    let cases = [
        ("customerEmail", json!("eve@example.com")),
        ("cardToken", json!("MNFY_NONE")),
        ("paymentReference", json!("first")),
        ("contractCode", json!("1234567890")),
        ("apiKey", json!("MK_TEST_OTHER")),
        ("apiKey", json!(null)),
        ("amount", json!("0")),
        ("currencyCode", json!("USD")),
    ];
    for (name, value) in cases {
        let mut body = charge(&token, "new");
        body[name] = value.clone();
        assert_eq!(shop.refused(PATH, body).await, (400, "99".to_owned()), "{name}: {value}");
    }
}

#[tokio::test]
async fn a_charge_can_be_declined_or_left_pending() {
    let shop = Shop::new().await;
    let token = shop.saved("first", SUCCESS).await;
    let faults = shop.world.simulators.faults();
    faults.push(Fault::new("charge", FaultKind::Decline));
    let failed = shop.post(PATH, charge(&token, "declined")).await;
    assert_eq!((&failed["status"], &failed["paymentStatus"]), (&json!("FAILED"), &json!("FAILED")));
    for (reference, outcome, status) in [
        ("good", Outcome::Success, "PAID"),
        ("bad", Outcome::Failed, "FAILED"),
        ("gone", Outcome::Abandoned, "CANCELLED"),
    ] {
        faults.push(Fault::new("charge", FaultKind::Pending));
        assert_eq!(shop.post(PATH, charge(&token, reference)).await["status"], "PENDING");
        assert_eq!(shop.status(reference).await["paymentStatus"], "PENDING");
        assert!(shop.world.simulators.monnify().resolve(reference, outcome));
        assert!(!shop.world.simulators.monnify().resolve(reference, outcome));
        assert_eq!(shop.status(reference).await["paymentStatus"], status);
    }
}

#[tokio::test]
async fn a_card_or_a_fault_requires_the_banks_page() {
    let shop = Shop::new().await;
    let secure = shop.saved("secure", "4000000000000002").await;
    let plain = shop.saved("plain", SUCCESS).await;
    let cases = [(&secure, "by-card", "success", "PAID"), (&plain, "by-fault", "failed", "FAILED")];
    for (token, reference, outcome, status) in cases {
        if reference == "by-fault" {
            shop.world.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
        }
        let body = shop.post(PATH, charge(token, reference)).await;
        assert_eq!(body["status"], "BANK_AUTHORIZATION_REQUIRED");
        assert_eq!(body["paymentStatus"], "PENDING");
        assert!(body["secure3dData"]["id"].is_string());
        let page = last_step(&body["secure3dData"]["redirectUrl"]);
        let by_card = json!({ "outcome": "success", "card": SUCCESS });
        assert_eq!(shop.world.complete(&page, by_card).await.0, 400);
        shop.complete(&page, json!({ "outcome": outcome })).await;
        let paid = shop.status(reference).await;
        assert_eq!(paid["paymentStatus"], status);
        assert_eq!(paid["cardDetails"]["cardToken"], *token);
        assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
    }
}

#[tokio::test]
async fn an_otp_is_required_and_checked() {
    let shop = Shop::new().await;
    let token = shop.saved("first", "5060995994247093").await;
    for (reference, code, status) in
        [("long", "123456", "SUCCESS"), ("short", "12345", "SUCCESS"), ("wrong", "1", "FAILED")]
    {
        let challenge = shop.post(PATH, charge(&token, reference)).await;
        assert_eq!(challenge["status"], "OTP_AUTHORIZATION_REQUIRED");
        let body = json!({
            "transactionReference": challenge["transactionReference"],
            "collectionChannel": "API_NOTIFICATION", "tokenId": challenge["otpData"]["id"],
            "token": code,
        });
        assert_eq!(shop.post(OTP, body.clone()).await["status"], status);
        assert_eq!(shop.refused(OTP, body).await.0, 400);
    }
}
