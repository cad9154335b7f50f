//! Rules of `docs/PLUGINS.md` for results after upstream failures. Authors' choices are only noted.

use crate::check::upstream::failure::FailureMeaning;
use tollhouse_plugins::{
    Call, CallError, Fault, FaultCategory as Category, PaymentStatus, PluginKind, PluginReply,
    ProviderRefundStatus,
};

/// The part of a result on which the rules depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultClass {
    /// A trap or an exceeded limit.
    Aborted,
    Fault(Category),
    /// A final result of a payment, refund or message, or the start of one.
    Done(FinalOutcome),
    /// An unknown result, which moves no money.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalOutcome {
    Success,
    /// A final failure.
    Failed,
    /// A result other than a payment's status.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessment {
    Conforms,
    /// A note for the author.
    Note(&'static str),
    /// What is required instead.
    Violation(&'static str),
}

pub const EXPECT_RESULT: &str = "a value or a fault, within the limits";
const EXPECT_UNAVAILABLE: &str =
    "unavailable: the upstream failed, or its response is late or unreadable";

impl ResultClass {
    pub fn of(call: &Call, reply: &Result<PluginReply, CallError>) -> ResultClass {
        match reply {
            Err(error) if is_aborted(error) => ResultClass::Aborted,
            Err(error) => ResultClass::Fault(error.fault.category),
            Ok(PluginReply::Payment(payment)) => match payment.status {
                PaymentStatus::Pending => ResultClass::Unknown,
                PaymentStatus::Success => ResultClass::Done(FinalOutcome::Success),
                PaymentStatus::Failed | PaymentStatus::Reversed => {
                    ResultClass::Done(FinalOutcome::Failed)
                }
            },
            Ok(PluginReply::Refund(refund)) => match (refund.status, call) {
                // From `start`, it means that the provider has accepted the refund.
                (ProviderRefundStatus::Pending, Call::CheckRefund(_)) => ResultClass::Unknown,
                _ => ResultClass::Done(FinalOutcome::Other),
            },
            Ok(PluginReply::Deauthorized(false)) => ResultClass::Unknown,
            Ok(_) => ResultClass::Done(FinalOutcome::Other),
        }
    }
}

/// Returns whether the call ended in a trap or at a limit.
pub fn is_aborted(error: &CallError) -> bool {
    error.fault.code == Fault::PLUGIN_BROKE
}

/// `function` is the contract's name, for example `checkout.start`.
pub fn evaluate(
    kind: PluginKind,
    function: &str,
    meaning: FailureMeaning,
    said: ResultClass,
) -> Assessment {
    match (meaning, said) {
        (_, ResultClass::Aborted) => Assessment::Violation(EXPECT_RESULT),
        (FailureMeaning::Outage | FailureMeaning::WrongAddress, said) => {
            outage(function, meaning, said)
        }
        (FailureMeaning::AccountRejected, said) => account_rejected(kind, said),
        (FailureMeaning::Refused, said) => refusal(function, said),
        (_, said) => unknown(kind, function, meaning, said),
    }
}

fn outage(function: &str, meaning: FailureMeaning, said: ResultClass) -> Assessment {
    match said {
        ResultClass::Fault(Category::Unavailable) => Assessment::Conforms,
        ResultClass::Fault(Category::Misconfigured | Category::Other)
            if meaning == FailureMeaning::WrongAddress =>
        {
            Assessment::Conforms
        }
        ResultClass::Fault(Category::Other) => {
            Assessment::Note("other raises an alarm; unavailable is retried without one")
        }
        ResultClass::Unknown => Assessment::Note(
            "the response has no result: unavailable would show operators the reason",
        ),
        // Some upstreams respond to a removal with an empty body.
        ResultClass::Done(_)
            if function == "saved-card.deauthorize" && meaning == FailureMeaning::Outage =>
        {
            Assessment::Note("treats an empty response as a success")
        }
        ResultClass::Fault(_) | ResultClass::Done(_) | ResultClass::Aborted => {
            Assessment::Violation(EXPECT_UNAVAILABLE)
        }
    }
}

fn account_rejected(kind: PluginKind, said: ResultClass) -> Assessment {
    match said {
        ResultClass::Fault(Category::Misconfigured) => Assessment::Conforms,
        ResultClass::Fault(Category::Invalid | Category::Refused) if kind == PluginKind::Sms => {
            Assessment::Violation("misconfigured: the response is not about the number")
        }
        ResultClass::Fault(Category::NotFound) | ResultClass::Done(_) => {
            Assessment::Violation("misconfigured: the upstream rejects the account")
        }
        _ => Assessment::Note(
            "misconfigured would show the operator that the upstream rejects the account",
        ),
    }
}

fn refusal(function: &str, said: ResultClass) -> Assessment {
    match said {
        ResultClass::Done(FinalOutcome::Failed) if function == "verification.verify" => {
            Assessment::Violation(
                "a result other than failed, which requires an explicit and final refusal",
            )
        }
        ResultClass::Done(FinalOutcome::Success | FinalOutcome::Other) => {
            Assessment::Violation("a fault: the upstream refused")
        }
        ResultClass::Fault(Category::NotFound) => Assessment::Violation(
            "a result other than not-found: the response is not about the requested record",
        ),
        _ => Assessment::Conforms,
    }
}

fn unknown(
    kind: PluginKind,
    function: &str,
    meaning: FailureMeaning,
    said: ResultClass,
) -> Assessment {
    let verifies = function == "verification.verify";
    match said {
        ResultClass::Done(FinalOutcome::Success)
            if verifies && meaning == FailureMeaning::UnknownValues =>
        {
            Assessment::Violation("pending or a fault: success requires that the money was taken")
        }
        ResultClass::Done(FinalOutcome::Success) => {
            Assessment::Note("treats an unknown status as a success")
        }
        ResultClass::Done(FinalOutcome::Failed)
            if verifies && meaning == FailureMeaning::UnknownWords =>
        {
            Assessment::Violation("pending: failed and reversed require a known status")
        }
        ResultClass::Fault(Category::NotFound) if kind != PluginKind::Provider || verifies => {
            Assessment::Violation(
                "a result other than not-found, because the response is not understood",
            )
        }
        ResultClass::Fault(Category::Invalid | Category::Refused) if kind == PluginKind::Sms => {
            Assessment::Violation("other: the gateway's response is unknown")
        }
        ResultClass::Fault(Category::Invalid | Category::Refused | Category::NotFound) => {
            Assessment::Note(
                "treats unknown words as a refusal: the operation may have taken effect",
            )
        }
        _ => Assessment::Conforms,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Assessment::*, Category::*, FailureMeaning::*, FinalOutcome::*, ResultClass::*, *,
    };

    /// The last column is `true` if the result is wrong.
    type Row = (PluginKind, &'static str, FailureMeaning, ResultClass, bool);

    const ROWS: [Row; 34] = [
        (PluginKind::Provider, "checkout.start", Outage, Fault(Unavailable), false),
        (PluginKind::Provider, "checkout.start", Outage, Fault(Category::Other), false),
        (PluginKind::Provider, "checkout.start", Outage, Fault(Misconfigured), true),
        (PluginKind::Provider, "checkout.start", Outage, Fault(Invalid), true),
        (PluginKind::Provider, "checkout.start", Outage, Fault(Category::Refused), true),
        (PluginKind::Provider, "checkout.start", Outage, Done(FinalOutcome::Other), true),
        (PluginKind::Provider, "checkout.start", Outage, Aborted, true),
        (PluginKind::Provider, "verification.verify", Outage, Fault(NotFound), true),
        (PluginKind::Provider, "verification.verify", Outage, Done(Success), true),
        (PluginKind::Provider, "verification.verify", Outage, Done(Failed), true),
        (PluginKind::Provider, "verification.verify", Outage, Unknown, false),
        (PluginKind::Provider, "verification.verify", WrongAddress, Fault(NotFound), true),
        (PluginKind::Provider, "verification.verify", WrongAddress, Fault(Misconfigured), false),
        (PluginKind::Provider, "saved-card.deauthorize", Outage, Done(FinalOutcome::Other), false),
        (
            PluginKind::Provider,
            "saved-card.deauthorize",
            WrongAddress,
            Done(FinalOutcome::Other),
            true,
        ),
        (PluginKind::Provider, "saved-card.charge", AccountRejected, Fault(Misconfigured), false),
        (PluginKind::Provider, "saved-card.charge", AccountRejected, Fault(Unavailable), false),
        (
            PluginKind::Provider,
            "saved-card.charge",
            AccountRejected,
            Fault(Category::Refused),
            false,
        ),
        (PluginKind::Provider, "saved-card.charge", AccountRejected, Fault(NotFound), true),
        (PluginKind::Provider, "saved-card.charge", AccountRejected, Done(Success), true),
        (PluginKind::Sms, "sms.send", AccountRejected, Fault(Category::Refused), true),
        (PluginKind::Sms, "sms.send", Outage, Done(FinalOutcome::Other), true),
        (PluginKind::Provider, "verification.verify", UnknownWords, Unknown, false),
        (PluginKind::Provider, "verification.verify", UnknownWords, Done(Success), false),
        (PluginKind::Provider, "verification.verify", UnknownWords, Done(Failed), true),
        (PluginKind::Provider, "verification.verify", UnknownValues, Done(Success), true),
        (PluginKind::Provider, "verification.verify", UnknownValues, Done(Failed), false),
        (PluginKind::Provider, "verification.verify", UnknownWords, Fault(NotFound), true),
        (PluginKind::Provider, "saved-card.charge", UnknownWords, Fault(Category::Refused), false),
        (PluginKind::Sms, "sms.send", UnknownWords, Fault(Category::Refused), true),
        (PluginKind::Sms, "sms.send", UnknownWords, Done(FinalOutcome::Other), false),
        (PluginKind::Country, "identity-lookup.lookup", UnknownWords, Fault(NotFound), true),
        (
            PluginKind::Provider,
            "checkout.start",
            FailureMeaning::Refused,
            Fault(Category::Refused),
            false,
        ),
        (
            PluginKind::Provider,
            "checkout.start",
            FailureMeaning::Refused,
            Done(FinalOutcome::Other),
            true,
        ),
    ];

    #[test]
    fn results_that_violate_the_contract_fail_and_others_pass() {
        for (kind, function, meaning, said, fails) in ROWS {
            let judged = evaluate(kind, function, meaning, said);
            let is_wrong = matches!(judged, Violation(_));
            assert_eq!(is_wrong, fails, "{function}, {meaning:?}, {said:?}: {judged:?}");
        }
    }
}
