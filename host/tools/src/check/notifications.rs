//! Forged webhooks, which the plugin must reject.

use super::{
    inspection::{Inspection, failing},
    readable,
    report::{Failing, Outcome},
    subject::Ran,
    upstream::Plan,
};
use tollhouse_plugins::{Call, Reply};

const LARGE: usize = 1 << 20;
const REFUSED: &str = "unauthentic or malformed";

type Headers = Vec<(String, String)>;

struct Forged {
    name: &'static str,
    headers: Headers,
    body: Vec<u8>,
    /// Fails if accepted. Otherwise only a note: an altered form may be as valid as the example.
    strict: bool,
}

/// Inspects `notifications.parse` only.
pub async fn inspect(inspection: &mut Inspection<'_>) {
    let Call::ParseNotification { headers, body } = inspection.call else { return };
    for Forged { name, headers, body, strict } in forged(headers, body) {
        let told = readable::notification(&headers, &body);
        let call = Call::ParseNotification { headers, body };
        let ran = inspection.run_with(&call, Plan::examples(), name, &[]).await;
        inspection.note(name, judge(told, &ran, strict));
    }
}

fn forged(headers: &Headers, body: &[u8]) -> Vec<Forged> {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    let strict = is_json || body.is_empty();
    let with =
        |name, body: Vec<u8>, strict| Forged { name, headers: headers.clone(), body, strict };
    let half = body[..body.len() / 2].to_vec();
    let mut all = vec![
        with("an empty body", Vec::new(), true),
        with("a body of 1 MiB", vec![b'x'; LARGE], strict),
        with("a body that is not JSON", b"once upon a time".to_vec(), strict),
        with("a truncated body", half, strict),
    ];
    // Without headers, the signature is in the body, which the cases above change.
    if !headers.is_empty() || body.is_empty() {
        let body = if body.is_empty() { b"{}".to_vec() } else { body.to_vec() };
        let wrong = headers.iter().map(|(name, value)| (name.clone(), altered(value))).collect();
        all.push(Forged {
            name: "unsigned",
            headers: Vec::new(),
            body: body.clone(),
            strict: true,
        });
        all.push(Forged { name: "an invalid signature", headers: wrong, body, strict: true });
    }
    all
}

/// Changes the digits of a value, or its letters if there are no digits.
fn altered(value: &str) -> String {
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let alter = |c: char| match c {
        '9' => '0',
        '0'..='8' => char::from(c as u8 + 1),
        'z' if !digits => 'a',
        'a'..='y' if !digits => char::from(c as u8 + 1),
        c => c,
    };
    value.chars().map(alter).collect()
}

/// `told` is the webhook in readable form.
fn judge(told: String, ran: &Ran, strict: bool) -> Outcome {
    match &ran.reply {
        Ok(Reply::Refused(_)) => Outcome::Passed,
        Ok(_) if !strict => Outcome::Noted {
            note: "it is accepted: check that the signature covers the body".to_owned(),
        },
        _ => Outcome::Failed(Failing { request: Some(told), ..failing(REFUSED, ran, None) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_signature_keeps_its_format() {
        assert_eq!(altered("t=19,v1=9fAz"), "t=20,v2=0fAz");
        assert_eq!(altered("example-secret"), "fybnqmf-tfdsfu");
    }

    #[test]
    fn a_webhook_signed_in_its_body_has_no_unsigned_case() {
        let names = |headers: &[(&str, &str)], body: &str| -> Vec<&str> {
            let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            forged(&headers, body.as_bytes()).iter().map(|forged| forged.name).collect()
        };
        assert!(names(&[("x-token", "t")], "{}").contains(&"unsigned"));
        assert!(names(&[], "").contains(&"unsigned"));
        assert!(!names(&[], r#"{"signature":"s"}"#).contains(&"unsigned"));
    }
}
