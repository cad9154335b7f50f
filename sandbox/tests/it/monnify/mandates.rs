use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use super::{CONTRACT, SUCCESS, Shop, last_step};

const CREATE: &str = "/v1/direct-debit/mandate/create";
const DEBIT: &str = "/v1/direct-debit/mandate/debit";

fn request(reference: &str) -> Value {
    json!({
        "contractCode": CONTRACT, "mandateReference": reference, "autoRenew": false,
        "customerCancellation": true, "customerName": "Ada Obi",
        "customerPhoneNumber": "08030000001", "customerEmailAddress": "ada@example.com",
        "customerAddress": "1 Allen Avenue", "customerAccountName": "ADA OBI",
        "customerAccountNumber": "0123456789", "customerAccountBankCode": "058",
        "mandateDescription": "Loan 7", "mandateStartDate": "2026-11-21T10:15:30",
        "mandateEndDate": "2027-11-21T10:15:30", "mandateAmount": "50000.00",
        "redirectUrl": "https://shop.test/mandate",
    })
}

async fn find(shop: &Shop, reference: &str) -> Value {
    let path = format!("/v1/direct-debit/mandate/?mandateReferences={reference}");
    shop.get(&path).await[0].clone()
}

/// Creates a mandate; returns its code and page.
async fn open(shop: &Shop, reference: &str) -> (Value, String) {
    let created = shop.post(CREATE, request(reference)).await;
    let page = last_step(&find(shop, reference).await["authorizationLink"]);
    (created["mandateCode"].clone(), page)
}

async fn active(shop: &Shop, reference: &str) -> Value {
    let (code, page) = open(shop, reference).await;
    shop.complete(&page, json!({ "outcome": "success" })).await;
    shop.world.advance(10).await;
    assert_eq!(find(shop, reference).await["mandateStatus"], "ACTIVATED");
    code
}

fn debit(code: &Value, reference: &str) -> Value {
    json!({
        "paymentReference": reference, "mandateCode": code, "debitAmount": 1_000,
        "narration": "Installment 2", "customerEmail": "ada@example.com",
    })
}

async fn debit_status(shop: &Shop, reference: &str) -> Value {
    shop.get(&format!("/v1/direct-debit/mandate/debit-status?paymentReference={reference}")).await
}

#[tokio::test]
async fn a_mandate_is_authorized_on_a_page_and_activated_by_the_clock() {
    let shop = Shop::new().await;
    let created = shop.post(CREATE, request("loan-7")).await;
    assert_eq!(
        (&created["mandateReference"], &created["mandateStatus"]),
        (&json!("loan-7"), &json!("PENDING"))
    );
    let code = created["mandateCode"].as_str().unwrap();
    assert!(code.starts_with("MTDD|"), "{code}");
    let listed = find(&shop, "loan-7").await;
    let expected = json!({
        "mandateCode": code, "externalMandateReference": "loan-7", "autoRenew": false,
        "mandateStatus": "PENDING AUTHORIZATION", "mandateAmount": 50_000, "debitAmount": null,
        "startDate": "2026-11-21T09:15:30.000+0000", "endDate": "2027-11-21T09:15:30.000+0000",
        "contractCode": CONTRACT, "customerName": "Ada Obi", "customerAccountNumber": "0123456789",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&listed[name], value, "{name}");
    }
    let page = last_step(&listed["authorizationLink"]);
    let by_card = json!({ "outcome": "success", "card": SUCCESS });
    assert_eq!(shop.world.complete(&page, by_card).await.0, 400);
    let back = shop.complete(&page, json!({ "outcome": "success" })).await;
    assert_eq!(back, "https://shop.test/mandate");
    assert_eq!(find(&shop, "loan-7").await["mandateStatus"], "PENDING ACTIVATION");
    shop.world.advance(10).await;
    assert_eq!(find(&shop, "loan-7").await["mandateStatus"], "ACTIVATED");
    let webhooks = shop.notified().await;
    let stages: Vec<&Value> =
        webhooks.iter().map(|body| &body["eventData"]["mandateStatus"]).collect();
    assert_eq!(stages, ["PENDING ACTIVATION", "ACTIVATED"]);
    assert_eq!(webhooks[1]["eventType"], "MANDATE_UPDATE");
    assert_eq!(webhooks[1]["eventData"]["startDate"], "2026-11-21 10:15:30.0");
    assert_eq!(webhooks[1]["eventData"]["externalMandateReference"], "loan-7");
    assert_eq!(shop.world.complete(&page, json!({ "outcome": "success" })).await.0, 409);
}

#[tokio::test]
async fn mandates_are_found_by_several_references() {
    let shop = Shop::new().await;
    for reference in ["one", "two", "three"] {
        open(&shop, reference).await;
    }
    let path = "/v1/direct-debit/mandate?mandateReferences=one,three,none";
    assert_eq!(shop.get(path).await.as_array().unwrap().len(), 2);
    assert_eq!(shop.refused("/v1/direct-debit/mandate/", Value::Null).await.0, 400);
}

#[tokio::test]
async fn mandates_end_by_refusal_cancellation_or_expiry() {
    let shop = Shop::new().await;
    let (_, refused) = open(&shop, "refused").await;
    shop.complete(&refused, json!({ "outcome": "failed" })).await;
    open(&shop, "forgotten").await;
    active(&shop, "over").await;
    let mut renewed = request("renewed");
    renewed["autoRenew"] = json!(true);
    shop.post(CREATE, renewed).await;
    let page = last_step(&find(&shop, "renewed").await["authorizationLink"]);
    shop.complete(&page, json!({ "outcome": "success" })).await;
    let cancelled = active(&shop, "cancelled").await;
    let escaped = cancelled.as_str().unwrap().replace('|', "%7C");
    let path = format!("/v1/direct-debit/mandate/cancel-mandate/{escaped}");
    let body = shop.ok(Method::PATCH, &path, Value::Null).await;
    assert_eq!(body["mandateStatus"], "CANCELLED");
    assert_eq!(shop.call(Method::PATCH, &path, Value::Null).await.0, 400);
    assert_eq!(shop.refused(DEBIT, debit(&cancelled, "no")).await.0, 400);

    shop.world.advance(366 * 24 * 3_600).await;
    let (_, body) = super::log_in(&shop.world, super::KEY, super::SECRET).await;
    let token = body["responseBody"]["accessToken"].as_str().unwrap().to_owned();
    let shop = Shop { token, ..shop };
    for (reference, status) in [
        ("refused", "FAILED"),
        ("forgotten", "AUTHORIZATION EXPIRED"),
        ("over", "EXPIRED"),
        ("renewed", "ACTIVATED"),
        ("cancelled", "CANCELLED"),
    ] {
        assert_eq!(find(&shop, reference).await["mandateStatus"], status, "{reference}");
    }
}

#[tokio::test]
async fn a_debit_is_pending_until_the_bank_responds() {
    let shop = Shop::new().await;
    let code = active(&shop, "loan-7").await;
    let body = shop.post(DEBIT, debit(&code, "debit-1")).await;
    assert_eq!(
        (&body["transactionStatus"], &body["debitAmount"]),
        (&json!("PENDING"), &json!(1_000))
    );
    assert!(body["responseMessage"].is_string());
    assert_eq!(body["mandateCode"], code);
    shop.world.advance(10).await;
    let status = debit_status(&shop, "debit-1").await;
    // An object here, a string in the response to the debit itself.
    assert_eq!(
        (&status["transactionStatus"], &status["responseMessage"]),
        (&json!("PAID"), &json!({}))
    );
    assert_eq!(status["transactionReference"], body["transactionReference"]);
    let webhook = shop.notified().await.pop().unwrap();
    assert_eq!(webhook["eventType"], "SUCCESSFUL_TRANSACTION");
    assert_eq!(webhook["eventData"]["paymentMethod"], "DIRECT_DEBIT");
    assert_eq!(shop.status("debit-1").await["paymentStatus"], "PAID");
}

#[tokio::test]
async fn a_debit_can_fail_or_stay_pending() {
    let shop = Shop::new().await;
    let code = active(&shop, "loan-7").await;
    let before = shop.notified().await.len();
    shop.world.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
    shop.post(DEBIT, debit(&code, "debit-1")).await;
    shop.world.advance(10).await;
    assert_eq!(debit_status(&shop, "debit-1").await["transactionStatus"], "FAILED");
    assert_eq!(shop.notified().await.len(), before);

    shop.world.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
    shop.post(DEBIT, debit(&code, "debit-2")).await;
    shop.world.advance(60).await;
    assert_eq!(debit_status(&shop, "debit-2").await["transactionStatus"], "PENDING");
    assert!(shop.world.simulators.monnify().resolve("debit-2", Outcome::Success));
    assert_eq!(debit_status(&shop, "debit-2").await["transactionStatus"], "PAID");
}

#[tokio::test]
async fn invalid_mandates_and_debits_are_refused() {
    let shop = Shop::new().await;
    let (pending, _) = open(&shop, "taken").await;
    let cases = [
        ("mandateReference", json!("taken")),
        ("contractCode", json!("1234567890")),
        ("customerEmailAddress", json!("nobody")),
        ("customerAccountNumber", json!("123")),
        ("mandateStartDate", json!("soon")),
        ("mandateEndDate", json!("2026-11-21")),
        ("mandateAmount", json!(null)),
        ("mandateDescription", json!(null)),
    ];
    for (name, value) in cases {
        let mut body = request("new");
        body[name] = value.clone();
        assert_eq!(shop.refused(CREATE, body).await.0, 400, "{name}: {value}");
    }
    let code = active(&shop, "active").await;
    let mut much = debit(&code, "much");
    much["debitAmount"] = json!(50_000.01);
    for (body, status) in
        [(debit(&pending, "early"), 400), (debit(&json!("MTDD|NONE"), "none"), 404), (much, 400)]
    {
        assert_eq!(shop.refused(DEBIT, body).await.0, status);
    }
    shop.post(DEBIT, debit(&code, "once")).await;
    assert_eq!(shop.refused(DEBIT, debit(&code, "once")).await.0, 400);
}
