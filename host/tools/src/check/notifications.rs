//! Forged webhooks, which the plugin must reject.

use super::prelude::*;

const LARGE_BODY_BYTES: usize = 1 << 20;
const EXPECT_REJECTION: &str = "rejection as unauthentic or malformed";

type Headers = Vec<(String, String)>;

struct ForgedWebhook {
    name: &'static str,
    headers: Headers,
    body: Vec<u8>,
    /// Fails if accepted. Otherwise only a note: an altered form may be as valid as the example.
    strict: bool,
}

/// Inspects `notifications.parse` only.
pub async fn inspect(inspection: &mut Inspection<'_>) {
    let Call::ParseNotification(Webhook { headers, body }) = inspection.call else { return };
    for ForgedWebhook { name, headers, body, strict } in forged_webhooks(headers, body) {
        let request = readable::notification(&headers, &body);
        let call = Call::ParseNotification(Webhook { headers, body: body.into() });
        let ran = inspection.run_with(&call, name, &[]).await;
        inspection.add_case(name, evaluate(request, &ran, strict));
    }
}

fn forged_webhooks(headers: &Headers, body: &[u8]) -> Vec<ForgedWebhook> {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    let strict = is_json || body.is_empty();
    let forged = |name, headers: &Headers, body: &[u8], strict| {
        let (headers, body) = (headers.clone(), body.to_vec());
        ForgedWebhook { name, headers, body, strict }
    };
    let mut all = vec![
        forged("an empty body", headers, b"", true),
        forged("a body of 1 MiB", headers, &vec![b'x'; LARGE_BODY_BYTES], strict),
        forged("a body that is not JSON", headers, b"once upon a time", strict),
        forged("a truncated body", headers, &body[..body.len() / 2], strict),
    ];
    // Without headers, the signature is in the body, which the cases above change.
    if !headers.is_empty() || body.is_empty() {
        let body = if body.is_empty() { b"{}" } else { body };
        let altered = headers.iter().map(|(name, value)| (name.clone(), alter_signature(value)));
        all.push(forged("unsigned", &Vec::new(), body, true));
        all.push(forged("an invalid signature", &altered.collect(), body, true));
    }
    all
}

/// Changes the digits of a value, or its letters if there are no digits.
fn alter_signature(value: &str) -> String {
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

/// `request` is the webhook in readable form.
fn evaluate(request: String, ran: &ObservedCall, strict: bool) -> CaseOutcome {
    match &ran.reply {
        Ok(PluginReply::Parsed(Err(_))) => CaseOutcome::Passed,
        Ok(_) if !strict => CaseOutcome::noted(
            "the altered webhook is accepted: check the signature over the raw body before parsing",
        ),
        reply => {
            let failure = CaseFailure::new(EXPECT_REJECTION, readable::reply(reply), None);
            CaseOutcome::Failed(CaseFailure { request: Some(request), ..failure })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_signature_keeps_its_format() {
        assert_eq!(alter_signature("t=19,v1=9fAz"), "t=20,v2=0fAz");
        assert_eq!(alter_signature("example-secret"), "fybnqmf-tfdsfu");
    }

    #[test]
    fn a_webhook_signed_in_its_body_has_no_unsigned_case() {
        let names = |headers: &[(&str, &str)], body: &str| -> Vec<&str> {
            let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            forged_webhooks(&headers, body.as_bytes()).iter().map(|forged| forged.name).collect()
        };
        assert!(names(&[("x-token", "t")], "{}").contains(&"unsigned"));
        assert!(names(&[], "").contains(&"unsigned"));
        assert!(!names(&[], r#"{"signature":"s"}"#).contains(&"unsigned"));
    }
}
