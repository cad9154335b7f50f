//! Rules of `docs/PLUGINS.md` for results after upstream failures. Authors' choices are only noted.

use self::{Assessment::*, ResultClass::*};
use crate::check::upstream::failure::FailureMeaning::{self, *};
use tollhouse_plugins::{
    Call, CallError,
    FaultCategory::{self, *},
    IncomingTransfer, MandateStatus, PaymentStatus, PluginKind, PluginReply, ProviderRefundStatus,
};

/// The part of a result on which the rules depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultClass {
    /// A trap or an exceeded limit.
    Aborted,
    Fault(FaultCategory),
    /// A payment that took the money, a refund that returned it, or a mandate that can be debited.
    Success,
    /// A payment or refund that failed finally, or a mandate that ended.
    Failed,
    /// A final result of a message, or the start of an operation.
    Done,
    /// An unknown result, which moves no money.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assessment {
    Conforms,
    /// A note for the author.
    Note(&'static str),
    /// A violation, with the result that is required instead.
    Violation(&'static str),
}

impl ResultClass {
    pub fn of(call: &Call, reply: &Result<PluginReply, CallError>) -> ResultClass {
        match reply {
            Err(error) if is_aborted(error) => Aborted,
            Err(error) => Fault(error.fault.category),
            Ok(
                PluginReply::Payment(payment)
                | PluginReply::Transfer(Some(IncomingTransfer { payment, .. })),
            ) => match payment.status {
                PaymentStatus::Pending => Unknown,
                PaymentStatus::Success => Success,
                PaymentStatus::Failed | PaymentStatus::Reversed => Failed,
            },
            Ok(PluginReply::Refund(refund)) => match (refund.status, call) {
                (ProviderRefundStatus::Done, _) => Success,
                (ProviderRefundStatus::Failed, _) => Failed,
                (_, Call::CheckRefund(_) | Call::CheckSessionRefund(_)) => Unknown,
                // The provider has accepted the refund.
                _ => Done,
            },
            Ok(PluginReply::Mandate(mandate)) => match mandate.status {
                MandateStatus::Created | MandateStatus::Approved => Unknown,
                MandateStatus::Ready => Success,
                MandateStatus::Cancelled => Failed,
            },
            Ok(
                PluginReply::Deauthorized(false)
                | PluginReply::Closed(false)
                | PluginReply::Cancelled(false),
            ) => Unknown,
            // The host forgets the payment.
            Ok(PluginReply::Transfer(None)) => Failed,
            Ok(_) => Done,
        }
    }
}

fn is_verification(function: &str) -> bool {
    matches!(
        function,
        "verification.verify"
            | "sessions.verify"
            | "virtual-accounts.find-transfer"
            | "mandates.query"
    )
}

fn is_removal(function: &str) -> bool {
    matches!(function, "saved-card.deauthorize" | "virtual-accounts.close" | "mandates.cancel")
}

/// Returns whether the call ended in a trap or at a limit.
pub fn is_aborted(error: &CallError) -> bool {
    error.fault.code == tollhouse_plugins::Fault::PLUGIN_BROKE
}

/// Assesses a result by the first rule that matches. `function` is the contract's name, for
/// example `checkout.start`.
pub fn evaluate(
    kind: PluginKind,
    function: &str,
    meaning: FailureMeaning,
    result: ResultClass,
) -> Assessment {
    let (is_sms, verifies) = (kind == PluginKind::Sms, is_verification(function));
    let starts_refund =
        matches!(function, "refunds.start" | "partial-refunds.start" | "session-refunds.start");
    let queries_status = verifies || matches!(function, "refunds.check" | "session-refunds.check");
    let enquires = function == "account-enquiry.resolve";
    match (meaning, result) {
        (_, Aborted) => Violation("a value or a fault, without a trap or an exceeded limit"),

        (Outage | WrongAddress, Fault(Unavailable)) => Conforms,
        (WrongAddress, Fault(Misconfigured | Other)) => Conforms,
        (Outage, Fault(Other)) => {
            Note("return unavailable instead of other, which also alerts the operator")
        }
        (Outage | WrongAddress, Unknown) => Note(
            "the response is unusable: return unavailable instead of a pending result, so that operators see the reason",
        ),
        // Some upstreams respond to a removal with an empty body.
        (Outage, Success | Failed | Done) if is_removal(function) => Note(
            "returns true although the upstream confirmed nothing: return true for the documented response only",
        ),
        (Outage, _) => {
            Violation("unavailable: the upstream failed, or its response is late or unreadable")
        }
        (WrongAddress, _) => Violation(
            "unavailable or misconfigured: a 404 with an HTML page does not mean that the record is missing",
        ),

        (AccountRejected, Fault(Misconfigured)) => Conforms,
        (AccountRejected, Fault(Invalid | Refused)) if is_sms => {
            Violation("misconfigured: the response is not about the number")
        }
        (AccountRejected, Fault(NotFound) | Success | Failed | Done) => {
            Violation("misconfigured: the upstream rejects the account")
        }
        (AccountRejected, _) => {
            Note("return misconfigured if the upstream rejects the account: it alerts the operator")
        }

        (Refusal, Failed) if queries_status => Violation(
            "pending or a fault: failed requires an explicit, final failure, and reversed a returned payment",
        ),
        (Refusal, Success | Done) => Violation("a fault: the upstream refused"),
        (Refusal, Fault(NotFound)) => Violation(
            "a fault other than not-found, which requires the response that the record does not exist",
        ),
        (Refusal, _) => Conforms,

        (UnknownValues, Success) if queries_status => {
            Violation("pending or a fault: success and done require a known status")
        }
        (_, Success) => Note(
            "returns success or done for unknown words: list the words that mean it, unless the status is a number",
        ),
        (UnknownWords, Failed) if queries_status || starts_refund => {
            Violation("pending: failed and reversed require a known status")
        }
        (_, Fault(NotFound)) if kind != PluginKind::Provider || verifies || enquires => {
            Violation("another fault: an unknown response does not mean that the record is missing")
        }
        (_, Fault(Invalid | Refused)) if is_sms => {
            Violation("other: the gateway's response is unknown")
        }
        (_, Fault(Invalid | Refused | NotFound)) => Note(
            "returns a final fault for unknown words: return unavailable, because the operation may have taken effect",
        ),
        _ => Conforms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PluginKind::*;

    /// The last column is `true` if the result is wrong.
    const ROWS: [(PluginKind, &str, FailureMeaning, ResultClass, bool); 50] = [
        (Provider, "checkout.start", Outage, Fault(Unavailable), false),
        (Provider, "checkout.start", Outage, Fault(Other), false),
        (Provider, "checkout.start", Outage, Fault(Misconfigured), true),
        (Provider, "checkout.start", Outage, Fault(Invalid), true),
        (Provider, "checkout.start", Outage, Fault(Refused), true),
        (Provider, "checkout.start", Outage, Done, true),
        (Provider, "checkout.start", Outage, Aborted, true),
        (Provider, "verification.verify", Outage, Fault(NotFound), true),
        (Provider, "verification.verify", Outage, Success, true),
        (Provider, "verification.verify", Outage, Failed, true),
        (Provider, "verification.verify", Outage, Unknown, false),
        (Provider, "verification.verify", WrongAddress, Fault(NotFound), true),
        (Provider, "verification.verify", WrongAddress, Fault(Misconfigured), false),
        (Provider, "saved-card.deauthorize", Outage, Done, false),
        (Provider, "saved-card.deauthorize", WrongAddress, Done, true),
        (Provider, "saved-card.charge", AccountRejected, Fault(Misconfigured), false),
        (Provider, "saved-card.charge", AccountRejected, Fault(Unavailable), false),
        (Provider, "saved-card.charge", AccountRejected, Fault(Refused), false),
        (Provider, "saved-card.charge", AccountRejected, Fault(NotFound), true),
        (Provider, "saved-card.charge", AccountRejected, Success, true),
        (Provider, "virtual-accounts.close", Outage, Done, false),
        (Provider, "virtual-accounts.find-transfer", UnknownWords, Failed, true),
        (Provider, "virtual-accounts.find-transfer", UnknownWords, Fault(NotFound), true),
        (Provider, "mandates.query", UnknownWords, Failed, true),
        (Provider, "mandates.query", UnknownWords, Fault(NotFound), true),
        (Provider, "mandates.cancel", Outage, Done, false),
        (Provider, "account-enquiry.resolve", UnknownWords, Fault(NotFound), true),
        (Sms, "sms.send", AccountRejected, Fault(Refused), true),
        (Sms, "sms.send", Outage, Done, true),
        (Provider, "verification.verify", UnknownWords, Unknown, false),
        (Provider, "verification.verify", UnknownWords, Success, false),
        (Provider, "verification.verify", UnknownWords, Failed, true),
        (Provider, "verification.verify", UnknownValues, Success, true),
        (Provider, "verification.verify", UnknownValues, Failed, false),
        (Provider, "verification.verify", UnknownWords, Fault(NotFound), true),
        (Provider, "refunds.check", UnknownWords, Unknown, false),
        (Provider, "refunds.check", UnknownWords, Success, false),
        (Provider, "refunds.check", UnknownWords, Failed, true),
        (Provider, "refunds.check", UnknownValues, Success, true),
        (Provider, "refunds.start", UnknownWords, Done, false),
        (Provider, "refunds.start", UnknownWords, Failed, true),
        (Provider, "refunds.start", Refusal, Failed, false),
        (Provider, "partial-refunds.start", UnknownWords, Failed, true),
        (Provider, "session-refunds.check", Refusal, Failed, true),
        (Provider, "saved-card.charge", UnknownWords, Fault(Refused), false),
        (Sms, "sms.send", UnknownWords, Fault(Refused), true),
        (Sms, "sms.send", UnknownWords, Done, false),
        (Country, "identity-lookup.lookup", UnknownWords, Fault(NotFound), true),
        (Provider, "checkout.start", Refusal, Fault(Refused), false),
        (Provider, "checkout.start", Refusal, Done, true),
    ];

    #[test]
    fn results_that_violate_the_contract_fail_and_others_pass() {
        for (kind, function, meaning, result, fails) in ROWS {
            let judged = evaluate(kind, function, meaning, result);
            let is_wrong = matches!(judged, Violation(_));
            assert_eq!(is_wrong, fails, "{function}, {meaning:?}, {result:?}: {judged:?}");
        }
    }
}
