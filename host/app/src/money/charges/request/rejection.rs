//! Why a provider rejects a charge, for clients. A plugin's messages are for operators only.

use crate::money::charges::{Charge, state::RejectionReason};
use crate::money::prelude::*;
use tollhouse_plugins::{Cause, manifest::amounts::Violation};

/// Seconds after which a payer may be asked again.
const PAYER_BUSY_SECONDS: u32 = 60;

/// Returns the client's error for a charge that could not be requested. Names only fields in
/// `fields`.
pub fn client_error(error: CallError, charge: &Charge, fields: &[&str]) -> Error {
    let provider = &*charge.provider;
    if !error.is_certain_rejection() {
        return error.into_error(provider);
    }
    if let Some(RejectionReason { message, .. }) = reason(&error.fault, charge) {
        if error.fault.cause() != Some(Cause::PayerBusy) {
            return Error::Invalid(message);
        }
        let retry_after_s = error.retry_after_s.unwrap_or(PAYER_BUSY_SECONDS);
        let detail = format!("{:?}: {}", error.fault.code, error.fault.message);
        return Error::RetryLater { message, detail, retry_after_s };
    }
    if error.fault.category == FaultCategory::Refused {
        return error.into_error(provider);
    }
    Error::Invalid(match error.fault.detail("field").filter(|field| fields.contains(field)) {
        Some(field) => format!("the {field} field must be one that {provider} accepts"),
        None => format!("{provider} does not accept this payment"),
    })
}

/// Returns whether the reason for a rejection is a rule of the provider or of its account.
pub fn is_of_provider(error: &CallError) -> bool {
    match error.fault.cause() {
        Some(
            Cause::AmountStep
            | Cause::BelowMinimum
            | Cause::AboveMaximum
            | Cause::UnsupportedCurrency
            | Cause::UnsupportedChannel
            | Cause::UnsupportedNumber
            | Cause::PayerLimit
            | Cause::AccountRestricted,
        ) => true,
        Some(
            Cause::InsufficientFunds
            | Cause::PayerBusy
            | Cause::Expired
            | Cause::LostOrStolen
            | Cause::Blocked
            | Cause::TryLater,
        )
        | None => false,
    }
}

/// Checks an amount against the provider's limits.
pub fn check_amount(provider: &Provider, amount: &Money) -> Result<()> {
    provider.manifest().check_amount(amount).map_err(|Violation { cause, limit }| {
        let limit = Some(Money { minor: limit, currency: amount.currency.clone() });
        Error::Invalid(describe(cause, limit, &provider.manifest().name, &amount.currency))
    })
}

/// Returns the reason that describes the cause of a fault; `None` if it has no cause.
pub fn reason(fault: &Fault, charge: &Charge) -> Option<RejectionReason> {
    let currency = &charge.currency;
    let limit = fault.limit().and_then(|limit| Money::from_iso_minor(limit, currency.clone()));
    let message = describe(fault.cause()?, limit, &charge.provider, currency);
    Some(RejectionReason { message, decline: fault.decline() })
}

fn describe(cause: Cause, limit: Option<Money>, provider: &str, currency: &Currency) -> String {
    let limit = limit.map(|limit| format!("{} {currency}", limit.minor.to_major()));
    match (cause, limit) {
        (Cause::AmountStep, Some(step)) => {
            format!("the amount field must be a multiple of {step}")
        }
        (Cause::AmountStep, None) => {
            format!("the amount field must be a multiple of the smallest amount of {provider}")
        }
        (Cause::BelowMinimum, Some(minimum)) => {
            format!("the amount field must be at least {minimum}")
        }
        (Cause::BelowMinimum, None) => format!("the amount is below the minimum of {provider}"),
        (Cause::AboveMaximum, Some(maximum)) => {
            format!("the amount field must be at most {maximum}")
        }
        (Cause::AboveMaximum, None) => format!("the amount is above the maximum of {provider}"),
        (Cause::UnsupportedCurrency, _) => {
            format!("{provider} does not support {currency} for this account")
        }
        (Cause::UnsupportedChannel, _) => format!("{provider} does not support these channels"),
        (Cause::UnsupportedNumber, _) => format!("{provider} does not serve this phone number"),
        (Cause::InsufficientFunds, _) => "the payer's balance is insufficient".to_owned(),
        (Cause::PayerLimit, _) => format!("the payer has reached a limit at {provider}"),
        (Cause::Expired, _) => "the card or mandate has expired".to_owned(),
        (Cause::LostOrStolen | Cause::Blocked, _) => {
            "the payer's bank does not permit charges of this card or account".to_owned()
        }
        (Cause::TryLater, _) => "the payer's bank cannot process the charge now".to_owned(),
        (Cause::PayerBusy, _) => {
            "the payer has not answered another payment request yet".to_owned()
        }
        (Cause::AccountRestricted, _) => {
            format!("{provider} does not permit this account to take the payment")
        }
    }
}
