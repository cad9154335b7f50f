//! Between the types of the contract and the host's own.

use super::{exported, imported, wit};
use crate::{
    clock::Timestamp,
    money::{MOST_MINOR, Minor, Money},
    plugins::{
        CardOrder, CheckoutOrder, CheckoutSession, DebitOrder, Fault, FaultCategory, Instrument,
        Notification, PaymentStatus, ProviderPayment, Refund, RefundOrder, RefundStatus, Subject,
    },
};

/// What may be stored: PostgreSQL keeps no NUL, and an upstream's odd byte must not break a payment.
fn storable(mut text: String) -> String {
    text.retain(|c| c != '\0');
    text
}

/// A plugin that names an amount no money has is out of order.
fn amount(money: wit::Money) -> Result<Money, Fault> {
    Ok(Money { minor: minor(money.minor)?, currency: money.currency })
}

fn minor(minor: u64) -> Result<Minor, Fault> {
    match i64::try_from(minor) {
        Ok(minor) if minor <= MOST_MINOR => Ok(Minor(minor)),
        _ => Err(Fault::new(FaultCategory::Unavailable, "amount", "the amount is out of range")),
    }
}

impl From<&Money> for wit::Money {
    fn from(money: &Money) -> wit::Money {
        let minor = u64::try_from(money.minor.0).unwrap_or(0);
        wit::Money { minor, currency: money.currency.clone() }
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
        let (code, message) = (storable(code), storable(message));
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

impl From<exported::checkout::CheckoutSession> for CheckoutSession {
    fn from(session: exported::checkout::CheckoutSession) -> CheckoutSession {
        let exported::checkout::CheckoutSession { url, service_ref, raw } = session;
        CheckoutSession {
            url: storable(url),
            service_ref: storable(service_ref),
            raw: storable(raw),
        }
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

impl From<exported::refunds::Refund> for Refund {
    fn from(refund: exported::refunds::Refund) -> Refund {
        let status = match refund.status {
            exported::refunds::RefundStatus::Pending => RefundStatus::Pending,
            exported::refunds::RefundStatus::Done => RefundStatus::Done,
            exported::refunds::RefundStatus::Failed => RefundStatus::Failed,
        };
        let (provider_id, message) = (storable(refund.provider_id), storable(refund.message));
        Refund { status, provider_id, message }
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
            service_ref: storable(payment.service_ref),
            transaction_id: storable(payment.transaction_id),
            amount: amount(payment.amount)?,
            requested: payment.requested.map(amount).transpose()?,
            fees: payment.fees_minor.map(minor).transpose()?,
            channel: storable(payment.channel),
            paid_at: payment.paid_at.as_deref().and_then(Timestamp::parse),
            message: storable(payment.message),
            instrument: payment.instrument.map(Into::into),
            challenge_url: payment.challenge_url.map(storable),
            metadata: payment.metadata,
            raw: storable(payment.raw),
        })
    }
}

impl From<imported::payments::Instrument> for Instrument {
    fn from(i: imported::payments::Instrument) -> Instrument {
        Instrument {
            kind: i.kind,
            token: storable(i.token), // as it stands in `raw`
            reusable: i.reusable,
            signature: i.signature,
            email: i.email,
            bin: i.bin,
            last4: i.last4,
            exp_month: i.exp_month,
            exp_year: i.exp_year,
            brand: i.brand,
            bank: i.bank,
            country: i.country,
            holder: i.holder,
        }
    }
}

impl From<exported::notifications::Notification> for Notification {
    fn from(told: exported::notifications::Notification) -> Notification {
        let subject = match told.subject {
            exported::notifications::Subject::Payment => Subject::Payment,
            exported::notifications::Subject::Refund => Subject::Refund,
            exported::notifications::Subject::Mandate => Subject::Mandate,
            exported::notifications::Subject::Other => Subject::Other,
        };
        let exported::notifications::Notification { event, service_ref, transaction_id, .. } = told;
        Notification {
            subject,
            event: storable(event),
            service_ref: storable(service_ref),
            transaction_id: storable(transaction_id),
        }
    }
}
