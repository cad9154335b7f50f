//! What the host asks of a payment provider, of an SMS gateway and of a country's registers, in the host's own types.
//!
//! Each of them is a sandboxed component. This module and those below it are the only ones that know WebAssembly; the rest
//! of the host sees [`Provider`], [`Gateway`] and [`Registers`]. A call either gives what was asked for or a [`CallError`], which says whether
//! something may have been done.

mod admission;
pub mod api;
mod bindings;
mod breaker;
mod bulkhead;
mod cache;
mod callable;
mod calls;
mod capabilities;
mod compile;
mod country;
mod cpu;
mod drift;
mod engine;
mod examples;
mod follow;
mod health;
mod heard;
mod life;
mod manifest;
mod output;
mod pace;
mod places;
mod progress;
mod publishers;
mod recent;
mod registers;
mod registry;
mod reply;
mod send;
mod serving;
mod session;
mod signature;
mod store;
mod v1;
mod vault;
mod versions;

use std::ops::Deref;

use futures::FutureExt;
use serde::{Deserialize, Serialize};

use self::vault::VaultError;
pub use self::{
    admission::Check,
    bindings::DeclaredSecrets,
    callable::{Callable, Credentials, Plugin, Watch},
    calls::outcome,
    compile::{CodeCache, Compiler, compile_as_child, fault as cache_fault},
    country::{Country, IdentityType},
    engine::Limits,
    examples::{
        Call, EMAIL as EXAMPLE_EMAIL, Examples, SECRET as EXAMPLE_SECRET,
        SERVICE_REF as EXAMPLE_REFERENCE,
    },
    heard::{Answered, Heard, Recorded, Recorder, Silence, Vouched},
    life::Wish,
    manifest::{Kind, Manifest, ReferenceRules, Surface},
    progress::Usage,
    publishers::{TrustPolicy, TrustedKey},
    registers::{Comparison, Entry, Image, Person, Question, Registers},
    registry::{Plugins, serving},
    reply::{End, Reply},
    serving::Absence,
    session::NO_SETTING,
    signature::{PrivateKey, PublicKey, SIGNATURE_BYTES, Signed},
    v1::{Answering, Floor, Native, Typed, Warm},
    vault::REDACTED,
};
use crate::{
    clock::Timestamp,
    error::Error,
    money::{Minor, Money},
};

/// Why a plugin could not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub category: FaultCategory,
    pub code: String,
    /// For operators.
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

impl Fault {
    /// The code of one that the plugin did not mean: it trapped, or met a limit.
    pub const BROKE: &str = "plugin-broke";
    /// The code of a call that the host did not make, because nothing may leave it.
    pub const EGRESS_CLOSED: &str = "egress-closed";

    #[must_use]
    pub fn new(category: FaultCategory, code: &str, message: impl Into<String>) -> Fault {
        let retryable = category == FaultCategory::Unavailable;
        let (code, message) = (code.to_owned(), message.into());
        Fault { category, code, message, retryable, details: Vec::new() }
    }
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Fault {
        match error {
            VaultError::NoSecret(name) => {
                let message = format!(
                    "the account has no secret {name}, or the manifest's secrets do not name it"
                );
                Fault::new(FaultCategory::Misconfigured, "no-secret", message)
            }
            VaultError::NoAlgorithm(name) => {
                let message = format!("the host knows no algorithm {name}");
                Fault::new(FaultCategory::Invalid, "no-algorithm", message)
            }
            VaultError::TooManyPlaceholders => {
                let message = "a call may have 64 different placeholders";
                Fault::new(FaultCategory::Misconfigured, "too-many-placeholders", message)
            }
            VaultError::TooLong => {
                let message = "vault.hmac and vault.matches take at most 1 MiB of data";
                Fault::new(FaultCategory::Misconfigured, "too-large", message)
            }
        }
    }
}

/// A call that gave nothing, and what is certain about it.
#[derive(Clone, Debug)]
pub struct CallError {
    pub fault: Fault,
    pub certainty: Certainty,
    pub timed_out: bool,
    /// The host has not asked, or has not asked on: it is worth trying after so many seconds.
    pub retry_after_s: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Nothing was done at the provider.
    NotDone,
    /// It may have been done: ask before it is done again.
    Unknown,
}

impl CallError {
    /// What callers hear: that the provider is out of order, and nothing of its words.
    #[must_use]
    pub fn into_error(self, provider: &str) -> Error {
        let Fault { category, code, message, .. } = self.fault;
        if code == Fault::EGRESS_CLOSED {
            return Error::Unavailable("this host runs with no_jobs: it contacts no provider");
        }
        let detail = format!("{category:?} {code:?}: {message}");
        if self.timed_out {
            let message = format!("{provider} did not answer in time, please try again later");
            return Error::UpstreamTimeout { message, detail };
        }
        let message = format!("{provider} is unavailable, please try again later");
        match self.retry_after_s {
            Some(retry_after_s) => Error::Busy { message, detail, retry_after_s },
            None => Error::Upstream { message, detail },
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub struct CheckoutOrder {
    pub service_ref: String,
    pub amount: Money,
    pub email: String,
    pub customer_name: Option<String>,
    pub narration: String,
    /// Empty: all that the provider offers.
    pub channels: Vec<String>,
    pub success_url: String,
    pub cancel_url: Option<String>,
    /// JSON object, echoed by the provider.
    pub metadata: String,
    pub save_instrument: bool,
}

#[derive(Debug, Serialize)]
pub struct CheckoutSession {
    pub url: String,
    pub service_ref: String,
    pub raw: String,
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

/// A payment as the provider knows it.
#[derive(Clone, Debug, Serialize)]
pub struct ProviderPayment {
    pub status: PaymentStatus,
    pub service_ref: String,
    pub transaction_id: String,
    pub amount: Money,
    /// What was asked for, where it can differ from what was taken.
    pub requested: Option<Money>,
    pub fees: Option<Minor>,
    pub channel: String,
    pub paid_at: Option<Timestamp>,
    pub message: String,
    pub instrument: Option<Instrument>,
    pub challenge_url: Option<String>,
    /// The order's metadata as the provider has it: a JSON object.
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

/// What is reusable of how the customer paid. Its token charges again: never shown, never logged. As JSON only where it is masked, in
/// recordings.
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

#[derive(Clone, Debug, Serialize)]
pub struct Refund {
    pub status: RefundStatus,
    pub provider_id: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    Pending,
    Done,
    Failed,
}

/// What a notification is about. It is never believed: the host verifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notification {
    pub subject: Subject,
    pub event: String,
    pub service_ref: String,
    pub transaction_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Payment,
    Refund,
    Mandate,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Unauthentic,
    Malformed(String),
}

/// A text message to one phone. Nothing of it may be logged.
#[derive(Clone, Serialize, Deserialize)]
pub struct TextMessage {
    /// E.164, with its plus sign.
    pub to: String,
    /// Whom it comes from, in the gateway's terms; "": the account's own.
    pub sender: String,
    pub text: String,
    /// Unique per message, and the same when it is sent again.
    pub reference: String,
}

/// A payment provider, ready to be called.
#[derive(Clone)]
pub struct Provider(Callable);

impl Deref for Provider {
    type Target = Callable;

    fn deref(&self) -> &Callable {
        &self.0
    }
}

impl Provider {
    pub async fn start_checkout(
        &self,
        credentials: &Credentials,
        order: &CheckoutOrder,
    ) -> Result<CheckoutSession, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::StartCheckout(order.clone());
        self.call_on_record("checkout.start", asked, credentials, &|run| {
            guest.start_checkout(run.store, run.instance, order).boxed()
        })
        .await
    }

    pub async fn verify(
        &self,
        credentials: &Credentials,
        service_ref: &str,
    ) -> Result<ProviderPayment, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::Verify(service_ref.to_owned());
        self.call_on_record("verification.verify", asked, credentials, &|run| {
            guest.verify(run.store, run.instance, service_ref).boxed()
        })
        .await
    }

    pub async fn charge_card(
        &self,
        credentials: &Credentials,
        order: &CardOrder,
    ) -> Result<ProviderPayment, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::ChargeCard(order.clone());
        self.call_on_record("saved-card.charge", asked, credentials, &|run| {
            guest.charge_card(run.store, run.instance, order).boxed()
        })
        .await
    }

    /// `false`: the provider has no such call.
    pub async fn deauthorize(
        &self,
        credentials: &Credentials,
        token: &str,
    ) -> Result<bool, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::Deauthorize(token.to_owned());
        self.call_on_record("saved-card.deauthorize", asked, credentials, &|run| {
            guest.deauthorize(run.store, run.instance, token).boxed()
        })
        .await
    }

    pub async fn debit(
        &self,
        credentials: &Credentials,
        order: &DebitOrder,
    ) -> Result<ProviderPayment, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::Debit(order.clone());
        self.call_on_record("direct-debit.debit", asked, credentials, &|run| {
            guest.debit(run.store, run.instance, order).boxed()
        })
        .await
    }

    pub async fn start_refund(
        &self,
        credentials: &Credentials,
        order: &RefundOrder,
    ) -> Result<Refund, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::StartRefund(order.clone());
        self.call_on_record("refunds.start", asked, credentials, &|run| {
            guest.start_refund(run.store, run.instance, order).boxed()
        })
        .await
    }

    pub async fn check_refund(
        &self,
        credentials: &Credentials,
        provider_id: &str,
    ) -> Result<Refund, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::CheckRefund(provider_id.to_owned());
        self.call_on_record("refunds.check", asked, credentials, &|run| {
            guest.check_refund(run.store, run.instance, provider_id).boxed()
        })
        .await
    }

    /// Checks who sent a notification and says what it is about. Header names are lower case.
    pub async fn parse_notification(
        &self,
        credentials: &Credentials,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Result<Vec<Notification>, Refusal>, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::ParseNotification { headers: headers.to_vec(), body: body.to_vec() };
        let told = self
            .call_on_record("notifications.parse", asked, credentials, &|run| {
                guest.parse_notification(run.store, run.instance, headers, body).boxed()
            })
            .await?;
        Ok(told.map_err(|refusal| match refusal {
            Refusal::Unauthentic => Refusal::Unauthentic,
            // It is logged, and the notification may have carried a secret.
            Refusal::Malformed(why) => {
                Refusal::Malformed(self.manifest().grant(credentials).redact(&why))
            }
        }))
    }
}

/// An SMS gateway, ready to be called.
#[derive(Clone)]
pub struct Gateway(Callable);

impl Deref for Gateway {
    type Target = Callable;

    fn deref(&self) -> &Callable {
        &self.0
    }
}

impl Gateway {
    /// The gateway's id of the message that it accepted. A fault that is `Invalid`, `Refused` or `NotFound` is about this
    /// message and its number; any other is about the gateway, and another one may be asked.
    pub async fn send_text(
        &self,
        credentials: &Credentials,
        message: &TextMessage,
    ) -> Result<String, CallError> {
        let guest = &self.plugin.guest;
        let asked = || Call::SendText(message.clone());
        self.call_on_record("sms.send", asked, credentials, &|run| {
            guest.send_text(run.store, run.instance, message).boxed()
        })
        .await
    }
}
