use serde_json::{Value, json};
use tollhouse_plugin::direct_debit::{DebitOrder, Guest};
use tollhouse_plugin::payments::{Payment, PaymentStatus};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::verification;

use super::{DEBIT, PAGE_1, QUERY, host, naira, parsed, refused, success, transaction_with};
use crate::Monnify;

const PATH: &str = "/api/v1/direct-debit/mandate/debit";

fn debited(status: &str) -> Value {
    success(json!({
        "transactionStatus": status, "responseMessage": "Debit in progress",
        "transactionReference": "MNFY|1", "paymentReference": "pay-1", "debitAmount": 403.33,
        "narration": "Loan", "mandateCode": "MTDD|01HT",
    }))
}

fn order() -> DebitOrder {
    DebitOrder {
        mandate: "MTDD|01HT".into(),
        email: "demo@test.com".into(),
        amount: naira(40333),
        service_ref: "pay-1".into(),
        narration: "Loan".into(),
        metadata: r#"{"order":7}"#.into(),
    }
}

fn debit(status: u16, response: Value) -> Result<Payment, Fault> {
    let host = host().answer("POST", PATH, status, response);
    let _host = host.answer("GET", PAGE_1, 404, refused("99", "Not found")).install();
    Monnify::debit(order())
}

#[test]
fn a_mandate_is_debited() {
    let host = host().answer("POST", PATH, 200, debited("PENDING")).install();
    let payment = Monnify::debit(order()).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Pending, naira(40333)));
    assert_eq!(payment.transaction_id, "MNFY|1");
    assert_eq!(payment.message, "Debit in progress");
    let wanted = json!({
        "paymentReference": "pay-1", "mandateCode": "MTDD|01HT", "debitAmount": 403.33,
        "narration": "Loan", "customerEmail": "demo@test.com",
    });
    assert_eq!(host.requests()[0].json(), wanted);
}

#[test]
fn the_mandate_is_the_instrument_and_raw_omits_it() {
    let payment = debit(200, debited("PAID")).unwrap();
    assert_eq!(payment.status, PaymentStatus::Success);
    assert!(!payment.raw.contains("MTDD"), "{}", payment.raw);
    let mandate = payment.instrument.unwrap();
    assert_eq!((mandate.kind.as_str(), mandate.reusable), ("mandate", true));
    assert_eq!((mandate.token.as_str(), mandate.signature.as_str()), ("MTDD|01HT", ""));
}

/// In the list of all transactions, the mandate is in another field.
#[test]
fn raw_omits_the_mandate_as_a_product() {
    let product = |kind: &str| json!({"product": {"type": kind, "reference": "MTDD|01HT"}});
    for (kind, shows) in [("DIRECT_DEBIT", false), ("direct_debit", false), ("WEB_SDK", true)] {
        let data = transaction_with(product(kind));
        let _host = host().answer("GET", QUERY, 200, success(data)).install();
        let raw = <Monnify as verification::Guest>::verify("pay-1".into()).unwrap().raw;
        assert_eq!(raw.contains("MTDD"), shows, "{raw}");
        assert_eq!(parsed(&raw)["product"]["type"], kind);
    }
}

/// Debits are not in the list of transactions.
#[test]
fn a_debit_is_verified_at_the_debit_endpoint() {
    let host = host()
        .answer("GET", QUERY, 404, refused("99", "There is no transaction with the reference"))
        .answer("GET", DEBIT, 200, debited("PAID"))
        .answer("GET", PAGE_1, 404, refused("99", "Not found"))
        .install();
    let payment = <Monnify as verification::Guest>::verify("pay-1".into()).unwrap();
    assert_eq!((payment.status, payment.amount), (PaymentStatus::Success, naira(40333)));
    assert_eq!(payment.fees_minor, None);
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn a_repeated_reference_returns_the_first_debit() {
    for words in ["Duplicate payment reference", "Try another one"] {
        let _host = host()
            .answer("POST", PATH, 400, refused("99", words))
            .answer("GET", QUERY, 404, refused("99", "Not found"))
            .answer("GET", DEBIT, 200, debited("PAID"))
            .answer("GET", PAGE_1, 404, refused("99", "Not found"))
            .install();
        assert_eq!(Monnify::debit(order()).unwrap().status, PaymentStatus::Success, "{words}");
    }
}
