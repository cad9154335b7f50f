//! Short ways to say why a call could not be answered. Every message goes through [`text::short`], so that an upstream's
//! own words may be handed on.

use crate::text;
use crate::types::{Fault, FaultCategory};

impl Fault {
    /// The request as given cannot be served; `field` is to blame.
    pub fn invalid(field: &str, message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Invalid, message.as_ref()).with_detail("field", field)
    }

    /// The upstream understood and said no.
    pub fn refused(code: &str, message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Refused, message.as_ref()).with_code(code)
    }

    /// The upstream knows of no such thing.
    pub fn not_found(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::NotFound, message.as_ref())
    }

    /// The upstream is out of order; the same call may succeed later.
    pub fn unavailable(message: impl AsRef<str>) -> Fault {
        Fault { retryable: true, ..fault(FaultCategory::Unavailable, message.as_ref()) }
    }

    /// A setting or a secret is missing or wrong.
    pub fn misconfigured(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Misconfigured, message.as_ref())
    }

    /// None of the above.
    pub fn other(message: impl AsRef<str>) -> Fault {
        fault(FaultCategory::Other, message.as_ref())
    }

    /// The same with a code: the upstream's or one of the contract's.
    pub fn with_code(self, code: &str) -> Fault {
        Fault { code: text::code(code), ..self }
    }

    /// The same with one more detail. Never a secret or personal data.
    pub fn with_detail(mut self, name: &str, value: &str) -> Fault {
        self.details.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether it says no: `invalid`, `refused` or `not-found`. The host takes what was asked for as not done then.
    pub fn is_refusal(&self) -> bool {
        use FaultCategory::{Invalid, NotFound, Refused};
        matches!(self.category, Invalid | Refused | NotFound)
    }

    /// The same as `unavailable`, where what went wrong must not pass for an answer to what was asked for.
    pub fn into_unavailable(self) -> Fault {
        Fault { category: FaultCategory::Unavailable, retryable: true, ..self }
    }

    /// The field of the request that is to blame, if one was named.
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
    fn what_says_no_and_what_must_not() {
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
