//! Hostile input in users' texts: it must be sent as text, or rejected as `invalid`.

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{invariants::FAKE_PLACEHOLDER, prelude::*};
use tollhouse_plugins::{
    CardOrder, DebitOrder, FaultCategory, PartialOrder, PartialRefundOrder, RefundOrder,
    SessionRefundOrder, TextMessage,
};

fn texts() -> [(&'static str, String); 8] {
    [
        ("quotes", r#""quoted" 'and' \escaped\ {"amount":1}"#.to_owned()),
        ("line breaks", "one\r\nX-Injected: yes\r\n\r\ntwo\tthree".to_owned()),
        ("emoji", "paid 🙂 👩‍👩‍👧 ✅".to_owned()),
        ("4 KiB", "long ".repeat((4 << 10) / 5)),
        ("placeholder-like text", format!("{FAKE_PLACEHOLDER} {{{{secret}}}} ${{secret}} %s %00")),
        ("markup", "</script><script>alert(1)</script><!-- ]]>".to_owned()),
        ("right-to-left marks", "\u{202e}evil\u{202c} \u{200f}\u{2066}text\u{2069}".to_owned()),
        ("form-like text", "a&amount=1&to=%2B15550000000;b=c#d".to_owned()),
    ]
}

/// `usual` is the example call.
pub async fn inspect(inspection: &mut Inspection<'_>, usual: &ObservedCall) {
    let is_provider = inspection.kind == PluginKind::Provider;
    for (name, text) in texts() {
        let examples = Call::examples(&inspection.subject.plugin).into_iter();
        let call = examples.filter(|call| call.function() == inspection.call.function()).last();
        let Some(call) = call.and_then(|call| with_text(call, &text)) else { return };
        let case = format!("hostile text: {name}");
        let private = if is_provider { &[][..] } else { &[&*text][..] };
        let ran = inspection.run_with(&call, &case, private).await;
        inspection.add_case(case, evaluate(usual, &ran));
    }
}

/// Puts the text into all fields that users control; `None` if there are none.
fn with_text(mut call: Call, text: &str) -> Option<Call> {
    let new_metadata = || json!({ "order": text, "note": [text] }).to_string();
    match &mut call {
        Call::StartCheckout(order) | Call::StartSession(order) => {
            order.customer_name = Some(text.to_owned());
            (order.narration, order.metadata) = (text.to_owned(), new_metadata());
        }
        Call::ChargeCard(CardOrder { narration, metadata, .. })
        | Call::Debit(DebitOrder { narration, metadata, .. })
        | Call::ChargeCardInPart(PartialOrder { narration, metadata, .. })
        | Call::DebitInPart(PartialOrder { narration, metadata, .. }) => {
            (*narration, *metadata) = (text.to_owned(), new_metadata());
        }
        Call::StartRefund(RefundOrder { reason: field, .. })
        | Call::StartPartialRefund(PartialRefundOrder {
            order: RefundOrder { reason: field, .. },
            ..
        })
        | Call::StartSessionRefund(SessionRefundOrder { reason: field, .. })
        | Call::SendText(TextMessage { text: field, .. }) => *field = text.to_owned(),
        Call::BeginMandate(order) => {
            (order.name, order.narration) = (text.to_owned(), text.to_owned());
        }
        Call::LookUp(question) | Call::Compare(question, _) => {
            let person = question.person.as_mut()?;
            (person.first_name, person.last_name) = (text.to_owned(), text.to_owned());
        }
        _ => return None,
    }
    Some(call)
}

fn evaluate(usual: &ObservedCall, ran: &ObservedCall) -> CaseOutcome {
    for (before, seen) in usual.requests.iter().zip(&ran.requests) {
        if let Some((expected, found)) = lost_property(before, seen) {
            return CaseOutcome::Failed(CaseFailure::new(expected, found.to_owned(), Some(seen)));
        }
    }
    match &ran.reply {
        Ok(_) => CaseOutcome::Passed,
        Err(CallError { fault, .. }) if fault.category == FaultCategory::Invalid => {
            CaseOutcome::Passed
        }
        Err(_) if ran.requests.iter().any(|seen| seen.example.is_none()) => CaseOutcome::noted(
            "a request has no example, so it is unknown whether the call would succeed: add one to examples.answers",
        ),
        Err(_) => {
            let expected = "success or the fault invalid: users' texts may contain any characters";
            CaseOutcome::failed(expected, ran, ran.requests.last())
        }
    }
}

/// Returns a property of the request `before` that `seen` lacks, and what it has instead.
fn lost_property(
    before: &ObservedRequest,
    seen: &ObservedRequest,
) -> Option<(&'static str, &'static str)> {
    let json = |seen: &ObservedRequest| serde_json::from_slice::<Value>(&seen.body).ok();
    if json(before).is_some() && json(seen).is_none() {
        return Some(("a JSON body: escape users' texts", "the body is not JSON"));
    }
    let names = |seen: &ObservedRequest| -> Vec<String> {
        form_urlencoded::parse(&seen.body).map(|(name, _)| name.into_owned()).collect()
    };
    let is_form =
        before.header("content-type").is_some_and(|kind| kind.contains("form-urlencoded"));
    let expected = "the form fields of the example request: percent-encode users' texts";
    (is_form && names(before) != names(seen)).then_some((expected, "the form fields differ"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tollhouse_platform::outbound::egress::EgressError;

    use super::*;

    fn seen(kind: &str, body: &'static str) -> ObservedRequest {
        ObservedRequest {
            method: "POST".to_owned(),
            url: "https://a.example".to_owned(),
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body: Bytes::from_static(body.as_bytes()),
            response: Err(EgressError::ConnectionLost("a.example".to_owned())),
            example: None,
        }
    }

    #[test]
    fn a_body_must_keep_its_format_and_its_fields() {
        let form = "application/x-www-form-urlencoded";
        for (kind, before, after, stays) in [
            ("application/json", r#"{"a":"b"}"#, r#"{"a":"\"b"}"#, true),
            ("application/json", r#"{"a":"b"}"#, r#"{"a":""b"}"#, false),
            (form, "a=b&c=d", "a=b%26amount&c=d", true),
            (form, "a=b&c=d", "a=b&amount=1&c=d", false),
            ("text/plain", "b", "\"", true),
        ] {
            let broken = lost_property(&seen(kind, before), &seen(kind, after));
            assert_eq!(broken.is_none(), stays, "{after}: {broken:?}");
        }
    }
}
