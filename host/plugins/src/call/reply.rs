//! Results of plugin calls in one type for all functions.

use crate::{
    Call, CallError, Callable, CheckoutSession, Comparison, Credentials, Entry, Gateway,
    Notification, PaymentStatus, Provider, ProviderPayment, Refund, RefundStatus, Refusal,
    Registers,
};

pub enum Reply {
    Session(CheckoutSession),
    Payment(Box<ProviderPayment>),
    /// `false`: the provider does not support deauthorization.
    Deauthorized(bool),
    Refund(Refund),
    Notifications(Vec<Notification>),
    /// A rejected webhook, which is not a fault.
    Refused(Refusal),
    /// The gateway's message id.
    Accepted(String),
    Entry(Entry),
    Compared(Entry, Comparison),
    /// The identifier on a document, and its entry.
    Read(String, Entry),
}

/// The one-word summary of a result.
pub trait End {
    fn end(&self) -> &'static str;
}

/// Summary of a webhook that the provider did not sign. Anyone can send one.
pub const UNAUTHENTIC: &str = "unauthentic";

impl End for CheckoutSession {
    fn end(&self) -> &'static str {
        "session"
    }
}

impl End for ProviderPayment {
    fn end(&self) -> &'static str {
        match self.status {
            PaymentStatus::Pending => "pending",
            PaymentStatus::Success => "success",
            PaymentStatus::Failed => "failed",
            PaymentStatus::Reversed => "reversed",
        }
    }
}

impl End for bool {
    fn end(&self) -> &'static str {
        if *self { "true" } else { "false" }
    }
}

impl End for Refund {
    fn end(&self) -> &'static str {
        match self.status {
            RefundStatus::Pending => "pending",
            RefundStatus::Done => "done",
            RefundStatus::Failed => "failed",
        }
    }
}

impl End for Result<Vec<Notification>, Refusal> {
    fn end(&self) -> &'static str {
        match self {
            Ok(_) => "believed",
            Err(Refusal::Unauthentic) => UNAUTHENTIC,
            Err(Refusal::Malformed(_)) => "malformed",
        }
    }
}

/// The gateway's message id.
impl End for String {
    fn end(&self) -> &'static str {
        "accepted"
    }
}

impl End for Reply {
    fn end(&self) -> &'static str {
        match self {
            Reply::Session(session) => session.end(),
            Reply::Payment(payment) => payment.end(),
            Reply::Deauthorized(done) => done.end(),
            Reply::Refund(refund) => refund.end(),
            Reply::Notifications(_) => "believed",
            Reply::Refused(Refusal::Unauthentic) => UNAUTHENTIC,
            Reply::Refused(Refusal::Malformed(_)) => "malformed",
            Reply::Accepted(id) => id.end(),
            Reply::Entry(_) | Reply::Compared(..) | Reply::Read(..) => "entry",
        }
    }
}

impl Callable {
    pub async fn ask(&self, credentials: &Credentials, call: &Call) -> Result<Reply, CallError> {
        let (provider, gateway) = (Provider(self.clone()), Gateway(self.clone()));
        let registers = Registers(self.clone());
        let payment = |payment| Reply::Payment(Box::new(payment));
        match call {
            Call::StartCheckout(order) => {
                provider.start_checkout(credentials, order).await.map(Reply::Session)
            }
            Call::Verify(service_ref) => {
                provider.verify(credentials, service_ref).await.map(payment)
            }
            Call::ChargeCard(order) => provider.charge_card(credentials, order).await.map(payment),
            Call::Deauthorize(token) => {
                provider.deauthorize(credentials, token).await.map(Reply::Deauthorized)
            }
            Call::Debit(order) => provider.debit(credentials, order).await.map(payment),
            Call::StartRefund(order) => {
                provider.start_refund(credentials, order).await.map(Reply::Refund)
            }
            Call::CheckRefund(id) => {
                provider.check_refund(credentials, id).await.map(Reply::Refund)
            }
            Call::ParseNotification { headers, body } => {
                let told = provider.parse_notification(credentials, headers, body).await?;
                Ok(told.map_or_else(Reply::Refused, Reply::Notifications))
            }
            Call::SendText(message) => {
                gateway.send_text(credentials, message).await.map(Reply::Accepted)
            }
            Call::LookUp(question) => {
                registers.look_up(credentials, question).await.map(Reply::Entry)
            }
            Call::Compare(question, selfie) => {
                let compared = registers.compare(credentials, question, selfie).await;
                compared.map(|(entry, comparison)| Reply::Compared(entry, comparison))
            }
            Call::Read(identity, document) => {
                let read = registers.read(credentials, identity, document).await;
                read.map(|(identifier, entry)| Reply::Read(identifier, entry))
            }
        }
    }

    /// Makes a call and discards its result. `Err` is a summary of the failure.
    pub async fn make(&self, credentials: &Credentials, call: &Call) -> Result<(), String> {
        in_words(&self.ask(credentials, call).await)
    }
}

/// Returns `Err` with a summary if the call failed or the webhook was rejected.
pub fn in_words(reply: &Result<Reply, CallError>) -> Result<(), String> {
    match reply {
        Ok(Reply::Refused(Refusal::Unauthentic)) => Err("unauthentic".to_owned()),
        Ok(Reply::Refused(Refusal::Malformed(_))) => Err("malformed".to_owned()),
        Ok(_) => Ok(()),
        Err(CallError { fault, .. }) => {
            Err(format!("{:?} {}", fault.category, fault.code).trim_end().to_lowercase())
        }
    }
}
