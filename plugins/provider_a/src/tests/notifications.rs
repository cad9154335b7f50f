use serde_json::{Value, json};
use tollhouse_plugin::notifications::{Guest, Notification, Refusal, Subject};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::vault;

use super::{host, transaction};
use crate::Paystack;

/// The documented example.
const BODY: &[u8] = br#"{"event":"charge.success","data":{"reference":"pay-1","amount":10000}}"#;
const SIGNATURE: &str = "dc7cd888540ba73cdf492d2d0f92eb4188dfc48f5b474ac36c2c76d003733c2a\
    bf675210b0d09cc0f217f7c0afa3d99d86e639cf10e7bc6f479c0930d19581d2";

fn parse(signature: &str, body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let headers = vec![("x-paystack-signature".to_owned(), signature.to_owned())];
    Paystack::parse(headers, body.to_vec())
}

/// Parses a body with a valid signature.
fn parse_signed(body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let _host = host().install();
    let mac = vault::hmac("sha512", "secret_key", body).unwrap();
    parse(&mac.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), body)
}

fn event(name: &str, data: Value) -> Notification {
    let body = json!({"event": name, "data": data}).to_string();
    parse_signed(body.as_bytes()).unwrap().remove(0)
}

#[test]
fn the_documented_signature_is_accepted_in_either_case() {
    let _host = host().install();
    for signature in [SIGNATURE.to_owned(), SIGNATURE.to_uppercase()] {
        let found = parse(&signature, BODY).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].subject, found[0].service_ref.as_str()), (Subject::Payment, "pay-1"));
        assert_eq!(found[0].event, "charge.success");
    }
}

#[test]
fn invalid_signatures_are_unauthentic() {
    let _host = host().install();
    let mut altered = BODY.to_vec();
    altered[60] ^= 1;
    let almost = format!("{}3", &SIGNATURE[..127]);
    for (signature, body) in [
        ("", BODY),
        ("zz", BODY),
        (&SIGNATURE[..126], BODY),
        (&almost, BODY),
        (SIGNATURE, &altered),
    ] {
        assert_eq!(parse(signature, body).unwrap_err(), Refusal::Unauthentic);
    }
    assert_eq!(Paystack::parse(vec![], BODY.to_vec()).unwrap_err(), Refusal::Unauthentic);
}

#[test]
fn without_a_key_every_webhook_is_unauthentic() {
    let host = FakeHost::new().manifest(crate::MANIFEST).install();
    assert_eq!(parse(SIGNATURE, BODY).unwrap_err(), Refusal::Unauthentic);
    assert_eq!(host.logs().len(), 1);
}

#[test]
fn a_charge_event_names_the_payment() {
    let found = event("charge.success", transaction());
    assert_eq!(found.service_ref, "re4lyvq3s3");
    assert_eq!(found.transaction_id, "4099260516");
}

#[test]
fn refund_events_name_the_payment() {
    for (name, amount) in [
        ("refund.pending", json!("5000")),
        ("refund.processing", json!(20000)),
        ("refund.processed", json!("5000")),
        ("refund.failed", json!("5000")),
        ("refund.needs-attention", json!("5000")),
    ] {
        let data = json!({
            "status": "x", "transaction_reference": "tvunjbbd_412829_4b18075d_c7had",
            "refund_reference": null, "amount": amount, "currency": "NGN",
        });
        let found = event(name, data);
        assert_eq!((found.subject, found.event.as_str()), (Subject::Refund, name));
        assert_eq!(found.service_ref, "tvunjbbd_412829_4b18075d_c7had");
        assert_eq!(found.transaction_id, "");
    }
}

#[test]
fn mandate_events_are_recognized() {
    for name in ["direct_debit.authorization.created", "direct_debit.authorization.active"] {
        let data = json!({
            "authorization_code": "AUTH_8x", "active": true, "channel": "direct_debit",
            "exp_month": 1, "exp_year": 2034, "reference": "m-1",
        });
        let found = event(name, data);
        assert_eq!((found.subject, found.service_ref.as_str()), (Subject::Mandate, "m-1"));
    }
}

#[test]
fn dispute_events_name_the_payment() {
    for name in ["charge.dispute.create", "charge.dispute.remind", "charge.dispute.resolve"] {
        let transaction = json!({"id": 5991760, "reference": "re4lyvq3s3", "amount": 40333});
        let found = event(name, json!({"id": 358950, "transaction": transaction}));
        assert_eq!((found.subject, found.event.as_str()), (Subject::Other, name));
        assert_eq!(
            (found.service_ref.as_str(), found.transaction_id.as_str()),
            ("re4lyvq3s3", "5991760")
        );
        let found = event(name, json!({"id": 358950, "transaction": 5991760}));
        assert_eq!((found.service_ref.as_str(), found.transaction_id.as_str()), ("", "5991760"));
        let found = event(name, json!({"id": 358950}));
        assert_eq!((found.service_ref.as_str(), found.transaction_id.as_str()), ("", ""));
    }
}

#[test]
fn other_events_have_only_a_name() {
    for name in ["transfer.success", "subscription.create", "charge.disputed", "new"] {
        let found = event(name, json!({"reference": "x", "id": 1}));
        assert_eq!((found.subject, found.event.as_str()), (Subject::Other, name));
        assert_eq!((found.service_ref.as_str(), found.transaction_id.as_str()), ("", ""));
    }
}

#[test]
fn signed_invalid_bodies_are_malformed() {
    for body in [&b"no json"[..], b"{}", b"[]", br#"{"event":"charge.success","data":{}}"#] {
        assert!(matches!(parse_signed(body).unwrap_err(), Refusal::Malformed(_)));
    }
}
