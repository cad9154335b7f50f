//! Forged webhooks, which the plugin must reject.

use super::prelude::*;
use tollhouse_plugins::{Fault, FaultCategory};

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

/// Inspects functions that read webhooks. If the URL of a webhook authenticates it, unsigned ones
/// are not forged.
pub async fn inspect(inspection: &mut Inspection<'_>) {
    let example = inspection.call;
    let (webhook, is_signed) = match example {
        Call::ParseNotification(webhook) => (webhook, true),
        Call::ReceiveForSession(_, webhook) | Call::ReceiveForRefund(_, webhook) => {
            (webhook, false)
        }
        _ => return,
    };
    let Webhook { headers, body } = webhook;
    for ForgedWebhook { name, headers, body, strict } in forged_webhooks(headers, body, is_signed) {
        let request = readable::notification(&headers, &body);
        let webhook = Webhook { headers, body: body.into() };
        let call = match example {
            Call::ReceiveForSession(session, _) => {
                Call::ReceiveForSession(session.clone(), webhook)
            }
            Call::ReceiveForRefund(refund, _) => Call::ReceiveForRefund(refund.clone(), webhook),
            _ => Call::ParseNotification(webhook),
        };
        let ran = inspection.run_with(&call, name, &[]).await;
        inspection.add_case(name, evaluate(request, &ran, strict && is_signed));
    }
}

fn forged_webhooks(headers: &Headers, body: &[u8], is_signed: bool) -> Vec<ForgedWebhook> {
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
    if is_signed && (!headers.is_empty() || body.is_empty()) {
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

/// Returns whether a function that returns faults rejects the webhook. `notifications.parse` has
/// its own result for that.
fn is_rejection(fault: &Fault) -> bool {
    matches!(fault.category, FaultCategory::Invalid | FaultCategory::Refused)
}

/// `request` is the webhook in readable form.
fn evaluate(request: String, ran: &ObservedCall, strict: bool) -> CaseOutcome {
    match &ran.reply {
        Ok(PluginReply::Parsed(Err(_))) => CaseOutcome::Passed,
        Err(CallError { fault, .. }) if is_rejection(fault) => CaseOutcome::Passed,
        // It may serve as a trigger only.
        Ok(PluginReply::Received(_)) => CaseOutcome::noted(
            "the altered notification is accepted: return invalid for a body that is not one",
        ),
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
            forged_webhooks(&headers, body.as_bytes(), true)
                .iter()
                .map(|forged| forged.name)
                .collect()
        };
        assert!(names(&[("x-token", "t")], "{}").contains(&"unsigned"));
        assert!(names(&[], "").contains(&"unsigned"));
        assert!(!names(&[], r#"{"signature":"s"}"#).contains(&"unsigned"));
    }
}
