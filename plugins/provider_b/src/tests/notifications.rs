use serde_json::{Value, json};
use tollhouse_plugin::notifications::{Guest, Notification, Refusal, Subject};
use tollhouse_plugin::testing::FakeHost;

use super::{HASH, host, success, transaction};
use crate::Flutterwave;

/// The documented example.
const BODY: &[u8] = br#"{"event":"charge.completed","data":{"tx_ref":"pay-1"}}"#;
const SIGNATURE: &str = "UX+0vDcfjwZZ5uGVO+SaKSRVqvM4MrxWZU/Lddr8lVs=";

fn parse(headers: &[(&str, &str)], body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Flutterwave::parse(headers.collect(), body.to_vec())
}

fn parse_known(body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let _host = host().install();
    parse(&[("verif-hash", HASH)], body)
}

fn event(name: &str, data: Value) -> Notification {
    let body = json!({"event": name, "data": data, "event.type": "CARD_TRANSACTION"});
    parse_known(body.to_string().as_bytes()).unwrap().remove(0)
}

/// Either header suffices, and both are accepted.
#[test]
fn the_shared_text_or_the_documented_signature_is_accepted() {
    let _host = host().install();
    let (hash, signature) = (("verif-hash", HASH), ("flutterwave-signature", SIGNATURE));
    for headers in [&[hash][..], &[signature], &[hash, signature]] {
        let found = parse(headers, BODY).unwrap();
        assert_eq!((found.len(), found[0].event.as_str()), (1, "charge.completed"));
        assert_eq!((found[0].subject, found[0].service_ref.as_str()), (Subject::Payment, "pay-1"));
    }
}

/// At least one header is required, and each that is present must match: a valid one does not
/// outweigh an invalid one.
#[test]
fn invalid_credentials_are_unauthentic() {
    let _host = host().install();
    let almost = SIGNATURE.replace("UX+0", "UX+1");
    let hex = "517fb4bc371f8f0659e6e1953be49a292455aaf33832bc56654fcb75dafc955b";
    let (hash, signature) = (("verif-hash", HASH), ("flutterwave-signature", SIGNATURE));
    for headers in [
        &[][..],
        &[("verif-hash", "")],
        &[("verif-hash", "my-secret-hasH")],
        &[("verif-hash", SIGNATURE)],
        &[("flutterwave-signature", "")],
        &[("flutterwave-signature", HASH)],
        &[("flutterwave-signature", &almost)],
        &[("flutterwave-signature", hex)],
        &[hash, ("flutterwave-signature", &almost)],
        &[hash, ("flutterwave-signature", "")],
        &[("verif-hash", "other"), signature],
        &[("verif-hash", ""), signature],
    ] {
        assert_eq!(parse(headers, BODY).unwrap_err(), Refusal::Unauthentic, "{headers:?}");
    }
    let altered = br#"{"event":"charge.completed","data":{"tx_ref":"pay-2"}}"#;
    assert_eq!(parse(&[signature], altered).unwrap_err(), Refusal::Unauthentic);
}

#[test]
fn without_a_shared_text_every_webhook_is_unauthentic() {
    let host = FakeHost::new().manifest(crate::MANIFEST).secret("secret_key", "k").install();
    for header in [("verif-hash", HASH), ("flutterwave-signature", SIGNATURE)] {
        assert_eq!(parse(&[header], BODY).unwrap_err(), Refusal::Unauthentic);
    }
    assert_eq!(host.logs().len(), 2);
    drop(host);
    // An empty shared text authenticates nothing, either.
    let _host = FakeHost::new().secret("webhook_hash", "").install();
    assert_eq!(parse(&[("verif-hash", "")], BODY).unwrap_err(), Refusal::Unauthentic);
}

#[test]
fn an_event_of_a_failed_charge_names_the_payment() {
    for status in ["successful", "failed"] {
        let mut data = transaction();
        data["status"] = json!(status);
        let found = event("charge.completed", data);
        assert_eq!((found.subject, found.service_ref.as_str()), (Subject::Payment, "3456787654"));
        assert_eq!(found.transaction_id, "782728102");
    }
}

/// The event is flat, has no name, and does not contain the service reference.
#[test]
fn refund_events_are_traced_to_their_payment() {
    let by_id = "/transactions/782728102/verify";
    for name in ["TransactionId", "transaction_id"] {
        let body = json!({
            "id": 8612, "AmountRefunded": 60, name: 782728102, "FlwRef": "URF_1", "status": "completed-mpgs",
        });
        let responses = [
            (host().answer("GET", by_id, 200, success(transaction())), "3456787654", 0),
            (host().timeout("GET", by_id), "", 1),
        ];
        for (host, service_ref, logs) in responses {
            let host = host.install();
            let body = body.to_string();
            let found = parse(&[("verif-hash", HASH)], body.as_bytes()).unwrap().remove(0);
            assert_eq!((found.subject, found.service_ref.as_str()), (Subject::Refund, service_ref));
            assert_eq!(found.transaction_id, "782728102");
            assert_eq!(host.requests()[0].timeout_ms, Some(3_000));
            assert_eq!(host.logs().len(), logs);
        }
    }
}

#[test]
fn other_events_have_only_a_name() {
    for name in ["transfer.completed", "subscription.cancelled", "singlebillpayment.status", "new"]
    {
        let found = event(name, json!({"tx_ref": "x", "id": 1}));
        assert_eq!((found.subject, found.event.as_str()), (Subject::Other, name));
        assert_eq!((found.service_ref.as_str(), found.transaction_id.as_str()), ("", ""));
    }
}

#[test]
fn authentic_invalid_bodies_are_malformed() {
    for body in [
        &b"no json"[..],
        b"{}",
        b"[]",
        br#"{"event":"charge.completed","data":{}}"#,
        br#"{"event":7}"#,
        br#"{"TransactionId":""}"#,
    ] {
        assert!(matches!(parse_known(body).unwrap_err(), Refusal::Malformed(_)));
    }
}
