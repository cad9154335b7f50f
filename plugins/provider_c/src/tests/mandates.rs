use serde_json::{Value, json};
use tollhouse_plugin::mandates::{
    Consent, DebitedAccount, Guest as _, KnownMandate, MandateOrder, MandateStatus,
};
use tollhouse_plugin::types::FaultCategory;

use super::{host, naira, refused, success};
use crate::Monnify;

const CREATE: &str = "/api/v1/direct-debit/mandate/create";
const FIND: &str = "/api/v1/direct-debit/mandate/?mandateReferences=mnd-1";
const CANCEL: &str = "/api/v1/direct-debit/mandate/cancel-mandate/MTDD%7C1";

fn order() -> MandateOrder {
    MandateOrder {
        mandate_ref: "mnd-1".into(),
        currency: "NGN".into(),
        email: "ada@example.com".into(),
        name: "Ada Obi".into(),
        phone: Some("+2348012345678".into()),
        address: None,
        account: Some(DebitedAccount {
            bank_code: "058".into(),
            account_number: "0123456789".into(),
        }),
        max_amount: Some(naira(5_000_025)),
        starts_at: "2026-11-21T09:00:00Z".into(),
        ends_at: Some("2027-12-31T23:30:00Z".into()),
        narration: "Loan repayments".into(),
        return_url: "https://shop.test/done".into(),
        notification_url: "https://host.test/n".into(),
    }
}

fn known() -> KnownMandate {
    KnownMandate { service_ref: "mnd-1".into(), status: MandateStatus::Created, state: None }
}

fn listed(status: &str) -> Value {
    success(json!([{
        "mandateCode": "MTDD|1", "externalMandateReference": "mnd-1", "mandateStatus": status,
        "mandateAmount": 50000.5, "customerEmailAddress": "ada@example.com",
        "customerAccountNumber": "0123456789", "authorizationMessage": "Transfer 50 naira.",
        "authorizationLink": "https://m.test/1",
    }]))
}

fn created() -> Value {
    success(
        json!({"mandateReference": "mnd-1", "mandateCode": "MTDD|1", "mandateStatus": "PENDING"}),
    )
}

#[test]
fn a_mandate_is_created_and_its_link_returned() {
    let host = host()
        .answer("POST", CREATE, 200, created())
        .answer("GET", FIND, 200, listed("PENDING AUTHORIZATION"))
        .install();
    let begun = Monnify::begin(order()).unwrap();
    assert_eq!(begun.consent, Consent::Page("https://m.test/1".into()));
    assert_eq!(begun.service_ref, "mnd-1");
    let expected = json!({
        "contractCode": "5867418298", "mandateReference": "mnd-1", "autoRenew": false,
        "customerCancellation": true, "customerName": "Ada Obi",
        "customerPhoneNumber": "+2348012345678", "customerEmailAddress": "ada@example.com",
        "customerAccountName": "Ada Obi", "customerAccountNumber": "0123456789",
        "customerAccountBankCode": "058", "mandateDescription": "Loan repayments",
        "mandateStartDate": "2026-11-21T10:00:00", "mandateEndDate": "2028-01-01T00:30:00",
        "mandateAmount": 50000.25, "redirectUrl": "https://shop.test/done",
    });
    assert_eq!(host.requests()[0].json(), expected);
}

#[test]
fn a_mandate_that_an_earlier_request_created_is_returned() {
    let duplicate = refused("99", "Duplicate mandate reference");
    let _host = host()
        .answer("POST", CREATE, 400, duplicate)
        .answer("GET", FIND, 200, listed("PENDING AUTHORIZATION"))
        .install();
    assert!(Monnify::begin(order()).is_ok());
}

#[test]
fn a_refusal_is_final_only_if_there_is_no_mandate() {
    for (status, found, category) in [
        (200, success(json!([])), FaultCategory::Refused),
        (403, refused("99", "Not permitted"), FaultCategory::Unavailable),
    ] {
        let _host = host()
            .answer("POST", CREATE, 403, refused("99", "Not enabled"))
            .answer("GET", FIND, status, found)
            .install();
        assert_eq!(Monnify::begin(order()).unwrap_err().category, category);
    }
}

#[test]
fn missing_fields_are_named() {
    let _host = host().install();
    for (order, field) in [
        (MandateOrder { account: None, ..order() }, "account"),
        (MandateOrder { max_amount: None, ..order() }, "max_amount"),
        (MandateOrder { ends_at: None, ..order() }, "ends_at"),
        (MandateOrder { currency: "USD".into(), ..order() }, "currency"),
    ] {
        assert_eq!(Monnify::begin(order).unwrap_err().field(), Some(field));
    }
}

#[test]
fn each_status_has_its_meaning() {
    use MandateStatus::{Approved, Cancelled, Created, Ready};
    for (word, status) in [
        ("PENDING", Created),
        ("PENDING AUTHORIZATION", Created),
        ("PENDING_ACTIVATION", Approved),
        ("ACTIVATED", Ready),
        ("AUTHORIZATION EXPIRED", Cancelled),
        ("EXPIRED", Cancelled),
        ("CANCELLED", Cancelled),
        ("FAILED", Cancelled),
        ("SUSPENDED", Created),
        ("A NEW WORD", Created),
    ] {
        let _host = host().answer("GET", FIND, 200, listed(word)).install();
        let found = Monnify::query(known()).unwrap();
        assert_eq!(found.status, status, "{word}");
        assert_eq!((&*found.token, &*found.last4), ("MTDD|1", "6789"));
        assert_eq!(found.consent.is_some(), status == Created, "{word}");
    }
    let _host = host().answer("GET", FIND, 200, success(json!([]))).install();
    assert_eq!(Monnify::query(known()).unwrap_err().category, FaultCategory::NotFound);
}

#[test]
fn a_mandate_that_has_ended_is_not_cancelled_again() {
    let host = host().answer("GET", FIND, 200, listed("EXPIRED")).install();
    assert_eq!(Monnify::cancel(known()), Ok(true));
    assert_eq!(host.requests().len(), 1);
}

#[test]
fn a_mandate_is_cancelled_by_its_code() {
    let host = host()
        .answer("GET", FIND, 200, listed("ACTIVATED"))
        .answer("PATCH", CANCEL, 200, success(json!({"mandateStatus": "CANCELLED"})))
        .install();
    assert_eq!(Monnify::cancel(known()), Ok(true));
    assert_eq!(host.requests()[1].method, "PATCH");
}
