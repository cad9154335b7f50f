//! Payments and refunds for which the host keeps data of the plugin, and the choice between the
//! interfaces for them and those that take a reference only.

use bytes::Bytes;

use super::webhook::{deserialize_text, serialize_text};
use crate::prelude::*;
use crate::{
    CheckoutOrder, CheckoutSession, PartialRefundOrder, Provider, ProviderPayment, ProviderRefund,
    RefundOrder,
};
use tollhouse_platform::values::money::Money;

pub const SESSIONS: &str = "sessions";
pub const SESSION_REFUNDS: &str = "session-refunds";
const REFUNDS: &str = "refunds";
const PARTIAL_REFUNDS: &str = "partial-refunds";
const PARTIAL_DEBITS: &str = "partial-debits";

/// Data of a plugin, which only the plugin reads. Recordings contain it as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginData(
    #[serde(serialize_with = "serialize_text", deserialize_with = "deserialize_text")] pub Bytes,
);

/// A payment as the host knows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct KnownSession {
    pub service_ref: String,
    /// Empty until a verification has returned one.
    pub transaction_id: String,
    /// The ordered amount.
    pub amount: Money,
    /// The start of the last request, as in RFC 3339.
    pub started_at: String,
    /// `None` if the response with the session was lost.
    pub state: Option<PluginData>,
    /// The result of the last notification.
    pub notified: Option<PluginData>,
}

/// A refund to request.
#[derive(Clone, Serialize, Deserialize)]
pub struct SessionRefundOrder {
    pub session: KnownSession,
    pub refund_ref: String,
    pub amount: Money,
    pub reason: String,
    pub notification_url: String,
}

/// A refund as the host knows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct KnownRefund {
    pub session: KnownSession,
    pub refund_ref: String,
    pub amount: Money,
    /// Empty if the response to the request was lost.
    pub provider_id: String,
    pub state: Option<PluginData>,
    pub notified: Option<PluginData>,
}

impl Call {
    /// Returns whether the call reads a webhook.
    pub(crate) fn is_notification(&self) -> bool {
        matches!(
            self,
            Call::ParseNotification(_) | Call::ReceiveForSession(..) | Call::ReceiveForRefund(..)
        )
    }
}

impl Provider {
    /// Returns whether the host keeps data of the plugin for each payment.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        self.exports(SESSIONS)
    }

    #[must_use]
    pub fn has_session_refunds(&self) -> bool {
        self.exports(SESSION_REFUNDS)
    }

    #[must_use]
    pub fn supports_refunds(&self) -> bool {
        self.exports(REFUNDS) || self.has_session_refunds()
    }

    #[must_use]
    pub fn supports_partial_refunds(&self) -> bool {
        self.exports(PARTIAL_REFUNDS) && self.exports(REFUNDS)
    }

    /// Returns whether charges can take a part of the amount.
    #[must_use]
    pub fn has_partial_debits(&self) -> bool {
        self.exports(PARTIAL_DEBITS)
    }

    /// Opens a session, in which the payer pays.
    pub async fn open_session(
        &self,
        credentials: &Credentials,
        order: &CheckoutOrder,
    ) -> Result<CheckoutSession, CallError> {
        match self.has_sessions() {
            true => self.start_session(credentials, order).await,
            false => self.start_checkout(credentials, order).await,
        }
    }

    /// Queries the provider about a payment.
    pub async fn query(
        &self,
        credentials: &Credentials,
        session: &KnownSession,
    ) -> Result<ProviderPayment, CallError> {
        match self.has_sessions() {
            true => self.verify_session(credentials, session).await,
            false => self.verify(credentials, &session.service_ref).await,
        }
    }

    /// Requests a refund: a partial one if `earlier` has the provider's ids of earlier refunds.
    pub async fn request_refund(
        &self,
        credentials: &Credentials,
        order: &SessionRefundOrder,
        earlier: Option<Vec<String>>,
    ) -> Result<ProviderRefund, CallError> {
        if self.has_session_refunds() {
            return self.start_session_refund(credentials, order).await;
        }
        let SessionRefundOrder { session, refund_ref, amount, reason, .. } = order.clone();
        let KnownSession { service_ref, transaction_id, .. } = session;
        let order = RefundOrder { service_ref, transaction_id, refund_ref, amount, reason };
        match earlier {
            None => self.start_refund(credentials, &order).await,
            Some(earlier) => {
                let part = PartialRefundOrder { order, earlier };
                self.start_partial_refund(credentials, &part).await
            }
        }
    }

    /// Queries the provider about a refund.
    pub async fn query_refund(
        &self,
        credentials: &Credentials,
        refund: &KnownRefund,
    ) -> Result<ProviderRefund, CallError> {
        match self.has_session_refunds() {
            true => self.check_session_refund(credentials, refund).await,
            false => self.check_refund(credentials, &refund.provider_id).await,
        }
    }
}
