use serde_json::{Value, json};
use tollhouse_plugin::payments::KnownSession;
use tollhouse_plugin::session_refunds::{
    Guest, KnownRefund, SessionRefundOrder, SessionRefundStatus,
};

use super::{NOTIFICATION_URL, REVERSAL, describe, error, host, paid, session, shillings, started};
use crate::Mpesa;

fn order(session: KnownSession) -> SessionRefundOrder {
    SessionRefundOrder {
        session,
        refund_ref: "refund1".into(),
        amount: shillings(10),
        reason: "refund".into(),
        notification_url: NOTIFICATION_URL.into(),
    }
}

fn accepted() -> Value {
    json!({
        "OriginatorConversationID": "71840-27539181-07", "ConversationID": "AG_1",
        "ResponseCode": "0", "ResponseDescription": "Accept the service request successfully.",
    })
}

#[test]
fn a_payment_is_reversed_by_its_receipt() {
    let host = host().answer("POST", REVERSAL, 200, accepted()).install();
    let refund = <Mpesa as Guest>::start(order(session(started(), paid()))).unwrap();
    assert_eq!((refund.status, &*refund.provider_id), (SessionRefundStatus::Pending, "AG_1"));
    let mut body = host.requests()[0].json();
    let credential = body["SecurityCredential"].take();
    assert!(credential.as_str().is_some_and(|text| !text.contains("Safaricom999!")));
    let expected = json!({
        "Initiator": "testapi", "SecurityCredential": null, "CommandID": "TransactionReversal",
        "TransactionID": "NLJ7RT61SV", "Amount": 10, "ReceiverParty": "174379",
        "RecieverIdentifierType": "11", "ResultURL": NOTIFICATION_URL,
        "QueueTimeOutURL": NOTIFICATION_URL, "Remarks": "Refund", "Occasion": "refund1",
    });
    assert_eq!(body, expected);
}

#[test]
fn the_receipt_of_a_verification_is_used_without_a_callback() {
    let host = host().answer("POST", REVERSAL, 200, accepted()).install();
    let known = KnownSession { transaction_id: "NLJ1".into(), ..session(started(), None) };
    <Mpesa as Guest>::start(order(known)).unwrap();
    assert_eq!(host.requests()[0].json()["TransactionID"], "NLJ1");
    let fault = <Mpesa as Guest>::start(order(session(started(), None))).unwrap_err();
    assert_eq!(describe(&fault), "FaultCategory::Unavailable  ");
    assert_eq!(host.requests().len(), 1);
}

#[test]
fn a_refused_request_is_a_fault() {
    for (status, body, expected) in [
        (
            400,
            error("400.002.02", "Bad Request - Invalid Initiator"),
            "FaultCategory::Misconfigured 400.002.02 ",
        ),
        (500, error("500.002.1001", "Server Error"), "FaultCategory::Unavailable 500.002.1001 "),
    ] {
        let _host = host().answer("POST", REVERSAL, status, body).install();
        let fault = <Mpesa as Guest>::start(order(session(started(), paid()))).unwrap_err();
        assert_eq!(describe(&fault), expected);
    }
}

#[test]
fn the_result_arrives_by_callback() {
    let refund = |notified: Option<Vec<u8>>| KnownRefund {
        session: session(started(), paid()),
        refund_ref: "refund1".into(),
        amount: shillings(10),
        provider_id: "AG_1".into(),
        state: Some(vec![]),
        notified,
    };
    assert_eq!(Mpesa::check(refund(None)).unwrap().status, SessionRefundStatus::Pending);
    for (code, status) in [
        (json!(0), SessionRefundStatus::Done),
        (json!("0"), SessionRefundStatus::Done),
        (json!("R000001"), SessionRefundStatus::Done),
        (json!("R000002"), SessionRefundStatus::Failed),
        (json!(2001), SessionRefundStatus::Failed),
    ] {
        let result = json!({ "Result": {
            "ResultType": 0, "ConversationID": "AG_1", "ResultCode": code, "ResultDesc": "r",
        }});
        let body = result.to_string().into_bytes();
        let notified = <Mpesa as Guest>::receive(refund(None), vec![], body).unwrap();
        let seen = Mpesa::check(refund(Some(notified))).unwrap();
        assert_eq!((seen.status, &*seen.message, &*seen.provider_id), (status, "r", "AG_1"));
    }
    for (code, status) in
        [("R000002", SessionRefundStatus::Pending), ("0", SessionRefundStatus::Done)]
    {
        let notified = json!({ "conversation_id": "AG_0", "result_code": code, "result": "r" });
        let seen = Mpesa::check(refund(Some(notified.to_string().into_bytes()))).unwrap();
        assert_eq!(seen.status, status, "of an earlier request: {code}");
    }
    for bad in ["", "{}", r#"{"Result": {}}"#] {
        let fault = <Mpesa as Guest>::receive(refund(None), vec![], bad.into()).unwrap_err();
        assert_eq!(describe(&fault), "FaultCategory::Invalid  body");
    }
}
