//! Results of plugin calls in one type for all functions.

use crate::{
    Bank, Call, CallError, CheckoutSession, Credentials, Decline, DisputePage, DisputeStatus,
    FaceComparison, IncomingTransfer, MandateSession, MandateStatus, Notification,
    NotificationRefusal, PaymentStatus, PluginData, PluginHandle, ProviderDispute, ProviderMandate,
    ProviderPayment, ProviderRefund, ProviderRefundStatus, RegisterEntry, SettlementPage,
    TransactionPage, VirtualAccount,
};

pub enum PluginReply {
    Session(CheckoutSession),
    Payment(ProviderPayment),
    /// `false`: the provider does not support deauthorization.
    Deauthorized(bool),
    /// Why a charge was declined.
    Declined(Decline),
    Refund(ProviderRefund),
    /// The subjects of a webhook. A rejected webhook is not a fault.
    Parsed(Result<Vec<Notification>, NotificationRefusal>),
    /// The data of a notification of one payment or refund.
    Received(PluginData),
    Account(VirtualAccount),
    /// `false`: the provider cannot close accounts.
    Closed(bool),
    /// `None`: not a transfer to a virtual account.
    Transfer(Option<IncomingTransfer>),
    Banks(Vec<Bank>),
    Disputes(DisputePage),
    Dispute(ProviderDispute),
    Transactions(TransactionPage),
    Settlements(SettlementPage),
    MandateSession(MandateSession),
    Mandate(ProviderMandate),
    /// `false`: the provider cannot cancel it yet.
    Cancelled(bool),
    /// The name of an account's holder.
    Holder(String),
    /// The gateway's message id.
    Accepted(String),
    Entry(RegisterEntry),
    Compared((RegisterEntry, FaceComparison)),
    /// The identifier on a document, and its entry.
    Read((String, RegisterEntry)),
}

impl PluginReply {
    /// Returns the one-word summary.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self {
            PluginReply::Session(_) => "session",
            PluginReply::Payment(payment)
            | PluginReply::Transfer(Some(IncomingTransfer { payment, .. })) => match payment.status
            {
                PaymentStatus::Pending => "pending",
                PaymentStatus::Success => "success",
                PaymentStatus::Failed => "failed",
                PaymentStatus::Reversed => "reversed",
            },
            PluginReply::Deauthorized(true)
            | PluginReply::Closed(true)
            | PluginReply::Cancelled(true) => "true",
            PluginReply::Deauthorized(false)
            | PluginReply::Closed(false)
            | PluginReply::Cancelled(false) => "false",
            PluginReply::Transfer(None) => "none",
            PluginReply::Account(_) => "account",
            PluginReply::Banks(_) => "banks",
            PluginReply::Disputes(_) => "disputes",
            PluginReply::Transactions(_) => "transactions",
            PluginReply::Settlements(_) => "settlements",
            PluginReply::MandateSession(_) => "mandate",
            PluginReply::Mandate(mandate) => match mandate.status {
                MandateStatus::Created => "created",
                MandateStatus::Approved => "approved",
                MandateStatus::Ready => "ready",
                MandateStatus::Cancelled => "cancelled",
            },
            PluginReply::Dispute(dispute) => match dispute.status {
                DisputeStatus::Open => "open",
                DisputeStatus::Answered => "answered",
                DisputeStatus::Won => "won",
                DisputeStatus::Lost => "lost",
            },
            PluginReply::Holder(_) => "holder",
            PluginReply::Declined(reason) => (*reason).into(),
            PluginReply::Refund(refund) => match refund.status {
                ProviderRefundStatus::Pending => "pending",
                ProviderRefundStatus::Done => "done",
                ProviderRefundStatus::Failed => "failed",
            },
            PluginReply::Parsed(Ok(_)) => "believed",
            PluginReply::Parsed(Err(NotificationRefusal::Unauthentic)) => "unauthentic",
            PluginReply::Parsed(Err(NotificationRefusal::Malformed(_))) => "malformed",
            PluginReply::Received(_) => "received",
            PluginReply::Accepted(_) => "accepted",
            PluginReply::Entry(_) | PluginReply::Compared(_) | PluginReply::Read(_) => "entry",
        }
    }
}

impl PluginHandle {
    /// Makes a call and discards its result. `Err` is a summary of the failure.
    pub async fn execute_for_status(
        &self,
        credentials: &Credentials,
        call: &Call,
    ) -> Result<(), String> {
        failure_summary(&self.execute(credentials, call).await)
    }
}

/// Returns `Err` with a summary if the call failed or the webhook was rejected.
pub fn failure_summary(reply: &Result<PluginReply, CallError>) -> Result<(), String> {
    match reply {
        Ok(reply @ PluginReply::Parsed(Err(_))) => Err(reply.summary().to_owned()),
        Ok(_) => Ok(()),
        Err(CallError { fault, .. }) => {
            Err(format!("{:?} {}", fault.category, fault.code).trim_end().to_lowercase())
        }
    }
}
