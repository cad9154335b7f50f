//! Example cases: the call succeeds with the manifest's examples, and can be repeated.

pub mod cases;

use url::Url;

use super::prelude::*;
use tollhouse_plugins::{CheckoutSession, EXAMPLE_SECRET};

const CASE: &str = "the example";
const REPEATED: &str = "the example repeated";
const CACHED: &str = "the example with a warm cache";
const LATER: &str = "the example an hour later";

/// Returns the effects of the example call, with which other cases are compared.
pub async fn inspect(inspection: &mut Inspection<'_>) -> ObservedCall {
    let (subject, call) = (inspection.subject, inspection.call);
    let account = subject.account();
    let ran = subject.run_for(&account, call).await;
    inspection.record_call(&ran, CASE, &[]);
    let outcome = evaluate(call, &ran);
    let succeeds = !matches!(outcome, CaseOutcome::Failed(_));
    inspection.add_case(CASE, outcome);

    let again = inspection.run(None, REPEATED).await;
    let expected = "the same requests byte for byte, and the same result: a call must depend on its inputs only";
    let failed = |(found, about)| CaseOutcome::Failed(CaseFailure::new(expected, found, about));
    inspection.add_case(REPEATED, difference(&ran, &again).map_or(CaseOutcome::Passed, failed));
    if !succeeds {
        return ran;
    }
    let cached = subject.run_for(&account, call).await;
    inspection.record_call(&cached, CACHED, &[]);
    let outcome = match evaluate(call, &cached) {
        CaseOutcome::Noted { .. } => CaseOutcome::Passed, // noted above
        outcome => outcome,
    };
    inspection.add_case(CACHED, outcome);

    let later = subject.run_later(call).await;
    inspection.record_call(&later, LATER, &[]);
    let noted = |(found, _)| {
        CaseOutcome::noted(format!(
            "the call depends on the clock or on randomness: {found}; a timestamp may differ, but \
             derive ids and idempotency keys from the reference, so that the upstream recognizes \
             a retry"
        ))
    };
    inspection.add_case(LATER, difference(&ran, &later).map_or(CaseOutcome::Passed, noted));
    ran
}

fn evaluate(call: &Call, ran: &ObservedCall) -> CaseOutcome {
    if let Some(seen) = ran.requests.iter().find(|seen| seen.example.is_none()) {
        return CaseOutcome::failed(missing_example(seen), ran, Some(seen));
    }
    let notification = &*format!(
        "an example that is accepted: add \"notification\": {{\"headers\": {{…}}, \"body\": \"…\"}}, signed with the secret {EXAMPLE_SECRET:?}, to examples in the manifest"
    );
    let demanded = match (&ran.reply, call) {
        (Err(_), _) => {
            "success: examples.answers must be the upstream's responses to successful requests"
        }
        (Ok(PluginReply::Parsed(Err(_))), _) => notification,
        (Ok(_), Call::ParseNotification(webhook)) if webhook.body.is_empty() => notification,
        (Ok(_), Call::ReceiveForSession(_, webhook)) if webhook.body.is_empty() => notification,
        (Ok(_), Call::ReceiveForRefund(_, webhook)) if webhook.body.is_empty() => {
            "an example: add a notification to examples.refund in the manifest"
        }
        (Ok(PluginReply::Session(CheckoutSession { url, prompt, .. })), _)
            if url.is_empty() && prompt.as_deref().unwrap_or_default().is_empty() =>
        {
            "a session with the URL of a page, or with a prompt"
        }
        (Ok(PluginReply::Banks(banks)), _) if banks.is_empty() => "at least one bank",
        (Ok(PluginReply::Disputes(page)), _) if page.disputes.is_empty() => "at least one dispute",
        (Ok(PluginReply::Transactions(page)), _) if page.transactions.is_empty() => {
            "at least one transaction"
        }
        (Ok(PluginReply::Holder(name)), _) if name.is_empty() => "the name of the account's holder",
        (Ok(PluginReply::Transfer(None)), _) => "a transfer to a virtual account",
        (Ok(PluginReply::Accepted(id)), _) if id.is_empty() => "the gateway's id of the message",
        (Ok(PluginReply::Refund(refund)), _) if refund.provider_id.is_empty() => {
            "a refund with a provider-id, by which it can be checked"
        }
        (Ok(PluginReply::Parsed(Ok(notifications))), _) if notifications.is_empty() => {
            "at least one notification"
        }
        (Ok(_), _) => {
            return note_on_result(call, ran).map_or(CaseOutcome::Passed, CaseOutcome::noted);
        }
    };
    CaseOutcome::failed(demanded, ran, ran.requests.last())
}

/// Returns the example that the manifest lacks for a request.
fn missing_example(seen: &ObservedRequest) -> String {
    let path = Url::parse(&seen.url).map_or_else(|_| seen.url.clone(), |url| url.path().to_owned());
    let to = format!("{} {path}", seen.method);
    format!(
        "an example for each request: add {{\"to\": {to:?}, \"body\": …}} with the upstream's response to examples.answers in the manifest"
    )
}

fn note_on_result(call: &Call, ran: &ObservedCall) -> Option<String> {
    let (order, reference) = match call {
        Call::StartCheckout(order) | Call::StartSession(order) => {
            (Some(&order.amount), Some(&order.service_ref))
        }
        Call::VerifySession(session) => (Some(&session.amount), None),
        Call::ChargeCard(order) => (Some(&order.amount), Some(&order.service_ref)),
        Call::Debit(order) => (Some(&order.amount), Some(&order.service_ref)),
        Call::ChargeCardInPart(order) | Call::DebitInPart(order) => {
            (Some(&order.amount), Some(&order.service_ref))
        }
        Call::SendText(message) => (None, Some(&message.reference)),
        _ => (None, None),
    };
    let holds = |seen: &ObservedRequest, text: &str| {
        seen.url.contains(text) || memchr::memmem::find(&seen.body, text.as_bytes()).is_some()
    };
    let mut notes = Vec::new();
    if let Some(reference) = reference
        && !ran.requests.iter().any(|seen| holds(seen, reference))
    {
        notes.push(format!(
            "the reference {reference} is in no request, so the upstream cannot recognize a retry: send it"
        ));
    }
    if let (Ok(PluginReply::Payment(payment)), Some(requested)) = (&ran.reply, order) {
        let reported = payment.requested.as_ref().unwrap_or(&payment.amount);
        if reported != requested {
            let (reported, requested) = (readable::money(reported), readable::money(requested));
            notes.push(format!(
                "the payment reports {reported}, but the example requests {requested}: for a success, the host rejects a lower amount; correct the example, or fill in requested"
            ));
        }
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Returns the first difference between two calls, and the request with it.
fn difference<'r>(
    one: &ObservedCall,
    other: &'r ObservedCall,
) -> Option<(String, Option<&'r ObservedRequest>)> {
    for (n, (first, second)) in one.requests.iter().zip(&other.requests).enumerate() {
        let (part, [before, after]) = if (&first.method, &first.url)
            != (&second.method, &second.url)
        {
            ("URL", [first, second].map(|seen| format!("{} {}", seen.method, seen.url)))
        } else if first.headers != second.headers {
            ("headers", [first, second].map(|seen| readable::headers(&seen.headers)))
        } else if first.body != second.body {
            ("body", [first, second].map(|seen| String::from_utf8_lossy(&seen.body).into_owned()))
        } else {
            continue;
        };
        let [before, after] = readable::first_difference(&before, &after);
        return Some((
            format!("request {} has another {part}: {before}, then {after}", n + 1),
            Some(second),
        ));
    }
    let (before, after) = (one.requests.len(), other.requests.len());
    if before != after {
        let found = format!("number of requests: {before}, then {after}");
        return Some((found, other.requests.last()));
    }
    let (before, after) = (readable::reply(&one.reply), readable::reply(&other.reply));
    (before != after).then(|| (format!("{before}, then {after}"), None))
}
