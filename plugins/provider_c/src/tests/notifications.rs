use serde_json::{Value, json};
use tollhouse_plugin::notifications::{Guest, Notification, Refusal, Subject};
use tollhouse_plugin::testing::FakeHost;
use tollhouse_plugin::vault;

use super::{PAGE, host, stranger, success, transaction};
use crate::Monnify;

/// The documented example.
const BODY: &[u8] =
    br#"{"eventType":"SUCCESSFUL_TRANSACTION","eventData":{"paymentReference":"pay-1"}}"#;
const SIGNATURE: &str = "9455b60b54102c5a72f9bb31e6a399f37a62311110aa6e3945ceb825924f59b5\
    e92aeefc78f696d957fbf0495baca66bcdac8b2a3dee2a453d18ea33d2ebfa90";

fn parse(signature: &str, body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let headers = vec![("monnify-signature".to_owned(), signature.to_owned())];
    Monnify::parse(headers, body.to_vec())
}

/// Parses a body with a valid signature, on the installed host.
fn parse_signed(body: &[u8]) -> Result<Vec<Notification>, Refusal> {
    let mac = vault::hmac("sha512", "secret_key", body).unwrap();
    parse(&mac.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), body)
}

fn event(name: &str, data: Value) -> Notification {
    let body = json!({"eventType": name, "eventData": data}).to_string();
    parse_signed(body.as_bytes()).unwrap().remove(0)
}

#[test]
fn the_documented_signature_is_accepted_in_either_case() {
    let _host = host().install();
    for signature in [SIGNATURE.to_owned(), SIGNATURE.to_uppercase()] {
        let found = parse(&signature, BODY).unwrap();
        assert_eq!((found.len(), found[0].event.as_str()), (1, "SUCCESSFUL_TRANSACTION"));
        assert_eq!((found[0].subject, found[0].service_ref.as_str()), (Subject::Payment, "pay-1"));
    }
}

#[test]
fn invalid_signatures_are_unauthentic() {
    let _host = host().install();
    let mut altered = BODY.to_vec();
    altered[70] ^= 1;
    let almost = format!("{}1", &SIGNATURE[..127]);
    for (signature, body) in [
        ("", BODY),
        ("zz", BODY),
        (&SIGNATURE[..126], BODY),
        (&almost, BODY),
        (SIGNATURE, &altered),
    ] {
        assert_eq!(parse(signature, body).unwrap_err(), Refusal::Unauthentic);
    }
    assert_eq!(Monnify::parse(vec![], BODY.to_vec()).unwrap_err(), Refusal::Unauthentic);
}

#[test]
fn without_a_key_every_webhook_is_unauthentic() {
    let host = FakeHost::new().manifest(crate::MANIFEST).install();
    assert_eq!(parse(SIGNATURE, BODY).unwrap_err(), Refusal::Unauthentic);
    assert_eq!(host.logs().len(), 1);
}

#[test]
fn events_of_payments_and_rejected_transfers_name_the_payment() {
    let _host = host().install();
    for name in ["SUCCESSFUL_TRANSACTION", "REJECTED_PAYMENT"] {
        let found = event(name, transaction());
        assert_eq!((found.subject, found.event.as_str()), (Subject::Payment, name));
        assert_eq!(found.service_ref, "pay-1");
        assert_eq!(found.transaction_id, "MNFY|20220121154928|000001");
    }
}

fn refund() -> Value {
    json!({
        "merchantReason": "Returned", "transactionReference": "MNFY|20220121154928|000001",
        "completedOn": "21/01/2022 03:49:28 PM", "refundStatus": "COMPLETED", "customerNote": "Refund",
        "createdOn": "21/01/2022 03:40:00 PM", "refundReference": "R-1", "refundAmount": 403.33,
    })
}

/// A refund event has only Monnify's reference, whose `|` must be encoded in a path.
#[test]
fn refund_events_are_traced_to_their_payment() {
    for name in ["SUCCESSFUL_REFUND", "FAILED_REFUND"] {
        let host = host().answer("GET", PAGE, 200, success(transaction())).install();
        let found = event(name, refund());
        assert_eq!((found.subject, found.event.as_str()), (Subject::Refund, name));
        assert_eq!(found.service_ref, "pay-1");
        assert_eq!(found.transaction_id, "MNFY|20220121154928|000001");
        assert_eq!(host.requests()[0].timeout_ms, Some(3_000));
    }
}

/// Monnify waits only briefly for a response to its webhook, even if a login is needed.
#[test]
fn a_login_for_a_trace_has_the_short_timeout() {
    let login = "/api/v1/auth/login";
    let token = success(json!({"accessToken": "new", "expiresIn": 3567}));
    let unknown = stranger().answer("GET", PAGE, 200, success(transaction()));
    let ended =
        host().answer("GET", PAGE, 401, json!({})).answer("GET", PAGE, 200, success(transaction()));
    for (host, requests) in [(unknown, 2), (ended, 3)] {
        let host = host.answer("POST", login, 200, token.clone()).install();
        assert_eq!(event("SUCCESSFUL_REFUND", refund()).service_ref, "pay-1");
        assert_eq!(host.requests().len(), requests);
        assert!(host.requests().iter().all(|sent| sent.timeout_ms == Some(3_000)));
    }
}

#[test]
fn a_refund_event_that_cannot_be_traced_is_still_reported() {
    let host = host().timeout("GET", PAGE);
    let host = host.install();
    let found = event("SUCCESSFUL_REFUND", refund());
    assert_eq!((found.subject, found.service_ref.as_str()), (Subject::Refund, ""));
    assert_eq!(host.logs().len(), 1);
}

#[test]
fn a_refund_event_that_names_its_payment_needs_no_lookup() {
    let host = host().install();
    let mut data = refund();
    data["paymentReference"] = json!("pay-1");
    assert_eq!(event("SUCCESSFUL_REFUND", data).service_ref, "pay-1");
    assert!(host.requests().is_empty());
}

#[test]
fn mandate_events_are_recognized() {
    let _host = host().install();
    let data = json!({
        "mandateCode": "MTDD|01HT", "externalMandateReference": "m-1", "mandateStatus": "ACTIVATED",
    });
    let found = event("MANDATE_UPDATE", data);
    assert_eq!((found.subject, found.service_ref.as_str()), (Subject::Mandate, "m-1"));
    assert_eq!(found.transaction_id, "");
}

#[test]
fn other_events_have_only_a_name() {
    let _host = host().install();
    for name in ["SETTLEMENT", "ACCOUNT_ACTIVITY", "SUCCESSFUL_DISBURSEMENT", "low_balance_alert"] {
        let found = event(name, json!({"paymentReference": "x", "transactionReference": "MNFY|1"}));
        assert_eq!((found.subject, found.event.as_str()), (Subject::Other, name));
        assert_eq!((found.service_ref.as_str(), found.transaction_id.as_str()), ("", ""));
    }
}

#[test]
fn signed_invalid_bodies_are_malformed() {
    let _host = host().install();
    for body in [
        &b"no json"[..],
        b"{}",
        b"[]",
        br#"{"eventType":"SUCCESSFUL_TRANSACTION","eventData":{}}"#,
        br#"{"eventType":"SUCCESSFUL_REFUND","eventData":{}}"#,
    ] {
        assert!(matches!(parse_signed(body).unwrap_err(), Refusal::Malformed(_)));
    }
}
