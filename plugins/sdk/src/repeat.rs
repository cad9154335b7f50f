//! Charges that may have been asked for before.

use crate::types::{Fault, FaultCategory};

/// The answer to a charge; where it was refused, what `find` finds under its reference.
///
/// A first attempt whose answer was lost is there, in whatever words its repeat is refused. Only where there is nothing was it
/// refused, and not even there if the refusal's code is `duplicate`, which says that the reference is used: then it is not known
/// what became of the charge (`unavailable`).
pub fn charged<T>(
    answer: Result<T, Fault>,
    duplicate: &str,
    find: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let refusal = match answer {
        Err(fault) if fault.is_refusal() => fault,
        answer => return answer,
    };
    find().map_err(|fault| match fault.category {
        FaultCategory::NotFound if refusal.code != duplicate => refusal,
        _ => fault.into_unavailable(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: Result<&str, Fault>, found: Result<&str, Fault>) -> String {
        match charged(answer, "used", || found) {
            Ok(charge) => charge.to_owned(),
            Err(fault) => format!("{:?} {}", fault.category, fault.code),
        }
    }

    #[test]
    fn a_charge_is_refused_only_where_none_is_found() {
        let refused = || Err(Fault::refused("declined", ""));
        let used = || Err(Fault::refused("used", ""));
        let lost = || Err(Fault::unavailable("").with_code("cut"));
        let nothing = || Err(Fault::not_found(""));
        assert_eq!(told(Ok("charged"), Ok("found")), "charged");
        assert_eq!(told(lost(), Ok("found")), "FaultCategory::Unavailable cut");
        assert_eq!(told(refused(), Ok("found")), "found");
        assert_eq!(told(used(), Ok("found")), "found");
        assert_eq!(told(refused(), nothing()), "FaultCategory::Refused declined");
        assert_eq!(told(used(), nothing()), "FaultCategory::Unavailable ");
        assert_eq!(told(refused(), lost()), "FaultCategory::Unavailable cut");
        assert_eq!(told(refused(), refused()), "FaultCategory::Unavailable declined");
    }
}
