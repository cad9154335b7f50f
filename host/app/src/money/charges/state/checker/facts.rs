//! The facts that answers stand for.

use super::{
    super::{Fact, Rejection, tests::seen},
    world::{AMOUNT, Answer, RefundAnswer, SHORT},
};
use crate::money::{charges::refund::RefundFact, prelude::*};

/// `asked_at`: the time of a verification, relative to the charge as it was then.
pub fn to_fact(answer: Answer, asked_at: Timestamp) -> Fact {
    match answer {
        Answer::Session => Fact::Session(Box::new(CheckoutSession {
            url: "page".to_owned(),
            service_ref: "r".to_owned(),
            raw: String::new(),
        })),
        Answer::Lost => Fact::Lost,
        Answer::NotFound { .. } => Fact::NotFound(asked_at),
        Answer::Invalid => Fact::Rejected(Rejection::Invalid),
        Answer::Refused => Fact::Rejected(Rejection::Refused),
        Answer::Temporary => Fact::Rejected(Rejection::Temporary),
        Answer::Duplicate => Fact::Rejected(Rejection::DuplicateReference),
        Answer::Foreign => payment(PaymentStatus::Success, AMOUNT, None),
        Answer::Pending => ours(PaymentStatus::Pending, AMOUNT),
        Answer::Paid => ours(PaymentStatus::Success, AMOUNT),
        Answer::PaidShort => ours(PaymentStatus::Success, SHORT),
        Answer::Failed => ours(PaymentStatus::Failed, AMOUNT),
        Answer::Reversed => ours(PaymentStatus::Reversed, AMOUNT),
    }
}

fn ours(status: PaymentStatus, amount: u8) -> Fact {
    payment(status, amount, Some(r#"{"tollhouse_payment":"p1"}"#.to_owned()))
}

fn payment(status: PaymentStatus, amount: u8, metadata: Option<String>) -> Fact {
    let amount = Money { minor: Minor(amount.into()), currency: "NGN".into() };
    Fact::Seen(Box::new(ProviderPayment { metadata, ..seen(status, amount, None) }))
}

pub fn to_refund_fact(answer: RefundAnswer) -> RefundFact {
    let seen = |status| {
        RefundFact::Seen(ProviderRefund {
            status,
            provider_id: String::new(),
            message: String::new(),
        })
    };
    let failed =
        |certainty, rejected| RefundFact::Failed { certainty, rejected, error: String::new() };
    match answer {
        RefundAnswer::Pending => seen(ProviderRefundStatus::Pending),
        RefundAnswer::Done => seen(ProviderRefundStatus::Done),
        RefundAnswer::Failed => seen(ProviderRefundStatus::Failed),
        RefundAnswer::Refused => failed(Certainty::NotDone, true),
        RefundAnswer::NotDone => failed(Certainty::NotDone, false),
        RefundAnswer::Lost => failed(Certainty::Unknown, false),
    }
}
