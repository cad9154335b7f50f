//! Rules of `docs/PLUGINS.md` for results after upstream failures. Authors' choices are only noted.

use crate::check::upstream::trouble::Meaning;
use tollhouse_plugins::{
    Call, CallError, Fault, FaultCategory as Category, Kind, PaymentStatus, RefundStatus, Reply,
};

/// The part of a result on which the rules depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A trap or an exceeded limit.
    Broke,
    Fault(Category),
    /// A final result of a payment, refund or message, or the start of one.
    Done(Outcome),
    /// An unknown result, which moves no money.
    Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// A final failure.
    Failed,
    /// A result other than a payment's status.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Fine,
    /// A note for the author.
    Note(&'static str),
    /// What is required instead.
    Wrong(&'static str),
}

pub const BROKE: &str = "a value or a fault, within the limits";
const UNAVAILABLE: &str = "unavailable: the upstream failed, or its response is late or unreadable";

impl Said {
    pub fn of(call: &Call, reply: &Result<Reply, CallError>) -> Said {
        match reply {
            Err(error) if broke(error) => Said::Broke,
            Err(error) => Said::Fault(error.fault.category),
            Ok(Reply::Payment(payment)) => match payment.status {
                PaymentStatus::Pending => Said::Waits,
                PaymentStatus::Success => Said::Done(Outcome::Success),
                PaymentStatus::Failed | PaymentStatus::Reversed => Said::Done(Outcome::Failed),
            },
            Ok(Reply::Refund(refund)) => match (refund.status, call) {
                // From `start`, it means that the provider has accepted the refund.
                (RefundStatus::Pending, Call::CheckRefund(_)) => Said::Waits,
                _ => Said::Done(Outcome::Other),
            },
            Ok(Reply::Deauthorized(false)) => Said::Waits,
            Ok(_) => Said::Done(Outcome::Other),
        }
    }
}

/// Returns whether the call ended in a trap or at a limit.
pub fn broke(error: &CallError) -> bool {
    error.fault.code == Fault::BROKE
}

/// `function` is the contract's name, for example `checkout.start`.
pub fn judge(kind: Kind, function: &str, meaning: Meaning, said: Said) -> Judgement {
    match (meaning, said) {
        (_, Said::Broke) => Judgement::Wrong(BROKE),
        (Meaning::OutOfOrder | Meaning::WrongAddress, said) => {
            out_of_order(function, meaning, said)
        }
        (Meaning::NotLetIn, said) => not_let_in(kind, said),
        (Meaning::Refused, said) => refused(function, said),
        (_, said) => unknown(kind, function, meaning, said),
    }
}

fn out_of_order(function: &str, meaning: Meaning, said: Said) -> Judgement {
    match said {
        Said::Fault(Category::Unavailable) => Judgement::Fine,
        Said::Fault(Category::Misconfigured | Category::Other)
            if meaning == Meaning::WrongAddress =>
        {
            Judgement::Fine
        }
        Said::Fault(Category::Other) => {
            Judgement::Note("other raises an alarm; unavailable is retried without one")
        }
        Said::Waits => Judgement::Note(
            "the response has no result: unavailable would show operators the reason",
        ),
        // Some upstreams respond to a removal with an empty body.
        Said::Done(_) if function == "saved-card.deauthorize" && meaning == Meaning::OutOfOrder => {
            Judgement::Note("treats an empty response as a success")
        }
        Said::Fault(_) | Said::Done(_) | Said::Broke => Judgement::Wrong(UNAVAILABLE),
    }
}

fn not_let_in(kind: Kind, said: Said) -> Judgement {
    match said {
        Said::Fault(Category::Misconfigured) => Judgement::Fine,
        Said::Fault(Category::Invalid | Category::Refused) if kind == Kind::Sms => {
            Judgement::Wrong("misconfigured: the response is not about the number")
        }
        Said::Fault(Category::NotFound) | Said::Done(_) => {
            Judgement::Wrong("misconfigured: the upstream rejects the account")
        }
        _ => Judgement::Note(
            "misconfigured would show the operator that the upstream rejects the account",
        ),
    }
}

fn refused(function: &str, said: Said) -> Judgement {
    match said {
        Said::Done(Outcome::Failed) if function == "verification.verify" => Judgement::Wrong(
            "a result other than failed, which requires an explicit and final refusal",
        ),
        Said::Done(Outcome::Success | Outcome::Other) => {
            Judgement::Wrong("a fault: the upstream refused")
        }
        Said::Fault(Category::NotFound) => Judgement::Wrong(
            "a result other than not-found: the response is not about the requested record",
        ),
        _ => Judgement::Fine,
    }
}

fn unknown(kind: Kind, function: &str, meaning: Meaning, said: Said) -> Judgement {
    let verifies = function == "verification.verify";
    match said {
        Said::Done(Outcome::Success) if verifies && meaning == Meaning::UnknownValues => {
            Judgement::Wrong("pending or a fault: success requires that the money was taken")
        }
        Said::Done(Outcome::Success) => Judgement::Note("treats an unknown status as a success"),
        Said::Done(Outcome::Failed) if verifies && meaning == Meaning::UnknownWords => {
            Judgement::Wrong("pending: failed and reversed require a known status")
        }
        Said::Fault(Category::NotFound) if kind != Kind::Provider || verifies => Judgement::Wrong(
            "a result other than not-found, because the response is not understood",
        ),
        Said::Fault(Category::Invalid | Category::Refused) if kind == Kind::Sms => {
            Judgement::Wrong("other: the gateway's response is unknown")
        }
        Said::Fault(Category::Invalid | Category::Refused | Category::NotFound) => Judgement::Note(
            "treats unknown words as a refusal: the operation may have taken effect",
        ),
        _ => Judgement::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::{Category::*, Judgement::*, Meaning::*, Outcome::*, Said::*, *};

    /// The last column is `true` if the result is wrong.
    type Row = (Kind, &'static str, Meaning, Said, bool);

    const ROWS: [Row; 34] = [
        (Kind::Provider, "checkout.start", OutOfOrder, Fault(Unavailable), false),
        (Kind::Provider, "checkout.start", OutOfOrder, Fault(Category::Other), false),
        (Kind::Provider, "checkout.start", OutOfOrder, Fault(Misconfigured), true),
        (Kind::Provider, "checkout.start", OutOfOrder, Fault(Invalid), true),
        (Kind::Provider, "checkout.start", OutOfOrder, Fault(Category::Refused), true),
        (Kind::Provider, "checkout.start", OutOfOrder, Done(Outcome::Other), true),
        (Kind::Provider, "checkout.start", OutOfOrder, Broke, true),
        (Kind::Provider, "verification.verify", OutOfOrder, Fault(NotFound), true),
        (Kind::Provider, "verification.verify", OutOfOrder, Done(Success), true),
        (Kind::Provider, "verification.verify", OutOfOrder, Done(Failed), true),
        (Kind::Provider, "verification.verify", OutOfOrder, Waits, false),
        (Kind::Provider, "verification.verify", WrongAddress, Fault(NotFound), true),
        (Kind::Provider, "verification.verify", WrongAddress, Fault(Misconfigured), false),
        (Kind::Provider, "saved-card.deauthorize", OutOfOrder, Done(Outcome::Other), false),
        (Kind::Provider, "saved-card.deauthorize", WrongAddress, Done(Outcome::Other), true),
        (Kind::Provider, "saved-card.charge", NotLetIn, Fault(Misconfigured), false),
        (Kind::Provider, "saved-card.charge", NotLetIn, Fault(Unavailable), false),
        (Kind::Provider, "saved-card.charge", NotLetIn, Fault(Category::Refused), false),
        (Kind::Provider, "saved-card.charge", NotLetIn, Fault(NotFound), true),
        (Kind::Provider, "saved-card.charge", NotLetIn, Done(Success), true),
        (Kind::Sms, "sms.send", NotLetIn, Fault(Category::Refused), true),
        (Kind::Sms, "sms.send", OutOfOrder, Done(Outcome::Other), true),
        (Kind::Provider, "verification.verify", UnknownWords, Waits, false),
        (Kind::Provider, "verification.verify", UnknownWords, Done(Success), false),
        (Kind::Provider, "verification.verify", UnknownWords, Done(Failed), true),
        (Kind::Provider, "verification.verify", UnknownValues, Done(Success), true),
        (Kind::Provider, "verification.verify", UnknownValues, Done(Failed), false),
        (Kind::Provider, "verification.verify", UnknownWords, Fault(NotFound), true),
        (Kind::Provider, "saved-card.charge", UnknownWords, Fault(Category::Refused), false),
        (Kind::Sms, "sms.send", UnknownWords, Fault(Category::Refused), true),
        (Kind::Sms, "sms.send", UnknownWords, Done(Outcome::Other), false),
        (Kind::Country, "identity-lookup.lookup", UnknownWords, Fault(NotFound), true),
        (Kind::Provider, "checkout.start", Meaning::Refused, Fault(Category::Refused), false),
        (Kind::Provider, "checkout.start", Meaning::Refused, Done(Outcome::Other), true),
    ];

    #[test]
    fn results_that_violate_the_contract_fail_and_others_pass() {
        for (kind, function, meaning, said, fails) in ROWS {
            let judged = judge(kind, function, meaning, said);
            let is_wrong = matches!(judged, Wrong(_));
            assert_eq!(is_wrong, fails, "{function}, {meaning:?}, {said:?}: {judged:?}");
        }
    }
}
