//! Causes of a rejection: a closed list, which clients may know.

use tollhouse_platform::store::{EnumString, IntoStaticStr};

use crate::Fault;

/// Why a provider rejects a payment. A fault names it in lower case with hyphens, for example
/// `below-minimum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// The amount is not a multiple of the provider's smallest amount.
    AmountStep,
    BelowMinimum,
    AboveMaximum,
    UnsupportedCurrency,
    UnsupportedChannel,
    /// The provider does not serve this phone number.
    UnsupportedNumber,
    InsufficientFunds,
    /// A limit of the payer's account at the provider.
    PayerLimit,
    /// The card or mandate has expired.
    Expired,
    LostOrStolen,
    /// The payer's bank does not permit charges of the card or account.
    Blocked,
    /// The payer's bank cannot process the charge now.
    TryLater,
    /// The payer has not yet confirmed or declined another payment.
    PayerBusy,
    /// The provider does not permit this account to take the payment.
    AccountRestricted,
}

impl Fault {
    /// Returns the detail with this name.
    pub fn detail(&self, name: &str) -> Option<&str> {
        self.details.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// Returns the cause; `None` if there is none, or if this host does not know it.
    pub fn cause(&self) -> Option<Cause> {
        self.detail("cause")?.parse().ok()
    }

    /// Returns the limit that the amount violates, in the minor unit of its currency.
    pub fn limit(&self) -> Option<u64> {
        self.detail("limit")?.parse().ok().filter(|limit| *limit > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultCategory;

    #[test]
    fn unknown_causes_and_limits_are_ignored() {
        for (cause, limit, expected) in [
            ("below-minimum", "100", (Some(Cause::BelowMinimum), Some(100))),
            ("payer-busy", "0", (Some(Cause::PayerBusy), None)),
            ("amount-step", "1e3", (Some(Cause::AmountStep), None)),
            ("BelowMinimum", "-1", (None, None)),
            ("<b>", "99999999999999999999", (None, None)),
        ] {
            let mut fault = Fault::new(FaultCategory::Invalid, "", "");
            fault.details = vec![("cause".into(), cause.into()), ("limit".into(), limit.into())];
            assert_eq!((fault.cause(), fault.limit()), expected, "{cause} {limit}");
        }
    }
}
