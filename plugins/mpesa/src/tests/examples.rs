//! The examples in the manifest suffice for every call.

use serde_json::Value;
use tollhouse_plugin::payments::{KnownSession, PaymentStatus};
use tollhouse_plugin::session_refunds::{self, SessionRefundOrder};
use tollhouse_plugin::sessions::{self, SessionOrder};
use tollhouse_plugin::testing::{FakeHost, example_notification};

use super::{NOTIFICATION_URL, order, session, shillings};
use crate::{MANIFEST, Mpesa};

#[test]
fn every_call_succeeds_with_the_examples() {
    let _host = FakeHost::new().examples(MANIFEST).install();
    let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    let kept = |name: &str| Some(manifest["examples"]["session"][name].clone());
    let known =
        KnownSession { amount: shillings(1000), ..session(kept("state"), kept("notified")) };
    let amount = shillings(1000);
    let push = SessionOrder { amount: amount.clone(), ..order() };
    assert!(<Mpesa as sessions::Guest>::start(push).is_ok());
    let seen = <Mpesa as sessions::Guest>::verify(known.clone()).unwrap();
    assert_eq!((seen.status, &seen.amount), (PaymentStatus::Success, &amount));
    let (headers, body) = example_notification(MANIFEST);
    assert!(<Mpesa as sessions::Guest>::receive(known.clone(), headers, body).is_ok());
    let refund = SessionRefundOrder {
        session: known,
        refund_ref: "example-refund-1".into(),
        amount,
        reason: "Example".into(),
        notification_url: NOTIFICATION_URL.into(),
    };
    assert!(<Mpesa as session_refunds::Guest>::start(refund).is_ok());
}
