//! Why a bank or provider declined a charge: a closed list, beside the provider's own text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

use crate::{Cause, Fault};

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
    /// A limit of the payer, for example of a day.
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
