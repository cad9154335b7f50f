//! The log of completed calls, for the application. It contains no arguments other than the
//! reference, no results, and no messages of faults.

use std::{sync::Arc, time::Duration};

use crate::{Call, CallError, Certainty, DisputeFilter, PluginHandle, PluginReply, outcome};
use tollhouse_platform::{
    background::log_buffer::LogEntry, clock::Timestamp, values::id::CompanyId,
};

/// A call after its end.
#[derive(Clone, Debug)]
pub struct LoggedCall {
    /// The company for which the call was made; empty for the service itself.
    pub company_id: CompanyId,
    pub plugin: Arc<str>,
    pub version: String,
    pub function: &'static str,
    /// The reference of a charge or the provider's id of a refund, if the call has one.
    pub reference: Option<String>,
    pub began_at: Timestamp,
    /// Includes waits.
    pub duration: Duration,
    /// `ok`, the category of the fault, or `timed_out`.
    pub outcome: &'static str,
    /// The call's effect at the provider is unknown.
    pub is_unknown: bool,
    /// One-word summary of the result, for example a payment's state; empty after a fault.
    pub summary: &'static str,
}

impl LogEntry for LoggedCall {
    fn company(&self) -> &CompanyId {
        &self.company_id
    }
}

/// Receives each call. It must neither wait nor fail.
pub type CallLog = Arc<dyn Fn(LoggedCall) + Send + Sync>;

impl LoggedCall {
    pub(super) fn new(
        called: &PluginHandle,
        call: &Call,
        result: &Result<PluginReply, CallError>,
        began_at: Timestamp,
        duration: Duration,
    ) -> LoggedCall {
        let is_unknown = |error: &CallError| error.certainty == Certainty::Unknown;
        LoggedCall {
            company_id: CompanyId::from(&*called.company),
            plugin: called.plugin.name.clone(),
            version: called.plugin.meter.version().to_owned(),
            function: call.function(),
            reference: call.reference().map(str::to_owned),
            began_at,
            duration,
            outcome: outcome(result),
            is_unknown: result.as_ref().is_err_and(is_unknown),
            summary: result.as_ref().map_or("", PluginReply::summary),
        }
    }
}

impl Call {
    /// Returns the reference of the charge or mandate that the call is about, or the provider's id
    /// of a refund.
    fn reference(&self) -> Option<&str> {
        match self {
            Call::StartCheckout(order) | Call::StartSession(order) => Some(&order.service_ref),
            Call::Verify(reference) | Call::CheckRefund(reference) => Some(reference),
            Call::FindTransfer(reference) => Some(reference),
            Call::VerifySession(session) | Call::ReceiveForSession(session, _) => {
                Some(&session.service_ref)
            }
            Call::StartSessionRefund(order) => Some(&order.session.service_ref),
            Call::CheckSessionRefund(refund) | Call::ReceiveForRefund(refund, _) => {
                Some(&refund.session.service_ref)
            }
            Call::ChargeCard(order) => Some(&order.service_ref),
            Call::Debit(order) => Some(&order.service_ref),
            Call::ChargeCardInPart(order) | Call::DebitInPart(order) => Some(&order.service_ref),
            Call::StartRefund(order) => Some(&order.service_ref),
            Call::StartPartialRefund(part) => Some(&part.order.service_ref),
            Call::ListDisputes(DisputeFilter::Payment(reference, _), _) => Some(reference),
            Call::BeginMandate(order) => Some(&order.mandate_ref),
            Call::QueryMandate(mandate) | Call::CancelMandate(mandate) => {
                Some(&mandate.service_ref)
            }
            Call::FetchDispute(key) => Some(&key.service_ref),
            Call::AnswerDispute(answer) => Some(&answer.key.service_ref),
            Call::Deauthorize(_)
            | Call::OpenAccount(_)
            | Call::CloseAccount(_)
            | Call::DeclineReason(..)
            | Call::ListBanks(_)
            | Call::ListDisputes(DisputeFilter::Since(_), _)
            | Call::ListTransactions(..)
            | Call::ListSettlements(..)
            | Call::ResolveAccount(..)
            | Call::ParseNotification(_)
            | Call::SendText(_)
            | Call::LookUp(_)
            | Call::Compare(..)
            | Call::Read(..) => None,
        }
    }
}
