//! Results of plugin calls in one type for all functions.

use crate::{
    Call, CallError, CheckoutSession, CountryPlugin, Credentials, FaceComparison, Gateway,
    Notification, NotificationRefusal, PaymentStatus, PluginHandle, Provider, ProviderPayment,
    ProviderRefund, ProviderRefundStatus, RegisterEntry,
};

pub enum PluginReply {
    Session(CheckoutSession),
    Payment(Box<ProviderPayment>),
    /// `false`: the provider does not support deauthorization.
    Deauthorized(bool),
    Refund(ProviderRefund),
    Notifications(Vec<Notification>),
    /// A rejected webhook, which is not a fault.
    Refused(NotificationRefusal),
    /// The gateway's message id.
    Accepted(String),
    Entry(RegisterEntry),
    Compared(RegisterEntry, FaceComparison),
    /// The identifier on a document, and its entry.
    Read(String, RegisterEntry),
}

/// The one-word summary of a result.
pub trait ResultSummary {
    fn summary(&self) -> &'static str;
}

/// Summary of a webhook that the provider did not sign. Anyone can send one.
pub const UNAUTHENTIC: &str = "unauthentic";

impl ResultSummary for CheckoutSession {
    fn summary(&self) -> &'static str {
        "session"
    }
}

impl ResultSummary for ProviderPayment {
    fn summary(&self) -> &'static str {
        match self.status {
            PaymentStatus::Pending => "pending",
            PaymentStatus::Success => "success",
            PaymentStatus::Failed => "failed",
            PaymentStatus::Reversed => "reversed",
        }
    }
}

impl ResultSummary for bool {
    fn summary(&self) -> &'static str {
        if *self { "true" } else { "false" }
    }
}

impl ResultSummary for ProviderRefund {
    fn summary(&self) -> &'static str {
        match self.status {
            ProviderRefundStatus::Pending => "pending",
            ProviderRefundStatus::Done => "done",
            ProviderRefundStatus::Failed => "failed",
        }
    }
}

impl ResultSummary for Result<Vec<Notification>, NotificationRefusal> {
    fn summary(&self) -> &'static str {
        match self {
            Ok(_) => "believed",
            Err(NotificationRefusal::Unauthentic) => UNAUTHENTIC,
            Err(NotificationRefusal::Malformed(_)) => "malformed",
        }
    }
}

/// The gateway's message id.
impl ResultSummary for String {
    fn summary(&self) -> &'static str {
        "accepted"
    }
}

impl ResultSummary for PluginReply {
    fn summary(&self) -> &'static str {
        match self {
            PluginReply::Session(session) => session.summary(),
            PluginReply::Payment(payment) => payment.summary(),
            PluginReply::Deauthorized(done) => done.summary(),
            PluginReply::Refund(refund) => refund.summary(),
            PluginReply::Notifications(_) => "believed",
            PluginReply::Refused(NotificationRefusal::Unauthentic) => UNAUTHENTIC,
            PluginReply::Refused(NotificationRefusal::Malformed(_)) => "malformed",
            PluginReply::Accepted(id) => id.summary(),
            PluginReply::Entry(_) | PluginReply::Compared(..) | PluginReply::Read(..) => "entry",
        }
    }
}

impl PluginHandle {
    pub async fn execute(
        &self,
        credentials: &Credentials,
        call: &Call,
    ) -> Result<PluginReply, CallError> {
        let (provider, gateway) = (Provider(self.clone()), Gateway(self.clone()));
        let registers = CountryPlugin(self.clone());
        let payment = |payment| PluginReply::Payment(Box::new(payment));
        match call {
            Call::StartCheckout(order) => {
                provider.start_checkout(credentials, order).await.map(PluginReply::Session)
            }
            Call::Verify(service_ref) => {
                provider.verify(credentials, service_ref).await.map(payment)
            }
            Call::ChargeCard(order) => provider.charge_card(credentials, order).await.map(payment),
            Call::Deauthorize(token) => {
                provider.deauthorize(credentials, token).await.map(PluginReply::Deauthorized)
            }
            Call::Debit(order) => provider.debit(credentials, order).await.map(payment),
            Call::StartRefund(order) => {
                provider.start_refund(credentials, order).await.map(PluginReply::Refund)
            }
            Call::CheckRefund(id) => {
                provider.check_refund(credentials, id).await.map(PluginReply::Refund)
            }
            Call::ParseNotification { headers, body } => {
                let parsed = provider.parse_notification(credentials, headers, body).await?;
                Ok(parsed.map_or_else(PluginReply::Refused, PluginReply::Notifications))
            }
            Call::SendText(message) => {
                gateway.send_text(credentials, message).await.map(PluginReply::Accepted)
            }
            Call::LookUp(question) => {
                registers.look_up(credentials, question).await.map(PluginReply::Entry)
            }
            Call::Compare(question, selfie) => {
                let compared = registers.compare(credentials, question, selfie).await;
                compared.map(|(entry, comparison)| PluginReply::Compared(entry, comparison))
            }
            Call::Read(identity, document) => {
                let read = registers.read(credentials, identity, document).await;
                read.map(|(identifier, entry)| PluginReply::Read(identifier, entry))
            }
        }
    }

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
        Ok(PluginReply::Refused(NotificationRefusal::Unauthentic)) => Err("unauthentic".to_owned()),
        Ok(PluginReply::Refused(NotificationRefusal::Malformed(_))) => Err("malformed".to_owned()),
        Ok(_) => Ok(()),
        Err(CallError { fault, .. }) => {
            Err(format!("{:?} {}", fault.category, fault.code).trim_end().to_lowercase())
        }
    }
}
