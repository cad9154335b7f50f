use serde_json::{Value, json};
use tollhouse_plugin::account_enquiry::Guest as _;
use tollhouse_plugin::payments::PaymentStatus;
use tollhouse_plugin::types::FaultCategory;
use tollhouse_plugin::virtual_accounts::{AccountId, AccountOrder, Guest as _};

use super::{QUERY, host, refused, success, transaction_with};
use crate::Monnify;

const OPEN: &str = "/api/v2/bank-transfer/reserved-accounts";
const FIND: &str = "/api/v2/bank-transfer/reserved-accounts/acc-1";
const CLOSE: &str = "/api/v1/bank-transfer/reserved-accounts/reference/acc-1";
const RESOLVE: &str =
    "/api/v1/disbursements/account/validate?accountNumber=0123456789&bankCode=058";

pub(super) fn order() -> AccountOrder {
    AccountOrder {
        account_ref: "acc-1".into(),
        currency: "NGN".into(),
        email: "ada@example.com".into(),
        name: "Ada Obi".into(),
        phone: None,
        identity: Some(("bvn".into(), "22222222222".into())),
    }
}

fn account() -> Value {
    success(json!({
        "accountReference": "acc-1",
        "accounts": [
            {"bankCode": "035", "bankName": "Wema bank", "accountNumber": "7023576853", "accountName": "Ada Obi"},
            {"bankCode": "232", "bankName": "Sterling bank", "accountNumber": "8000000001", "accountName": "Ada Obi"},
        ],
        "status": "ACTIVE",
    }))
}

#[test]
fn the_first_of_the_banks_is_returned() {
    let host = host().answer("POST", OPEN, 200, account()).install();
    let opened = Monnify::open(order()).unwrap();
    assert_eq!((opened.account_number.as_str(), opened.bank.as_str()), ("7023576853", "Wema bank"));
    assert_eq!((opened.holder.as_str(), opened.provider_id.as_str()), ("Ada Obi", "acc-1"));
    let expected = json!({
        "accountReference": "acc-1", "accountName": "Ada Obi", "currencyCode": "NGN",
        "contractCode": "5867418298", "customerEmail": "ada@example.com", "customerName": "Ada Obi",
        "getAllAvailableBanks": true, "bvn": "22222222222",
    });
    assert_eq!(host.requests()[0].json(), expected);
}

#[test]
fn an_account_that_an_earlier_request_opened_is_returned() {
    let duplicate = refused("99", "An account with this reference already exists");
    let _host =
        host().answer("POST", OPEN, 400, duplicate).answer("GET", FIND, 200, account()).install();
    assert_eq!(Monnify::open(order()).unwrap().account_number, "7023576853");
}

#[test]
fn a_refusal_names_the_identity() {
    let absent = || refused("99", "Reserved account not found");
    for (message, field) in [
        ("BVN is not valid", Some("identity")),
        ("Invalid NIN", Some("identity")),
        ("Running low", None),
    ] {
        let _host = host()
            .answer("POST", OPEN, 400, refused("99", message))
            .answer("GET", FIND, 404, absent())
            .install();
        let fault = Monnify::open(order()).unwrap_err();
        assert_eq!(fault.field(), field, "{message}");
    }
    let _host = host().install();
    for change in [("passport", "NGN"), ("bvn", "USD")] {
        let identity = Some((change.0.to_owned(), "1".to_owned()));
        let order = AccountOrder { identity, currency: change.1.into(), ..order() };
        assert_eq!(Monnify::open(order).unwrap_err().category, FaultCategory::Invalid);
    }
}

#[test]
fn an_account_whose_existence_is_unknown_is_unavailable() {
    let duplicate = refused("99", "An account with this reference already exists");
    let _host = host()
        .answer("POST", OPEN, 400, duplicate)
        .answer("GET", FIND, 403, refused("99", "Not permitted"))
        .install();
    assert_eq!(Monnify::open(order()).unwrap_err().category, FaultCategory::Unavailable);
}

#[test]
fn a_closed_account_is_closed_again_without_a_failure() {
    let _host =
        host().answer("DELETE", CLOSE, 404, refused("99", "Reserved account not found")).install();
    assert_eq!(Monnify::close("acc-1".into()), Ok(true));
}

#[test]
fn only_a_payment_to_a_reserved_account_is_a_transfer() {
    for (product, expected) in [
        ("RESERVED_ACCOUNT", Ok(true)),
        ("WEB_SDK", Ok(false)),
        ("A_NEW_PRODUCT", Err(FaultCategory::Unavailable)),
        ("", Err(FaultCategory::Unavailable)),
    ] {
        let found = transaction_with(json!({"product": {"type": product, "reference": "acc-1"}}));
        let _host = host().answer("GET", QUERY, 200, success(found)).install();
        let found = Monnify::find_transfer("pay-1".into());
        let kind = found.as_ref().map(Option::is_some).map_err(|fault| fault.category);
        assert_eq!(kind, expected, "{product}");
        if let Ok(Some(transfer)) = found {
            assert!(
                matches!(transfer.account, AccountId::Reference(account) if account == "acc-1")
            );
            assert_eq!(transfer.payment.status, PaymentStatus::Success);
        }
    }
}

#[test]
fn an_unknown_holder_is_not_found() {
    let _host = host().answer("GET", RESOLVE, 404, refused("99", "Account not found")).install();
    let fault = Monnify::resolve("058".into(), "0123456789".into()).unwrap_err();
    assert_eq!(fault.category, FaultCategory::NotFound);
    assert_eq!(Monnify::banks("USD".into()), Ok(vec![]));
}
