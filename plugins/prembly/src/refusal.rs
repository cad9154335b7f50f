//! The mapping of Prembly's statuses, codes and messages to faults.

use serde_json::Value;
use tollhouse_plugin::types::Fault;

use crate::NO_CREDIT;

/// Replaces the host's message, which may contain the URL and thus an identifier.
pub(crate) fn no_response(fault: Fault) -> Fault {
    Fault { message: "no response from Prembly".to_owned(), details: Vec::new(), ..fault }
}

/// Maps statuses and codes whose meaning does not depend on the record.
pub(crate) fn check_service(status: u16, code: &str) -> Result<(), Fault> {
    let http = format!("http-{status}");
    match (code, status) {
        ("03", _) | (_, 402) => {
            Err(Fault::unavailable("the account at Prembly has no credit left")
                .with_code(NO_CREDIT))
        }
        (_, 401 | 403) => {
            Err(Fault::misconfigured("Prembly does not accept the key").with_code(&http))
        }
        (_, 408 | 429 | 500..) => {
            Err(Fault::unavailable(format!("Prembly returned {status}")).with_code(&http))
        }
        ("02", _) => Err(Fault::unavailable("the register does not respond to Prembly")
            .with_code("source-unavailable")),
        _ => Ok(()),
    }
}

pub(crate) fn unexpected_response(what: &str) -> Fault {
    Fault::unavailable(what).with_code("unexpected-answer")
}

pub(crate) fn not_found() -> Fault {
    Fault::not_found("the register has no such entry")
}

pub(crate) fn no_face() -> Fault {
    Fault::invalid("image", "nothing can be read on the image")
}

/// Maps an error that `check_service` did not. The order of the conditions matters: "Face not
/// found" has the code of a missing record, but does not mean one.
pub(crate) fn fault(status: u16, code: &str, words: &Value, with_image: bool) -> Fault {
    let words = words.to_string().to_lowercase();
    let mentions = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if with_image && mentions(&["face", "selfie", "image", "photo"]) {
        no_face()
    } else if code == "01" || mentions(&["not found", "no record", "not exist"]) {
        not_found()
    } else if matches!(status, 400 | 422) || mentions(&["invalid"]) {
        let field = if with_image && !mentions(&["number"]) { "image" } else { "identifier" };
        Fault::invalid(field, "Prembly rejected the input")
    } else {
        // Prembly's codes have at most three digits; anything else could contain personal data.
        let known = code.len() <= 3 && code.bytes().all(|digit| digit.is_ascii_digit());
        let code = if known { code } else { "" };
        Fault::refused(code, "Prembly refused the request")
    }
}
