//! Converts responses to facts.

use super::{
    super::{Fact, Rejection, tests::seen},
    world::{AMOUNT, RefundResponse, Response, SHORT},
};
use crate::money::{charges::refund::RefundFact, prelude::*};

/// `queried_at`: the time of a verification, relative to the charge as it was then.
pub fn to_fact(response: Response, queried_at: Timestamp) -> Fact {
    match response {
        Response::Session => Fact::Session(Box::new(CheckoutSession {
            url: "page".to_owned(),
            service_ref: "r".to_owned(),
            raw: String::new(),
            ..CheckoutSession::default()
        })),
        Response::Lost => Fact::Lost,
        Response::NotFound { .. } => Fact::NotFound(queried_at),
        Response::Invalid => Fact::Rejected(Rejection::Invalid, None),
        Response::Refused => Fact::Rejected(Rejection::Refused, None),
        Response::Temporary => Fact::Rejected(Rejection::Temporary, None),
        Response::Duplicate => Fact::Rejected(Rejection::DuplicateReference, None),
        Response::Foreign => payment(PaymentStatus::Success, AMOUNT, None),
        Response::Pending => ours(PaymentStatus::Pending, AMOUNT),
        Response::Paid => ours(PaymentStatus::Success, AMOUNT),
        Response::PaidShort => ours(PaymentStatus::Success, SHORT),
        Response::Failed => ours(PaymentStatus::Failed, AMOUNT),
        Response::Reversed => ours(PaymentStatus::Reversed, AMOUNT),
    }
}

fn ours(status: PaymentStatus, amount: u8) -> Fact {
    payment(status, amount, Some(r#"{"tollhouse_payment":"p1"}"#.to_owned()))
}

fn payment(status: PaymentStatus, amount: u8, metadata: Option<String>) -> Fact {
    let amount = Money { minor: Minor(amount.into()), currency: "NGN".into() };
    Fact::Seen(Box::new(ProviderPayment { metadata, ..seen(status, amount, None) }))
}

pub fn to_refund_fact(response: RefundResponse) -> RefundFact {
    let seen = |status| {
        RefundFact::Seen(ProviderRefund {
            status,
            provider_id: String::new(),
            message: String::new(),
            state: None,
        })
    };
    let failed =
        |certainty, rejected| RefundFact::Failed { certainty, rejected, error: String::new() };
    match response {
        RefundResponse::Pending => seen(ProviderRefundStatus::Pending),
        RefundResponse::Done => seen(ProviderRefundStatus::Done),
        RefundResponse::Failed => seen(ProviderRefundStatus::Failed),
        RefundResponse::Refused => failed(Certainty::NotDone, true),
        RefundResponse::NotDone => failed(Certainty::NotDone, false),
        RefundResponse::Lost => failed(Certainty::Unknown, false),
        RefundResponse::Unanswered => RefundFact::NotRequested { error: String::new() },
    }
}
