//! Conversions between the types of the contract and the host's own.

use super::{exported, imported, wit};
use crate::{
    CardOrder, CheckoutOrder, CheckoutSession, DebitOrder, Fault, FaultCategory, Instrument,
    Notification, NotificationRefusal, NotificationSubject, PaymentStatus, ProviderPayment,
    ProviderRefund, ProviderRefundStatus, RefundOrder, TextMessage,
};
use tollhouse_platform::{
    clock::Timestamp,
    values::money::{MAX_MINOR, Minor, Money},
};

const MAX_URL_BYTES: usize = 2048;
const MAX_TEXT_BYTES: usize = 4 << 10;
const MAX_RAW_BYTES: usize = 256 << 10;
const MAX_CODE_BYTES: usize = 200;
const MAX_MESSAGE_BYTES: usize = 2 << 10;
const MAX_DETAILS: usize = 20;
const MAX_NOTIFICATIONS: usize = 100;

/// Removes NUL, which PostgreSQL rejects: an upstream's stray byte must not fail a payment.
fn strip_nul(mut text: String) -> String {
    text.retain(|c| c != '\0');
    text
}

fn truncate(text: String, max_bytes: usize) -> String {
    let mut text = strip_nul(text);
    text.truncate(text.floor_char_boundary(max_bytes));
    text
}

pub fn truncate_text(text: String) -> String {
    truncate(text, MAX_TEXT_BYTES)
}

/// Returns an oversized text as empty: truncated JSON is invalid, and half a token is not masked.
fn bounded_raw(text: String) -> String {
    if text.len() > MAX_RAW_BYTES { String::new() } else { strip_nul(text) }
}

/// Rejects a URL that is too long, because a truncated one leads elsewhere.
fn url(text: String) -> Result<String, Fault> {
    if text.len() > MAX_URL_BYTES {
        let message = "the URL is longer than 2048 bytes";
        return Err(Fault::new(FaultCategory::Unavailable, "unexpected-answer", message));
    }
    Ok(strip_nul(text))
}

/// Rejects an amount out of range: the plugin is faulty.
fn amount(money: wit::Money) -> Result<Money, Fault> {
    Ok(Money { minor: minor(money.minor)?, currency: truncate_text(money.currency).into() })
}

fn minor(minor: u64) -> Result<Minor, Fault> {
    match i64::try_from(minor) {
        Ok(minor) if minor <= MAX_MINOR => Ok(Minor(minor)),
        _ => Err(Fault::new(FaultCategory::Unavailable, "amount", "the amount is out of range")),
    }
}

impl From<&Money> for wit::Money {
    fn from(money: &Money) -> wit::Money {
        let minor = u64::try_from(money.minor.0).unwrap_or(0);
        wit::Money { minor, currency: money.currency.to_string() }
    }
}

impl From<wit::Fault> for Fault {
    fn from(fault: wit::Fault) -> Fault {
        let category = match fault.category {
            wit::FaultCategory::Invalid => FaultCategory::Invalid,
            wit::FaultCategory::Refused => FaultCategory::Refused,
            wit::FaultCategory::NotFound => FaultCategory::NotFound,
            wit::FaultCategory::Unavailable => FaultCategory::Unavailable,
            wit::FaultCategory::Misconfigured => FaultCategory::Misconfigured,
            wit::FaultCategory::Other => FaultCategory::Other,
        };
        let wit::Fault { code, message, retryable, details, .. } = fault;
        let details = details.into_iter().take(MAX_DETAILS);
        let details = details
            .map(|(name, value)| {
                (truncate(name, MAX_CODE_BYTES), truncate(value, MAX_MESSAGE_BYTES))
            })
            .collect();
        let (code, message) =
            (truncate(code, MAX_CODE_BYTES), truncate(message, MAX_MESSAGE_BYTES));
        Fault { category, code, message, retryable, details }
    }
}

impl From<Fault> for wit::Fault {
    fn from(fault: Fault) -> wit::Fault {
        let category = match fault.category {
            FaultCategory::Invalid => wit::FaultCategory::Invalid,
            FaultCategory::Refused => wit::FaultCategory::Refused,
            FaultCategory::NotFound => wit::FaultCategory::NotFound,
            FaultCategory::Unavailable => wit::FaultCategory::Unavailable,
            FaultCategory::Misconfigured => wit::FaultCategory::Misconfigured,
            FaultCategory::Other => wit::FaultCategory::Other,
        };
        let Fault { code, message, retryable, details, .. } = fault;
        wit::Fault { category, code, message, retryable, details }
    }
}

impl From<&CheckoutOrder> for exported::checkout::CheckoutOrder {
    fn from(order: &CheckoutOrder) -> Self {
        exported::checkout::CheckoutOrder {
            service_ref: order.service_ref.clone(),
            amount: (&order.amount).into(),
            email: order.email.clone(),
            customer_name: order.customer_name.clone(),
            narration: order.narration.clone(),
            channels: order.channels.clone(),
            success_url: order.success_url.clone(),
            cancel_url: order.cancel_url.clone(),
            metadata: order.metadata.clone(),
            save_instrument: order.save_instrument,
        }
    }
}

impl TryFrom<exported::checkout::CheckoutSession> for CheckoutSession {
    type Error = Fault;

    fn try_from(session: exported::checkout::CheckoutSession) -> Result<CheckoutSession, Fault> {
        Ok(CheckoutSession {
            url: url(session.url)?,
            service_ref: truncate_text(session.service_ref),
            raw: bounded_raw(session.raw),
        })
    }
}

impl From<&CardOrder> for exported::saved_card::CardOrder {
    fn from(order: &CardOrder) -> Self {
        exported::saved_card::CardOrder {
            token: order.token.clone(),
            email: order.email.clone(),
            amount: (&order.amount).into(),
            service_ref: order.service_ref.clone(),
            narration: order.narration.clone(),
            metadata: order.metadata.clone(),
        }
    }
}

impl From<&DebitOrder> for exported::direct_debit::DebitOrder {
    fn from(order: &DebitOrder) -> Self {
        exported::direct_debit::DebitOrder {
            mandate: order.mandate.clone(),
            email: order.email.clone(),
            amount: (&order.amount).into(),
            service_ref: order.service_ref.clone(),
            narration: order.narration.clone(),
            metadata: order.metadata.clone(),
        }
    }
}

impl From<&RefundOrder> for exported::refunds::RefundOrder {
    fn from(order: &RefundOrder) -> Self {
        exported::refunds::RefundOrder {
            service_ref: order.service_ref.clone(),
            transaction_id: order.transaction_id.clone(),
            refund_ref: order.refund_ref.clone(),
            amount: (&order.amount).into(),
            reason: order.reason.clone(),
        }
    }
}

impl From<exported::refunds::Refund> for ProviderRefund {
    fn from(refund: exported::refunds::Refund) -> ProviderRefund {
        let status = match refund.status {
            exported::refunds::RefundStatus::Pending => ProviderRefundStatus::Pending,
            exported::refunds::RefundStatus::Done => ProviderRefundStatus::Done,
            exported::refunds::RefundStatus::Failed => ProviderRefundStatus::Failed,
        };
        let (provider_id, message) =
            (truncate_text(refund.provider_id), truncate_text(refund.message));
        ProviderRefund { status, provider_id, message }
    }
}

impl TryFrom<imported::payments::Payment> for ProviderPayment {
    type Error = Fault;

    fn try_from(payment: imported::payments::Payment) -> Result<ProviderPayment, Fault> {
        let status = match payment.status {
            imported::payments::PaymentStatus::Pending => PaymentStatus::Pending,
            imported::payments::PaymentStatus::Success => PaymentStatus::Success,
            imported::payments::PaymentStatus::Failed => PaymentStatus::Failed,
            imported::payments::PaymentStatus::Reversed => PaymentStatus::Reversed,
        };
        Ok(ProviderPayment {
            status,
            service_ref: truncate_text(payment.service_ref),
            transaction_id: truncate_text(payment.transaction_id),
            amount: amount(payment.amount)?,
            requested: payment.requested.map(amount).transpose()?,
            fees: payment.fees_minor.map(minor).transpose()?,
            channel: truncate_text(payment.channel),
            paid_at: payment.paid_at.as_deref().and_then(Timestamp::parse),
            message: truncate_text(payment.message),
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
    fn from(told: exported::notifications::Notification) -> Notification {
        let subject = match told.subject {
            exported::notifications::Subject::Payment => NotificationSubject::Payment,
            exported::notifications::Subject::Refund => NotificationSubject::Refund,
            exported::notifications::Subject::Mandate => NotificationSubject::Mandate,
            exported::notifications::Subject::Other => NotificationSubject::Other,
        };
        let exported::notifications::Notification { event, service_ref, transaction_id, .. } = told;
        Notification {
            subject,
            event: truncate_text(event),
            service_ref: truncate_text(service_ref),
            transaction_id: truncate_text(transaction_id),
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

impl From<&TextMessage> for exported::sms::TextMessage {
    fn from(message: &TextMessage) -> Self {
        exported::sms::TextMessage {
            to: message.to.clone(),
            sender: message.sender.clone(),
            text: message.text.clone(),
            reference: message.reference.clone(),
        }
    }
}

pub fn notifications(
    told: Vec<exported::notifications::Notification>,
) -> Result<Vec<Notification>, NotificationRefusal> {
    if told.len() > MAX_NOTIFICATIONS {
        let why = format!("it refers to {} records; the maximum is 100", told.len());
        return Err(NotificationRefusal::Malformed(why));
    }
    Ok(told.into_iter().map(Into::into).collect())
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
        let told = exported::notifications::Notification {
            subject: exported::notifications::Subject::Payment,
            event: long(),
            service_ref: long(),
            transaction_id: long(),
        };
        let taken = notifications(vec![told.clone(); MAX_NOTIFICATIONS]).unwrap();
        assert_eq!((taken.len(), taken[0].event.len()), (MAX_NOTIFICATIONS, MAX_TEXT_BYTES));
        let too_many = notifications(vec![told; MAX_NOTIFICATIONS + 1]);
        assert!(matches!(too_many, Err(NotificationRefusal::Malformed(_))));
    }
}
