//! Reasons for declined charges: a closed list, in addition to the provider's own text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

use crate::{Cause, Credentials, Fault, PaymentStatus, Provider, ProviderPayment};

/// The interface of reasons.
const DECLINES: &str = "declines";

/// Why a charge was declined.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DeclineReason")]
pub enum Decline {
    InsufficientFunds,
    Expired,
    LostOrStolen,
    /// The bank does not permit charges of the card or account.
    Blocked,
    /// A limit of the payer, for example a daily limit.
    Limit,
    /// The bank could not process the charge.
    TryLater,
    Other,
}

text_columns!(Decline);

impl Decline {
    /// Returns whether no later charge of the same card or account can succeed.
    #[must_use]
    pub fn is_hard(self) -> bool {
        matches!(self, Decline::Expired | Decline::LostOrStolen | Decline::Blocked)
    }
}

impl Provider {
    /// Adds the decline reason to a failed payment, if the plugin reports reasons. If no reason is
    /// available, the payment remains failed.
    pub async fn with_decline(
        &self,
        credentials: &Credentials,
        payment: ProviderPayment,
    ) -> ProviderPayment {
        if payment.status != PaymentStatus::Failed || !self.exports(DECLINES) {
            return payment;
        }
        let reason = self.decline_reason(credentials, &payment.message, &payment.raw).await;
        let decline = match reason {
            Ok(reason) => Some(reason),
            Err(error) => {
                let code = error.fault.code.as_str();
                tracing::warn!(plugin = self.label(), code, "no reason of a declined charge");
                None
            }
        };
        ProviderPayment { decline, ..payment }
    }
}

impl Fault {
    /// Returns why the charge was declined, if the cause of a rejection is the payer's.
    pub fn decline(&self) -> Option<Decline> {
        Some(match self.cause()? {
            Cause::InsufficientFunds => Decline::InsufficientFunds,
            Cause::Expired => Decline::Expired,
            Cause::LostOrStolen => Decline::LostOrStolen,
            Cause::Blocked => Decline::Blocked,
            Cause::PayerLimit => Decline::Limit,
            Cause::PayerBusy | Cause::TryLater => Decline::TryLater,
            Cause::AmountStep
            | Cause::BelowMinimum
            | Cause::AboveMaximum
            | Cause::UnsupportedCurrency
            | Cause::UnsupportedChannel
            | Cause::UnsupportedNumber
            | Cause::AccountRestricted => return None,
        })
    }
}
