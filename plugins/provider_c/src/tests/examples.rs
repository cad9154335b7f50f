//! The examples in the manifest suffice for every call.

use tollhouse_plugin::account_enquiry;
use tollhouse_plugin::checkout::{self, CheckoutOrder};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::refunds::{self, RefundOrder};
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::testing::{FakeHost, example_notification};
use tollhouse_plugin::virtual_accounts;
use tollhouse_plugin::{notifications, verification};

use super::naira;
use crate::{MANIFEST, Monnify};

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let (service_ref, email) = ("example-1".to_owned(), "ada@example.com".to_owned());
    let (amount, narration) = (naira(500_000), "Example".to_owned());
    let metadata = r#"{"order":"1"}"#.to_owned();
    let card = CardOrder {
        token: "example-token".into(),
        email: email.clone(),
        amount: amount.clone(),
        service_ref: service_ref.clone(),
        narration: narration.clone(),
        metadata: metadata.clone(),
    };
    let debit = DebitOrder {
        mandate: "example-token".into(),
        email: email.clone(),
        amount: amount.clone(),
        service_ref: service_ref.clone(),
        narration: narration.clone(),
        metadata: metadata.clone(),
    };
    let refund = RefundOrder {
        service_ref: service_ref.clone(),
        transaction_id: "1001".into(),
        refund_ref: "example-refund-1".into(),
        amount: amount.clone(),
        reason: "Example".into(),
    };
    let account = super::virtual_accounts::order();
    let page = CheckoutOrder {
        service_ref: service_ref.clone(),
        amount: amount.clone(),
        email,
        customer_name: Some("Ada Obi".into()),
        narration,
        channels: vec![],
        success_url: "https://shop.example/done".into(),
        cancel_url: None,
        metadata,
        save_instrument: false,
    };
    assert!(<Monnify as checkout::Guest>::start(page).is_ok());
    let verified = <Monnify as verification::Guest>::verify(service_ref.clone()).unwrap();
    assert_eq!(verified.requested, Some(amount.clone()));
    assert_eq!(<Monnify as saved_card::Guest>::charge(card).unwrap().amount, amount);
    assert_eq!(<Monnify as direct_debit::Guest>::debit(debit).unwrap().amount, amount);
    assert_eq!(<Monnify as refunds::Guest>::start(refund).unwrap().provider_id, "example-refund-1");
    assert_eq!(<Monnify as refunds::Guest>::check("2001".into()).unwrap().provider_id, "2001");
    let opened = <Monnify as virtual_accounts::Guest>::open(account).unwrap();
    assert_eq!(opened.account_number, "7023576853");
    assert_eq!(<Monnify as virtual_accounts::Guest>::close("3001".into()), Ok(true));
    let transfer = <Monnify as virtual_accounts::Guest>::find_transfer(service_ref).unwrap();
    assert_eq!(transfer.unwrap().payment.amount, amount);
    assert_eq!(<Monnify as account_enquiry::Guest>::banks("NGN".into()).unwrap().len(), 2);
    let holder = <Monnify as account_enquiry::Guest>::resolve("058".into(), "0123456789".into());
    assert_eq!(holder.unwrap(), "Ada Obi");
}

#[test]
fn the_example_webhook_is_authentic() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let (headers, body) = example_notification(MANIFEST);
    let found = <Monnify as notifications::Guest>::parse(headers, body).unwrap();
    assert_eq!((found.len(), found[0].service_ref.as_str()), (1, "example-1"));
}
