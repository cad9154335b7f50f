//! Constructors of [`Fault`]. Each message passes through [`text::short`], so a plugin may forward
//! an upstream's message.

use crate::text;
use crate::types::{Fault, FaultCategory};

impl Fault {
    /// `invalid`: the request cannot be served as given, because of `field`.
    pub fn invalid(field: &str, message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Invalid, message.as_ref()).with_detail("field", field)
    }

    /// `refused`: the upstream refused the request.
    pub fn refused(code: &str, message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Refused, message.as_ref()).with_code(code)
    }

    /// `not-found`: the upstream does not have the requested object.
    pub fn not_found(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::NotFound, message.as_ref())
    }

    /// `unavailable`: the upstream is out of order; the same call may succeed later.
    pub fn unavailable(message: impl AsRef<str>) -> Fault {
        Fault { retryable: true, ..fault(FaultCategory::Unavailable, message.as_ref()) }
    }

    /// `misconfigured`: a setting or a secret is missing or wrong.
    pub fn misconfigured(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Misconfigured, message.as_ref())
    }

    /// `other`: any other fault.
    pub fn other(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Other, message.as_ref())
    }

    /// Sets the code: the upstream's own, or one of the contract's.
    pub fn with_code(self, code: &str) -> Fault {
        Fault { code: text::code(code), ..self }
    }

    /// Adds a detail, which must never be a secret or personal data.
    pub fn with_detail(mut self, name: &str, value: &str) -> Fault {
        self.details.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds the cause of a rejected payment, for which the host composes the message to clients:
    /// `amount-step`, `below-minimum`, `above-maximum`, `unsupported-currency`,
    /// `unsupported-channel`, `unsupported-number`, `insufficient-funds`, `payer-limit`,
    /// `payer-busy` or `account-restricted`.
    pub fn with_cause(self, cause: &str) -> Fault {
        self.with_detail("cause", cause)
    }

    /// Adds the limit that an amount violates, in the currency's minor unit.
    pub fn with_limit(self, minor: u64) -> Fault {
        self.with_detail("limit", &minor.to_string())
    }

    /// Returns whether the category is `invalid`, `refused` or `not-found`: the host then treats
    /// the operation as not executed.
    pub fn is_refusal(&self) -> bool {
        use FaultCategory::{Invalid, NotFound, Refused};
        matches!(self.category, Invalid | Refused | NotFound)
    }

    /// Changes the category to `unavailable`, for a failure that must not be taken for the outcome
    /// of the operation.
    pub fn into_unavailable(self) -> Fault {
        Fault { category: FaultCategory::Unavailable, retryable: true, ..self }
    }

    /// Returns the request field at fault, if the fault names one.
    pub fn field(&self) -> Option<&str> {
        self.details.iter().find(|(name, _)| name == "field").map(|(_, value)| value.as_str())
    }
}

fn fault(category: FaultCategory, message: &str) -> Fault {
    Fault {
        category,
        code: String::new(),
        message: text::short(message),
        retryable: false,
        details: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_invalid_refused_and_not_found_are_refusals() {
        let faults = [
            (Fault::invalid("amount", ""), true),
            (Fault::refused("", ""), true),
            (Fault::not_found(""), true),
            (Fault::unavailable(""), false),
            (Fault::misconfigured(""), false),
            (Fault::other(""), false),
        ];
        for (fault, refuses) in faults {
            assert_eq!(fault.is_refusal(), refuses, "{fault:?}");
            let fault = fault.with_code("x").into_unavailable();
            assert_eq!((fault.category, fault.retryable), (FaultCategory::Unavailable, true));
            assert_eq!(fault.code, "x");
        }
    }
}
