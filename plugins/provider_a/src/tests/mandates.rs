use serde_json::{Value, json};
use tollhouse_plugin::mandates::{
    Consent, DebitedAccount, Guest as _, KnownMandate, MandateOrder, MandateStatus,
};
use tollhouse_plugin::types::FaultCategory;

use super::{host, success};
use crate::Paystack;

const BEGIN: &str = "/customer/authorization/initialize";
const QUERY: &str = "/customer/authorization/verify/ref-1";
const CANCEL: &str = "/customer/authorization/deactivate";

fn order() -> MandateOrder {
    MandateOrder {
        mandate_ref: "mnd-1".into(),
        currency: "NGN".into(),
        email: "ada@example.com".into(),
        name: "Ada Obi".into(),
        phone: None,
        address: None,
        account: None,
        max_amount: None,
        starts_at: "2026-11-21T09:00:00Z".into(),
        ends_at: None,
        narration: "Loan repayments".into(),
        return_url: "https://shop.test/done".into(),
        notification_url: "https://host.test/n".into(),
    }
}

fn known(status: MandateStatus, has_state: bool) -> KnownMandate {
    KnownMandate { service_ref: "ref-1".into(), status, state: has_state.then(Vec::new) }
}

fn authorization(active: Value) -> Value {
    success(json!({
        "authorization_code": "AUTH_1", "channel": "direct_debit", "bank": "TEST BANK",
        "active": active, "customer": {"code": "CUS_1", "email": "ada@example.com"},
    }))
}

fn missing() -> Value {
    json!({
        "status": false,
        "message": "Authorization does not exist or does not belong to integration",
        "metadata": {"nextStep": "Try again later"}, "type": "api_error", "code": "unknown",
    })
}

#[test]
fn the_payer_is_sent_to_paystacks_page() {
    let page =
        json!({"redirect_url": "https://p.test/c", "access_code": "c", "reference": "ref-1"});
    let host = host().answer("POST", BEGIN, 200, success(page)).install();
    let account = DebitedAccount { bank_code: "058".into(), account_number: "0123456789".into() };
    let begun = Paystack::begin(MandateOrder { account: Some(account), ..order() }).unwrap();
    assert_eq!(begun.consent, Consent::Page("https://p.test/c".into()));
    assert_eq!(begun.service_ref, "ref-1");
    let expected = json!({
        "email": "ada@example.com", "channel": "direct_debit",
        "callback_url": "https://shop.test/done",
        "account": {"number": "0123456789", "bank_code": "058"},
    });
    assert_eq!(host.requests()[0].json(), expected);
}

#[test]
fn only_naira_accounts_are_debited() {
    let _host = host().install();
    let fault = Paystack::begin(MandateOrder { currency: "USD".into(), ..order() }).unwrap_err();
    assert_eq!(fault.field(), Some("currency"));
}

#[test]
fn an_inactive_mandate_is_approved_unless_it_was_ready() {
    use MandateStatus::{Approved, Cancelled, Created, Ready};
    for (before, active, status) in [
        (Created, json!(false), Ok(Approved)),
        (Approved, json!(false), Ok(Approved)),
        (Ready, json!(false), Ok(Cancelled)),
        (Created, json!(true), Ok(Ready)),
        (Ready, json!(true), Ok(Ready)),
        (Approved, json!("maybe"), Err(FaultCategory::Unavailable)),
    ] {
        let _host = host().answer("GET", QUERY, 200, authorization(active)).install();
        let found = Paystack::query(known(before, true));
        let seen = found.as_ref().map(|mandate| mandate.status).map_err(|fault| fault.category);
        assert_eq!(seen, status);
        if let Ok(mandate) = found {
            assert_eq!((&*mandate.token, &*mandate.bank), ("AUTH_1", "TEST BANK"));
        }
    }
}

#[test]
fn a_mandate_without_an_authorization_is_created_or_unknown() {
    let _host = host().answer("GET", QUERY, 400, missing()).install();
    let waiting = Paystack::query(known(MandateStatus::Created, true)).unwrap();
    assert_eq!((waiting.status, &*waiting.token), (MandateStatus::Created, ""));
    let fault = Paystack::query(known(MandateStatus::Created, false)).unwrap_err();
    assert_eq!(fault.category, FaultCategory::NotFound);
}

#[test]
fn an_authorized_mandate_is_deactivated() {
    let host = host()
        .answer("GET", QUERY, 200, authorization(json!(false)))
        .answer("POST", CANCEL, 200, json!({"status": true, "message": "ok"}))
        .install();
    assert_eq!(Paystack::cancel(known(MandateStatus::Approved, true)), Ok(true));
    assert_eq!(host.requests()[1].json(), json!({"authorization_code": "AUTH_1"}));
}

#[test]
fn a_mandate_without_an_authorization_is_cancelled_later() {
    let _host = host().answer("GET", QUERY, 400, missing()).install();
    assert_eq!(Paystack::cancel(known(MandateStatus::Cancelled, true)), Ok(false));
    assert_eq!(Paystack::cancel(known(MandateStatus::Cancelled, false)), Ok(true));
}
