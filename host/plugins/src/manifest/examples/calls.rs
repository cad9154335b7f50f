//! The arguments of example calls.

use bytes::Bytes;
use serde_json::Value;

use super::{
    EMAIL, ExampleCase, ExampleRefund, ExampleSession, Examples, SECRET, SERVICE_REF, to_data,
};
use crate::prelude::*;
use crate::{
    AccountOrder, CardOrder, CheckoutOrder, DebitOrder, DebitedAccount, DisputeAnswer,
    DisputeFilter, DisputeKey, Evidence, IdentityQuery, IdentityType, Image, KnownMandate,
    KnownRefund, KnownSession, MandateOrder, MandateStatus, PartialOrder, PartialRefundOrder,
    Person, RefundOrder, SessionRefundOrder, TextMessage, TransactionFilter,
};
use tollhouse_platform::values::{
    listing::Period,
    money::{Currency, Minor, Money},
};

const TRANSACTION_ID: &str = "1001";
const REFUND_ID: &str = "2001";
const EARLIER_REFUND_ID: &str = "2000";
const REFUND_REF: &str = "example-refund-1";
const AMOUNT: Minor = Minor(500_000);
const ACCOUNT_ID: &str = "3001";
const DISPUTE_ID: &str = "4001";
const BANK_CODE: &str = "058";
const ACCOUNT_NUMBER: &str = "0123456789";
const NAME: &str = "Ada Obi";
const NOTIFICATION_URL: &str = "https://tollhouse.example/api/v1/notifications/example";
const STARTED_AT: &str = "2026-01-01T09:00:00Z";
const ENDS_AT: &str = "2028-01-01T09:00:00Z";
/// Value of every setting without a default.
const SETTING: &str = "example";
const URL_SETTING: &str = "https://provider.example";

impl Credentials {
    /// Returns example values for all secrets, and for settings without a default.
    pub fn example(manifest: &Manifest) -> Credentials {
        let secrets = manifest.secrets.names().map(|name| (name.clone(), SECRET.to_owned()));
        let unset = manifest.settings.iter().filter(|(_, setting)| setting.default.is_none());
        let settings = unset.map(|(name, setting)| {
            let value = if setting.kind == "url" { URL_SETTING } else { SETTING };
            (name.clone(), value.to_owned())
        });
        let own = manifest.examples.credentials.clone();
        let values: HashMap<String, String> = secrets.chain(settings).chain(own).collect();
        Credentials { id: "example".to_owned(), values }
    }
}

impl CheckoutOrder {
    /// Returns an order that obeys the manifest.
    pub fn example(manifest: &Manifest) -> CheckoutOrder {
        CheckoutOrder {
            service_ref: reference(manifest),
            amount: amount(manifest),
            email: EMAIL.to_owned(),
            phone: Some(phone(manifest)),
            customer_name: Some(NAME.to_owned()),
            narration: "Example".to_owned(),
            channels: Vec::new(),
            success_url: "https://shop.example/done".to_owned(),
            cancel_url: None,
            notification_url: NOTIFICATION_URL.to_owned(),
            metadata: metadata(manifest),
            save_instrument: false,
        }
    }
}

impl Call {
    /// Returns one call of each function that the plugin exports.
    pub fn examples(plugin: &PluginHandle) -> Vec<Call> {
        let calls = Call::all_examples(plugin.manifest());
        calls.filter(|call| plugin.exports(call.interface())).collect()
    }

    /// Returns the call of a case. `None`: the plugin has no such function.
    #[must_use]
    pub fn of_case(plugin: &PluginHandle, case: &ExampleCase) -> Option<Call> {
        let mut manifest = plugin.manifest().clone();
        manifest.examples = manifest.examples.with_case(case);
        let mut calls = Call::all_examples(&manifest);
        calls.find(|call| call.function() == case.function && plugin.exports(call.interface()))
    }

    /// Returns one call of each function; for registers, of those with a fitting identity type.
    pub(crate) fn all_examples(manifest: &Manifest) -> impl Iterator<Item = Call> {
        let Examples {
            notification, refund: ExampleRefund { notification: of_refund, .. }, ..
        } = &manifest.examples;
        let calls = [
            Call::StartCheckout(CheckoutOrder::example(manifest)),
            Call::Verify(reference(manifest)),
            Call::StartSession(CheckoutOrder::example(manifest)),
            Call::VerifySession(known_session(manifest)),
            Call::ReceiveForSession(known_session(manifest), notification.to_webhook()),
            Call::StartSessionRefund(session_refund_order(manifest)),
            Call::CheckSessionRefund(known_refund(manifest)),
            Call::ReceiveForRefund(known_refund(manifest), of_refund.to_webhook()),
            Call::ChargeCard(card_order(manifest)),
            Call::Deauthorize("example-token".to_owned()),
            Call::Debit(debit_order(manifest)),
            Call::ChargeCardInPart(partial_order(manifest)),
            Call::DebitInPart(partial_order(manifest)),
            Call::DeclineReason("Insufficient Funds".to_owned(), "{}".to_owned()),
            Call::StartRefund(refund_order(manifest)),
            Call::CheckRefund(REFUND_ID.to_owned()),
            Call::StartPartialRefund(partial_refund_order(manifest)),
            Call::OpenAccount(account_order(manifest)),
            Call::CloseAccount(ACCOUNT_ID.to_owned()),
            Call::FindTransfer(reference(manifest)),
            Call::ListBanks(currency(manifest).to_string()),
            Call::ResolveAccount(BANK_CODE.to_owned(), ACCOUNT_NUMBER.to_owned()),
            Call::ListDisputes(of_payment(manifest), None),
            Call::FetchDispute(dispute_key(manifest)),
            Call::AnswerDispute(dispute_answer(manifest)),
            Call::ListTransactions(TransactionFilter::Period(period()), None),
            Call::ListSettlements(period(), None),
            Call::BeginMandate(mandate_order(manifest)),
            Call::QueryMandate(known_mandate(manifest)),
            Call::CancelMandate(known_mandate(manifest)),
            Call::ParseNotification(notification.to_webhook()),
            Call::SendText(text_message(manifest)),
        ];
        calls.into_iter().chain(lookups(manifest))
    }
}

fn of_payment(manifest: &Manifest) -> DisputeFilter {
    DisputeFilter::Payment(reference(manifest), TRANSACTION_ID.to_owned())
}

fn mandate_order(manifest: &Manifest) -> MandateOrder {
    let time = |text| Timestamp::parse(text).expect("the text is RFC 3339");
    let account_number = ACCOUNT_NUMBER.to_owned();
    MandateOrder {
        mandate_ref: reference(manifest),
        currency: currency(manifest).to_string(),
        email: EMAIL.to_owned(),
        name: NAME.to_owned(),
        phone: Some(phone(manifest)),
        address: Some("1 Example Street".to_owned()),
        account: Some(DebitedAccount { bank_code: BANK_CODE.to_owned(), account_number }),
        max_amount: Some(amount(manifest)),
        starts_at: time(STARTED_AT),
        ends_at: Some(time(ENDS_AT)),
        narration: "Example".to_owned(),
        return_url: "https://shop.example/done".to_owned(),
        notification_url: NOTIFICATION_URL.to_owned(),
    }
}

/// A mandate that the payer has authorized.
fn known_mandate(manifest: &Manifest) -> KnownMandate {
    let ExampleSession { state, .. } = &manifest.examples.session;
    KnownMandate {
        service_ref: reference(manifest),
        status: MandateStatus::Approved,
        state: to_data(state.as_ref()),
    }
}

fn dispute_key(manifest: &Manifest) -> DisputeKey {
    DisputeKey {
        id: DISPUTE_ID.to_owned(),
        service_ref: reference(manifest),
        transaction_id: TRANSACTION_ID.to_owned(),
    }
}

fn dispute_answer(manifest: &Manifest) -> DisputeAnswer {
    DisputeAnswer {
        key: dispute_key(manifest),
        amount: amount(manifest),
        evidence: Some(Evidence {
            customer_name: NAME.to_owned(),
            customer_email: EMAIL.to_owned(),
            customer_phone: Some(phone(manifest)),
            service: "Example".to_owned(),
            document_url: None,
        }),
        message: "Example".to_owned(),
    }
}

/// The day of `STARTED_AT`.
fn period() -> Period {
    let time = |text| Timestamp::parse(text).expect("the text is RFC 3339");
    Period { from: time("2026-01-01T00:00:00Z"), before: time("2026-01-02T00:00:00Z") }
}

fn reference(manifest: &Manifest) -> String {
    let own = manifest.examples.reference.clone();
    own.unwrap_or_else(|| manifest.reference.conform(SERVICE_REF))
}

fn currency(manifest: &Manifest) -> Currency {
    manifest.currencies.first().map_or("NGN", String::as_str).into()
}

fn amount(manifest: &Manifest) -> Money {
    let currency = currency(manifest);
    let own = manifest.examples.amount;
    own.and_then(|minor| Money::from_iso_minor(minor, currency.clone()))
        .unwrap_or(Money { minor: AMOUNT, currency })
}

fn phone(manifest: &Manifest) -> String {
    manifest.examples.phone().to_owned()
}

fn metadata(manifest: &Manifest) -> String {
    let own = manifest.examples.metadata.clone();
    own.map_or_else(|| r#"{"order":"1"}"#.to_owned(), |own| Value::Object(own).to_string())
}

fn known_session(manifest: &Manifest) -> KnownSession {
    let ExampleSession { state, notified, transaction_id } = &manifest.examples.session;
    KnownSession {
        service_ref: reference(manifest),
        transaction_id: transaction_id.clone().unwrap_or_else(|| TRANSACTION_ID.to_owned()),
        amount: amount(manifest),
        started_at: STARTED_AT.to_owned(),
        state: to_data(state.as_ref()),
        notified: to_data(notified.as_ref()),
    }
}

fn session_refund_order(manifest: &Manifest) -> SessionRefundOrder {
    let RefundOrder { refund_ref, amount, reason, .. } = refund_order(manifest);
    let (session, notification_url) = (known_session(manifest), NOTIFICATION_URL.to_owned());
    SessionRefundOrder { session, refund_ref, amount, reason, notification_url }
}

fn known_refund(manifest: &Manifest) -> KnownRefund {
    let SessionRefundOrder { session, refund_ref, amount, .. } = session_refund_order(manifest);
    let ExampleRefund { state, notified, .. } = &manifest.examples.refund;
    KnownRefund {
        session,
        refund_ref,
        amount,
        provider_id: REFUND_ID.to_owned(),
        state: to_data(state.as_ref()),
        notified: to_data(notified.as_ref()),
    }
}

fn account_order(manifest: &Manifest) -> AccountOrder {
    AccountOrder {
        account_ref: reference(manifest),
        currency: currency(manifest).to_string(),
        email: EMAIL.to_owned(),
        name: NAME.to_owned(),
        phone: Some(phone(manifest)),
        identity: Some(("bvn".to_owned(), "22222222222".to_owned())),
    }
}

fn card_order(manifest: &Manifest) -> CardOrder {
    CardOrder {
        token: "example-token".to_owned(),
        email: EMAIL.to_owned(),
        amount: amount(manifest),
        service_ref: reference(manifest),
        narration: "Example".to_owned(),
        metadata: metadata(manifest),
    }
}

fn debit_order(manifest: &Manifest) -> DebitOrder {
    let CardOrder { token, email, amount, service_ref, narration, metadata } = card_order(manifest);
    DebitOrder { mandate: token, email, amount, service_ref, narration, metadata }
}

/// A charge of at least half of the amount.
fn partial_order(manifest: &Manifest) -> PartialOrder {
    let order = card_order(manifest);
    let half = Minor(order.amount.minor.0 / 2);
    let at_least = Money { minor: half, currency: order.amount.currency.clone() };
    PartialOrder::of_card(order, at_least)
}

/// A partial refund after an earlier one.
fn partial_refund_order(manifest: &Manifest) -> PartialRefundOrder {
    let earlier = vec![EARLIER_REFUND_ID.to_owned()];
    PartialRefundOrder { order: refund_order(manifest), earlier }
}

fn refund_order(manifest: &Manifest) -> RefundOrder {
    RefundOrder {
        service_ref: reference(manifest),
        transaction_id: TRANSACTION_ID.to_owned(),
        refund_ref: manifest.reference.conform(REFUND_REF),
        amount: amount(manifest),
        reason: "Example".to_owned(),
    }
}

fn text_message(manifest: &Manifest) -> TextMessage {
    TextMessage {
        to: phone(manifest),
        sender: String::new(),
        text: "Example".to_owned(),
        reference: reference(manifest),
    }
}

/// Returns one call per lookup method: by number, face and document.
fn lookups(manifest: &Manifest) -> Vec<Call> {
    let types = manifest.country.iter().flat_map(|country| &country.identities);
    let first = |fits: fn(&IdentityType) -> bool| types.clone().find(|identity| fits(identity));
    let question = |identity: &IdentityType| IdentityQuery {
        identity: identity.name.clone(),
        identifier: identity.example.clone(),
        person: Some(Person {
            first_name: "Ada".to_owned(),
            last_name: "Obi".to_owned(),
            date_of_birth: Some("1990-12-10".to_owned()),
        }),
    };
    let image =
        || Image { media_type: "image/jpeg", bytes: Bytes::from_static(&[0xff, 0xd8, 0xff]) };
    let lookup = first(|_| true).map(|identity| Call::LookUp(question(identity)));
    let face =
        first(|identity| identity.face).map(|identity| Call::Compare(question(identity), image()));
    let document = first(|identity| identity.document);
    let document = document.map(|identity| Call::Read(identity.name.clone(), image()));
    [lookup, face, document].into_iter().flatten().collect()
}
