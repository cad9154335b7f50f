//! Retries of charges.

use crate::types::{Fault, FaultCategory};

/// Returns the result of a charge. If it was refused, looks the charge up by its reference with
/// `find`.
///
/// An upstream may refuse a retry because an earlier attempt, whose response was lost, succeeded.
/// The refusal is therefore returned only if `find` returns `not-found` and the refusal's code is
/// not `duplicate` (the reference is in use). Any other fault of `find` is returned as
/// `unavailable`, because the outcome is unknown.
pub fn charged<T>(
    result: Result<T, Fault>,
    duplicate: &str,
    find: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let refusal = match result {
        Err(fault) if fault.is_refusal() => fault,
        result => return result,
    };
    find().map_err(|fault| match fault.category {
        FaultCategory::NotFound if refusal.code != duplicate => refusal,
        _ => fault.into_unavailable(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: Result<&str, Fault>, found: Result<&str, Fault>) -> String {
        match charged(result, "used", || found) {
            Ok(charge) => charge.to_owned(),
            Err(fault) => format!("{:?} {}", fault.category, fault.code),
        }
    }

    #[test]
    fn a_refusal_is_returned_only_if_no_charge_is_found() {
        let refused = || Err(Fault::refused("declined", ""));
        let used = || Err(Fault::refused("used", ""));
        let lost = || Err(Fault::unavailable("").with_code("cut"));
        let nothing = || Err(Fault::not_found(""));
        assert_eq!(outcome(Ok("charged"), Ok("found")), "charged");
        assert_eq!(outcome(lost(), Ok("found")), "FaultCategory::Unavailable cut");
        assert_eq!(outcome(refused(), Ok("found")), "found");
        assert_eq!(outcome(used(), Ok("found")), "found");
        assert_eq!(outcome(refused(), nothing()), "FaultCategory::Refused declined");
        assert_eq!(outcome(used(), nothing()), "FaultCategory::Unavailable ");
        assert_eq!(outcome(refused(), lost()), "FaultCategory::Unavailable cut");
        assert_eq!(outcome(refused(), refused()), "FaultCategory::Unavailable declined");
    }
}
