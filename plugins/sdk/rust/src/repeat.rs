//! Retries of charges and refunds.

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

/// Returns the result of a refund. If it was refused, looks for the refund with `find`.
///
/// An upstream may refuse a retry because an earlier attempt, whose response was lost, succeeded.
/// The refusal is therefore returned only if `find` returns `None` and `is_duplicate`, which
/// recognizes refusals that report an earlier refund, returns false. If `find` itself is refused,
/// for example because a part was refunded elsewhere, that refusal is returned. Any other fault of
/// `find` is returned as `unavailable`, because the outcome is unknown.
pub fn refunded<T>(
    result: Result<T, Fault>,
    is_duplicate: impl FnOnce(&Fault) -> bool,
    find: impl FnOnce() -> Result<Option<T>, Fault>,
) -> Result<T, Fault> {
    let refusal = match result {
        Err(fault) if fault.is_refusal() => fault,
        result => return result,
    };
    match find() {
        Ok(Some(made)) => Ok(made),
        Ok(None) if is_duplicate(&refusal) => Err(refusal.into_unavailable()),
        Ok(None) => Err(refusal),
        Err(fault) if fault.is_refusal() => Err(fault),
        Err(fault) => Err(fault.into_unavailable()),
    }
}

/// Returns the result of a query that comes before a refund. A refused query does not show whether
/// there is an earlier attempt, so it becomes `unavailable`; `not-found` is returned unchanged.
pub fn queried<T>(result: Result<T, Fault>) -> Result<T, Fault> {
    result.map_err(|fault| match fault.category {
        FaultCategory::NotFound => fault,
        _ if fault.is_refusal() => fault.into_unavailable(),
        _ => fault,
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
