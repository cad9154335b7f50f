//! Payment providers, SMS gateways and identity registers as sandboxed WebAssembly plugins.
//!
//! Only this module knows WebAssembly; the rest of the host uses [`Provider`], [`Gateway`] and
//! [`CountryPlugin`]. A failed call returns a [`CallError`], with the certainty of its outcome.

pub mod admission;
pub mod call;
pub mod contract;
pub mod limits;
pub mod manifest;
pub mod metrics;
mod prelude;
pub mod recording;
pub mod registry;
pub mod runtime;
pub mod statistics;

use serde::{Deserialize, Serialize};

pub use self::{
    admission::AdmissionCheck,
    manifest::{Manifest, PluginKind, Surface, reference::ReferenceRules},
    registry::{Plugins, serving},
};
pub use crate::{
    admission::{
        publishers::{TrustPolicy, TrustedKey},
        signature::{PrivateKey, PublicKey, SIGNATURE_BYTES, SignedComponent},
    },
    call::{
        cause::Cause,
        country_plugin::{FaceComparison, IdentityQuery, Image, Person, RegisterEntry},
        log::{CallLog, LoggedCall},
        outcome::outcome,
        plugin_handle::{
            CountryPlugin, Credentials, Gateway, Plugin, PluginHandle, Provider, UsageObserver,
        },
        records::{
            declines::Decline,
            disputes::{
                DisputeAnswer, DisputeFilter, DisputeKey, DisputePage, DisputeStatus, Evidence,
                ProviderDispute,
            },
            mandates::{
                Consent, DebitedAccount, KnownMandate, MandateOrder, MandateSession, MandateStatus,
                ProviderMandate,
            },
            settlements::{
                ListedKind, ListedTransaction, ProviderSettlement, SettlementPage,
                SettlementStatus, TransactionFilter, TransactionPage,
            },
        },
        reply::PluginReply,
        session::{KnownRefund, KnownSession, PluginData, SESSIONS, SessionRefundOrder},
        webhook::Webhook,
    },
    contract::v1::{
        baseline::{Baseline, NativeWorkload, ResponseMode, WarmInstance},
        functions::Call,
    },
    manifest::{
        bindings::DeclaredSecrets,
        country::{Country, IdentityType},
        examples::{
            EMAIL as EXAMPLE_EMAIL, ExampleCase, Examples, SECRET as EXAMPLE_SECRET,
            SERVICE_REF as EXAMPLE_REFERENCE,
        },
    },
    metrics::OK,
    registry::{lifecycle::InstallOptions, serving::Unavailability},
    runtime::{
        compile::{CodeCache, Compiler, compile_as_child, unusable_reason as cache_fault},
        engine::Limits,
        progress::Usage,
        session::MISSING_SETTING_PREFIX,
        transcript::{
            CompletedCall, RecordedResponse, Recorder, Transcript, TransportError, VaultResult,
        },
        vault::REDACTED,
    },
    statistics::is_failure,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::Error,
    values::money::{Minor, Money},
};

/// The failure of a plugin call, returned by the plugin or by the host on its behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub category: FaultCategory,
    pub code: String,
    /// Text for operators.
    pub message: String,
    pub retryable: bool,
    pub details: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCategory {
    Invalid,
    Refused,
    NotFound,
    Unavailable,
    Misconfigured,
    Other,
}

impl FaultCategory {
    /// Returns the name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FaultCategory::Invalid => "invalid",
            FaultCategory::Refused => "refused",
            FaultCategory::NotFound => "not_found",
            FaultCategory::Unavailable => "unavailable",
            FaultCategory::Misconfigured => "misconfigured",
            FaultCategory::Other => "other",
        }
    }
}

impl Fault {
    /// Code for a trap or an exceeded limit.
    pub const PLUGIN_BROKE: &str = "plugin-broke";
    /// Code for a call that was not made because egress is closed.
    pub const EGRESS_CLOSED: &str = "egress-closed";

    pub fn new(category: FaultCategory, code: &str, message: impl Into<String>) -> Fault {
        let retryable = category == FaultCategory::Unavailable;
        let (code, message) = (code.to_owned(), message.into());
        Fault { category, code, message, retryable, details: Vec::new() }
    }
}

/// A failed call and the certainty of its outcome.
#[derive(Clone, Debug)]
pub struct CallError {
    pub fault: Fault,
    pub certainty: Certainty,
    /// The plugin sent a request to an upstream.
    pub sent: bool,
    pub timed_out: bool,
    /// Seconds until a retry is worthwhile; set if the host rejected the call or a request.
    pub retry_after_s: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The call had no effect.
    NotDone,
    /// The call may have had its effect: verify before a retry.
    Unknown,
}

impl CallError {
    /// A call that the host does not make, or whose result it does not accept.
    pub fn not_done(fault: Fault) -> CallError {
        let (certainty, sent, timed_out) = (Certainty::NotDone, false, false);
        CallError { fault, certainty, sent, timed_out, retry_after_s: None }
    }

    /// Returns whether the plugin or its upstream rejected the operation, without an effect.
    pub fn is_certain_rejection(&self) -> bool {
        self.certainty == Certainty::NotDone
            && matches!(self.fault.category, FaultCategory::Invalid | FaultCategory::Refused)
    }

    /// Returns whether the plugin reports, after a request to the upstream, that the operation was
    /// rejected. A rejection before any request proves nothing about an earlier call.
    pub fn is_rejection(&self) -> bool {
        self.sent && self.is_certain_rejection()
    }

    /// Like [`CallError::into_error`], for a call about a person: the plugin's message is not
    /// logged either.
    pub fn into_private_error(self, provider: &str) -> Error {
        let fault = Fault { message: String::new(), ..self.fault };
        CallError { fault, ..self }.into_error(provider)
    }

    /// Converts to an error for clients, which does not contain the plugin's message.
    pub fn into_error(self, provider: &str) -> Error {
        let Fault { category, code, message, .. } = self.fault;
        if code == Fault::EGRESS_CLOSED {
            return Error::Unavailable(
                "this host runs with no_jobs and contacts no provider: use another host",
            );
        }
        let detail = format!("{category:?} {code:?}: {message}");
        if self.timed_out {
            let message = format!("{provider} did not respond in time, please try again later");
            return Error::UpstreamTimeout { message, detail };
        }
        let message = format!("{provider} is unavailable, please try again later");
        match self.retry_after_s {
            Some(retry_after_s) => Error::RetryLater { message, detail, retry_after_s },
            None => Error::Upstream { message, detail },
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub struct CheckoutOrder {
    pub service_ref: String,
    pub amount: Money,
    pub email: String,
    /// In E.164.
    #[serde(default)]
    pub phone: Option<String>,
    pub customer_name: Option<String>,
    pub narration: String,
    /// Empty: all channels of the provider.
    pub channels: Vec<String>,
    pub success_url: String,
    pub cancel_url: Option<String>,
    /// The webhook URL of this payment.
    #[serde(default)]
    pub notification_url: String,
    /// A JSON object, echoed by the provider.
    pub metadata: String,
    pub save_instrument: bool,
}

/// An open session. Without a page, `url` is empty until the host assigns its own.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckoutSession {
    pub url: String,
    /// An instruction to the payer, who confirms elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    pub service_ref: String,
    pub raw: String,
    /// `None`: the plugin has no interface for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PluginData>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct CardOrder {
    pub token: String,
    pub email: String,
    pub amount: Money,
    pub service_ref: String,
    pub narration: String,
    pub metadata: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct DebitOrder {
    pub mandate: String,
    pub email: String,
    pub amount: Money,
    pub service_ref: String,
    pub narration: String,
    pub metadata: String,
}

/// A charge of a card or mandate that may take a part of the amount.
#[derive(Clone, Serialize, Deserialize)]
pub struct PartialOrder {
    pub token: String,
    pub email: String,
    /// Maximum amount to charge.
    pub amount: Money,
    /// Minimum amount to charge.
    pub at_least: Money,
    pub service_ref: String,
    pub narration: String,
    pub metadata: String,
}

impl PartialOrder {
    /// Returns an order to charge a card at least this amount.
    #[must_use]
    pub fn of_card(order: CardOrder, at_least: Money) -> PartialOrder {
        let CardOrder { token, email, amount, service_ref, narration, metadata } = order;
        PartialOrder { token, email, amount, at_least, service_ref, narration, metadata }
    }

    /// Returns an order to debit a mandate for at least this amount.
    #[must_use]
    pub fn of_mandate(order: DebitOrder, at_least: Money) -> PartialOrder {
        let DebitOrder { mandate: token, email, amount, service_ref, narration, metadata } = order;
        PartialOrder { token, email, amount, at_least, service_ref, narration, metadata }
    }
}

/// A payment as recorded by the provider.
#[derive(Clone, Debug, Serialize)]
pub struct ProviderPayment {
    pub status: PaymentStatus,
    pub service_ref: String,
    pub transaction_id: String,
    pub amount: Money,
    /// The requested amount, where the paid amount can differ.
    pub requested: Option<Money>,
    pub fees: Option<Minor>,
    pub channel: String,
    pub paid_at: Option<Timestamp>,
    pub message: String,
    /// Why the charge was declined; `None` if it is not known. Set by [`Provider::with_decline`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline: Option<Decline>,
    pub instrument: Option<Instrument>,
    pub challenge_url: Option<String>,
    /// The order's metadata as stored by the provider: a JSON object.
    pub metadata: Option<String>,
    pub raw: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    Pending,
    Success,
    Failed,
    Reversed,
}

/// A payment instrument. Its token allows charges: never show or log it. Recordings mask it.
#[derive(Clone, Serialize)]
pub struct Instrument {
    pub kind: String,
    pub token: String,
    pub reusable: bool,
    pub signature: String,
    pub email: String,
    pub bin: String,
    pub last4: String,
    pub exp_month: String,
    pub exp_year: String,
    pub brand: String,
    pub bank: String,
    pub country: String,
    pub holder: String,
}

impl std::fmt::Debug for Instrument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instrument").field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub struct RefundOrder {
    pub service_ref: String,
    pub transaction_id: String,
    pub refund_ref: String,
    pub amount: Money,
    pub reason: String,
}

/// A refund of a part of a payment to request.
#[derive(Clone, Serialize, Deserialize)]
pub struct PartialRefundOrder {
    pub order: RefundOrder,
    /// The provider's ids of the payment's earlier refunds.
    pub earlier: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProviderRefund {
    pub status: ProviderRefundStatus,
    pub provider_id: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PluginData>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderRefundStatus {
    Pending,
    Done,
    Failed,
}

/// A virtual account to open for a payer.
#[derive(Clone)]
pub struct AccountOrder {
    pub account_ref: String,
    pub currency: String,
    pub email: String,
    pub name: String,
    pub phone: Option<String>,
    /// Type and number.
    pub identity: Option<(String, String)>,
}

/// A bank account whose transfers arrive without an order.
#[derive(Clone)]
pub struct VirtualAccount {
    pub account_number: String,
    /// The name of the bank.
    pub bank: String,
    /// The account's name, as payers see it.
    pub holder: String,
    pub provider_id: String,
}

/// How a provider identifies a virtual account. Never empty.
#[derive(Clone)]
pub enum AccountName {
    Reference(String),
    ProviderId(String),
    Number(String),
}

/// A transfer to a virtual account.
pub struct IncomingTransfer {
    pub account: AccountName,
    pub payment: ProviderPayment,
}

/// A bank whose accounts can be queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    pub code: String,
    pub name: String,
}

/// The subject of a webhook. It is not trusted: the host verifies the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notification {
    pub subject: NotificationSubject,
    pub event: String,
    pub service_ref: String,
    pub transaction_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationSubject {
    Payment,
    Refund,
    Mandate,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationRefusal {
    Unauthentic,
    Malformed(String),
}

/// A text message to one phone. It must not be logged.
#[derive(Clone, Serialize, Deserialize)]
pub struct TextMessage {
    /// E.164 with the plus sign.
    pub to: String,
    /// Sender id in the gateway's terms; if empty, that of the account.
    pub sender: String,
    pub text: String,
    /// Unique per message; retries have the same.
    pub reference: String,
}
