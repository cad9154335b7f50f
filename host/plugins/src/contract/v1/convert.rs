//! Conversions between the types of the contract and the host's own.

use std::convert::Infallible;

use serde_json::{Map, Value};

use super::{exported, imported, wit};
use crate::{
    CardOrder, CheckoutOrder, CheckoutSession, DebitOrder, Decline, FaceComparison, Fault,
    FaultCategory, IdentityQuery, Image, Instrument, KnownSession, Notification,
    NotificationRefusal, NotificationSubject, PartialOrder, PaymentStatus, Person, PluginData,
    ProviderPayment, ProviderRefundStatus, RefundOrder, RegisterEntry, TextMessage,
};
use imported::identity;
use tollhouse_platform::{clock::Timestamp, values::money::Money};

const MAX_URL_BYTES: usize = 2048;
const MAX_TEXT_BYTES: usize = 4 << 10;
const MAX_RAW_BYTES: usize = 256 << 10;
/// Maximum size of the data that the host keeps for a plugin.
const MAX_DATA_BYTES: usize = 4 << 10;
/// Maximum length of an instruction to the payer.
const MAX_PROMPT_BYTES: usize = 300;
const MAX_CODE_BYTES: usize = 200;
const MAX_MESSAGE_BYTES: usize = 2 << 10;
const MAX_DETAILS: usize = 20;
/// Maximum size of the details of a register entry as JSON, photos included.
const MAX_ENTRY_BYTES: usize = 1 << 20;
const MAX_CONFIDENCE: u32 = 10_000;
const MAX_NOTIFICATIONS: usize = 100;

/// Removes NUL, which PostgreSQL rejects: an upstream's stray byte must not fail a payment.
fn strip_nul(mut text: String) -> String {
    text.retain(|c| c != '\0');
    text
}

pub(super) fn truncate(text: String, max_bytes: usize) -> String {
    let mut text = strip_nul(text);
    text.truncate(text.floor_char_boundary(max_bytes));
    text
}

pub(super) fn truncate_text(text: String) -> String {
    truncate(text, MAX_TEXT_BYTES)
}

/// Returns an oversized text as empty: truncated JSON is invalid, and half a token is not masked.
fn bounded_raw(text: String) -> String {
    if text.len() > MAX_RAW_BYTES { String::new() } else { strip_nul(text) }
}

pub(super) fn unexpected(message: &str) -> Fault {
    Fault::new(FaultCategory::Unavailable, "unexpected-answer", message)
}

/// Rejects a URL that is too long, because a truncated one leads elsewhere.
pub(super) fn url(text: String) -> Result<String, Fault> {
    if text.len() > MAX_URL_BYTES {
        return Err(unexpected("the URL is longer than 2048 bytes"));
    }
    Ok(strip_nul(text))
}

/// Returns a bounded instruction to the payer.
pub(super) fn instruction(text: String) -> String {
    truncate(text, MAX_PROMPT_BYTES)
}

/// Rejects an amount out of range: the plugin is faulty.
pub(super) fn amount(money: wit::Money) -> Result<Money, Fault> {
    let currency = truncate_text(money.currency).into();
    Money::from_iso_minor(money.minor, currency).ok_or_else(|| {
        Fault::new(FaultCategory::Unavailable, "amount", "the amount is out of range")
    })
}

impl From<Money> for wit::Money {
    fn from(money: Money) -> wit::Money {
        wit::Money { minor: money.to_iso_minor(), currency: money.currency.to_string() }
    }
}

/// Converts enumerations with the same cases.
macro_rules! enumerations {
    ($($from:ty => $to:ty { $($case:ident),+ })+) => {$(
        impl From<$from> for $to {
            fn from(case: $from) -> $to {
                match case { $(<$from>::$case => <$to>::$case),+ }
            }
        }
    )+};
}
enumerations! {
    wit::FaultCategory => FaultCategory {
        Invalid, Refused, NotFound, Unavailable, Misconfigured, Other
    }
    FaultCategory => wit::FaultCategory {
        Invalid, Refused, NotFound, Unavailable, Misconfigured, Other
    }
    exported::declines::DeclineReason => Decline {
        InsufficientFunds, Expired, LostOrStolen, Blocked, Limit, TryLater, Other
    }
    imported::payments::PaymentStatus => PaymentStatus { Pending, Success, Failed, Reversed }
    exported::refunds::RefundStatus => ProviderRefundStatus { Pending, Done, Failed }
    exported::partial_refunds::PartialRefundStatus => ProviderRefundStatus { Pending, Done, Failed }
    exported::session_refunds::SessionRefundStatus => ProviderRefundStatus { Pending, Done, Failed }
    exported::notifications::Subject => NotificationSubject { Payment, Refund, Mandate, Other }
}

/// Converts arguments field by field.
macro_rules! arguments {
    ($($from:ty => $to:ty { $($field:ident),+ })+) => {$(
        impl From<&$from> for $to {
            fn from(argument: &$from) -> $to {
                Self { $($field: argument.$field.clone().into()),+ }
            }
        }
    )+};
}
arguments! {
    CheckoutOrder => exported::checkout::CheckoutOrder {
        service_ref, amount, email, customer_name, narration, channels, success_url, cancel_url,
        metadata, save_instrument
    }
    CardOrder => exported::saved_card::CardOrder {
        token, email, amount, service_ref, narration, metadata
    }
    DebitOrder => exported::direct_debit::DebitOrder {
        mandate, email, amount, service_ref, narration, metadata
    }
    PartialOrder => exported::partial_debits::PartialOrder {
        token, email, amount, at_least, service_ref, narration, metadata
    }
    CheckoutOrder => exported::sessions::SessionOrder {
        service_ref, amount, email, phone, customer_name, narration, channels, success_url,
        cancel_url, notification_url, metadata, save_instrument
    }
    RefundOrder => exported::refunds::RefundOrder {
        service_ref, transaction_id, refund_ref, amount, reason
    }
    TextMessage => exported::sms::TextMessage { to, sender, text, reference }
    Person => identity::Person { first_name, last_name, date_of_birth }
    Image => identity::Image { media_type, bytes }
}

impl From<PluginData> for Vec<u8> {
    fn from(data: PluginData) -> Vec<u8> {
        data.0.into()
    }
}

impl From<&KnownSession> for imported::payments::KnownSession {
    fn from(session: &KnownSession) -> imported::payments::KnownSession {
        let KnownSession { service_ref, transaction_id, amount, started_at, state, notified } =
            session.clone();
        imported::payments::KnownSession {
            service_ref,
            transaction_id,
            amount: amount.into(),
            started_at,
            state: state.map(Into::into),
            notified: notified.map(Into::into),
        }
    }
}

impl From<&IdentityQuery> for identity::Question {
    fn from(query: &IdentityQuery) -> identity::Question {
        identity::Question {
            identity: query.identity.clone(),
            identifier: query.identifier.clone(),
            person: query.person.as_ref().map(Into::into),
        }
    }
}

impl From<wit::Fault> for Fault {
    fn from(fault: wit::Fault) -> Fault {
        let code = |text| truncate(text, MAX_CODE_BYTES);
        let message = |text| truncate(text, MAX_MESSAGE_BYTES);
        let details = fault.details.into_iter().take(MAX_DETAILS);
        Fault {
            category: fault.category.into(),
            code: code(fault.code),
            message: message(fault.message),
            retryable: fault.retryable,
            details: details.map(|(name, value)| (code(name), message(value))).collect(),
        }
    }
}

impl From<Fault> for wit::Fault {
    fn from(fault: Fault) -> wit::Fault {
        let Fault { category, code, message, retryable, details } = fault;
        wit::Fault { category: category.into(), code, message, retryable, details }
    }
}

impl TryFrom<exported::checkout::CheckoutSession> for CheckoutSession {
    type Error = Fault;

    fn try_from(session: exported::checkout::CheckoutSession) -> Result<CheckoutSession, Fault> {
        Ok(CheckoutSession {
            url: url(session.url)?,
            service_ref: truncate_text(session.service_ref),
            raw: bounded_raw(session.raw),
            ..CheckoutSession::default()
        })
    }
}

impl TryFrom<exported::sessions::Session> for CheckoutSession {
    type Error = Fault;

    fn try_from(session: exported::sessions::Session) -> Result<CheckoutSession, Fault> {
        let (page, prompt) = match session.next {
            exported::sessions::NextStep::Page(page) => (url(page)?, None),
            exported::sessions::NextStep::Prompt(text) => (String::new(), Some(instruction(text))),
        };
        Ok(CheckoutSession {
            url: page,
            prompt,
            service_ref: truncate_text(session.service_ref),
            raw: bounded_raw(session.raw),
            state: Some(data(session.state)?),
        })
    }
}

/// Rejects data that is too large: the plugin could not read it if it were truncated.
pub(super) fn data(bytes: Vec<u8>) -> Result<PluginData, Fault> {
    match bytes.len() > MAX_DATA_BYTES {
        true => Err(unexpected("the state is larger than 4 KiB")),
        false => Ok(PluginData(bytes.into())),
    }
}

pub fn received(result: Result<Vec<u8>, wit::Fault>) -> Result<PluginData, Fault> {
    data(result?)
}

impl TryFrom<imported::payments::Payment> for ProviderPayment {
    type Error = Fault;

    fn try_from(payment: imported::payments::Payment) -> Result<ProviderPayment, Fault> {
        let currency = payment.amount.currency.clone();
        let fees = payment.fees_minor.map(|minor| amount(wit::Money { minor, currency }));
        Ok(ProviderPayment {
            status: payment.status.into(),
            service_ref: truncate_text(payment.service_ref),
            transaction_id: truncate_text(payment.transaction_id),
            amount: amount(payment.amount)?,
            requested: payment.requested.map(amount).transpose()?,
            fees: fees.transpose()?.map(|fees| fees.minor),
            channel: truncate_text(payment.channel),
            paid_at: payment.paid_at.as_deref().and_then(Timestamp::parse),
            message: truncate_text(payment.message),
            decline: None,
            instrument: payment.instrument.map(Into::into),
            challenge_url: payment.challenge_url.map(url).transpose()?,
            metadata: payment.metadata.filter(|text| text.len() <= MAX_RAW_BYTES),
            raw: bounded_raw(payment.raw),
        })
    }
}

impl From<imported::payments::Instrument> for Instrument {
    fn from(i: imported::payments::Instrument) -> Instrument {
        Instrument {
            kind: truncate_text(i.kind),
            token: strip_nul(i.token), // not truncated, to equal its copy in `raw`
            reusable: i.reusable,
            signature: truncate_text(i.signature),
            email: truncate_text(i.email),
            bin: truncate_text(i.bin),
            last4: truncate_text(i.last4),
            exp_month: truncate_text(i.exp_month),
            exp_year: truncate_text(i.exp_year),
            brand: truncate_text(i.brand),
            bank: truncate_text(i.bank),
            country: truncate_text(i.country),
            holder: truncate_text(i.holder),
        }
    }
}

impl From<exported::notifications::Notification> for Notification {
    fn from(notification: exported::notifications::Notification) -> Notification {
        Notification {
            subject: notification.subject.into(),
            event: truncate_text(notification.event),
            service_ref: truncate_text(notification.service_ref),
            transaction_id: truncate_text(notification.transaction_id),
        }
    }
}

impl From<exported::notifications::Refusal> for NotificationRefusal {
    fn from(refusal: exported::notifications::Refusal) -> NotificationRefusal {
        match refusal {
            exported::notifications::Refusal::Unauthentic => NotificationRefusal::Unauthentic,
            exported::notifications::Refusal::Malformed(why) => {
                NotificationRefusal::Malformed(truncate(why, MAX_MESSAGE_BYTES))
            }
        }
    }
}

impl From<exported::identity_face::Comparison> for FaceComparison {
    fn from(comparison: exported::identity_face::Comparison) -> FaceComparison {
        FaceComparison {
            matches: comparison.matches,
            confidence: comparison.confidence.min(MAX_CONFIDENCE),
            message: truncate_text(comparison.message),
        }
    }
}

impl TryFrom<exported::identity_face::Compared> for (RegisterEntry, FaceComparison) {
    type Error = Fault;

    fn try_from(compared: exported::identity_face::Compared) -> Result<Self, Fault> {
        Ok((compared.entry.try_into()?, compared.comparison.into()))
    }
}

impl TryFrom<exported::identity_document::Reading> for (String, RegisterEntry) {
    type Error = Fault;

    fn try_from(reading: exported::identity_document::Reading) -> Result<Self, Fault> {
        Ok((truncate_text(reading.identifier), reading.entry.try_into()?))
    }
}

impl TryFrom<identity::Entry> for RegisterEntry {
    type Error = Fault;

    fn try_from(entry: identity::Entry) -> Result<RegisterEntry, Fault> {
        if entry.details.len() > MAX_ENTRY_BYTES {
            return Err(unexpected("the details are larger than 1 MiB"));
        }
        // Invalid details contain personal data and must not be quoted.
        let details: Map<String, Value> = serde_json::from_str(&entry.details)
            .map_err(|_| unexpected("the details are not a JSON object"))?;
        Ok(RegisterEntry {
            details,
            email: entry.email.map(truncate_text),
            phone: entry.phone.map(truncate_text),
        })
    }
}

impl From<Infallible> for Fault {
    fn from(never: Infallible) -> Fault {
        match never {}
    }
}

/// Converts the result of a function.
pub fn converted<W, T: TryFrom<W, Error: Into<Fault>>>(
    result: Result<W, wit::Fault>,
) -> Result<T, Fault> {
    T::try_from(result?).map_err(Into::into)
}

pub fn message_id(result: Result<String, wit::Fault>) -> Result<String, Fault> {
    Ok(truncate_text(result?))
}

pub fn notifications(
    result: Result<Vec<exported::notifications::Notification>, exported::notifications::Refusal>,
) -> Result<Result<Vec<Notification>, NotificationRefusal>, Fault> {
    Ok(match result {
        Ok(parsed) if parsed.len() > MAX_NOTIFICATIONS => {
            let why = format!("it refers to {} records; the maximum is 100", parsed.len());
            Err(NotificationRefusal::Malformed(why))
        }
        Ok(parsed) => Ok(parsed.into_iter().map(Into::into).collect()),
        Err(refusal) => Err(refusal.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_results_are_truncated_emptied_or_rejected() {
        let session = |url: usize, raw: usize| {
            CheckoutSession::try_from(exported::checkout::CheckoutSession {
                url: "u".repeat(url),
                service_ref: "\0".to_owned() + &"é".repeat(MAX_TEXT_BYTES),
                raw: "r".repeat(raw),
            })
        };
        let whole = session(MAX_URL_BYTES, MAX_RAW_BYTES).unwrap();
        assert_eq!((whole.url.len(), whole.raw.len()), (MAX_URL_BYTES, MAX_RAW_BYTES));
        assert_eq!(whole.service_ref, "é".repeat(MAX_TEXT_BYTES / 2));
        assert_eq!(session(1, MAX_RAW_BYTES + 1).unwrap().raw, "");
        let fault = session(MAX_URL_BYTES + 1, 1).unwrap_err();
        assert_eq!(
            (fault.category, &*fault.code),
            (FaultCategory::Unavailable, "unexpected-answer")
        );
    }

    #[test]
    fn state_beyond_its_limit_is_rejected() {
        assert_eq!(data(vec![0; MAX_DATA_BYTES]).unwrap().0.len(), MAX_DATA_BYTES);
        let fault = data(vec![0; MAX_DATA_BYTES + 1]).unwrap_err();
        assert_eq!(fault.message, "the state is larger than 4 KiB");
    }

    #[test]
    fn faults_and_notifications_are_bounded() {
        let long = || "x".repeat(10_000);
        let fault = Fault::from(wit::Fault {
            category: wit::FaultCategory::Other,
            code: long(),
            message: long(),
            retryable: false,
            details: vec![(long(), long()); 100],
        });
        assert_eq!((fault.code.len(), fault.message.len()), (MAX_CODE_BYTES, MAX_MESSAGE_BYTES));
        assert_eq!(fault.details.len(), MAX_DETAILS);
        let notification = exported::notifications::Notification {
            subject: exported::notifications::Subject::Payment,
            event: long(),
            service_ref: long(),
            transaction_id: long(),
        };
        let taken =
            notifications(Ok(vec![notification.clone(); MAX_NOTIFICATIONS])).unwrap().unwrap();
        assert_eq!((taken.len(), taken[0].event.len()), (MAX_NOTIFICATIONS, MAX_TEXT_BYTES));
        let too_many = notifications(Ok(vec![notification; MAX_NOTIFICATIONS + 1])).unwrap();
        assert!(matches!(too_many, Err(NotificationRefusal::Malformed(_))));
    }

    #[test]
    fn details_must_be_a_json_object_of_at_most_1_mib() {
        let entry = |details: String| {
            RegisterEntry::try_from(identity::Entry { details, email: None, phone: None })
                .map(|entry| entry.details)
        };
        assert_eq!(entry(r#"{"n":1.50}"#.to_owned()).unwrap()["n"].to_string(), "1.50");
        for bad in [
            "[]".to_owned(),
            "{".to_owned(),
            format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ENTRY_BYTES)),
        ] {
            assert_eq!(entry(bad).unwrap_err().code, "unexpected-answer");
        }
    }
}
