//! Example cases: the call succeeds with the manifest's examples, and can be repeated.

use std::fmt::Write;

use url::Url;

use super::{
    inspection::{Inspection, failing},
    readable,
    report::{Failing, Outcome},
    subject::Ran,
    upstream::{Plan, Seen},
};
use tollhouse_plugins::{Call, EXAMPLE_SECRET, Reply};

const CASE: &str = "the example";
const SAME_MOMENT: &str = "the example repeated";
const CACHED: &str = "the example with a warm cache";
const LATER: &str = "the example an hour later";

/// Returns the effects of the example call, with which other cases are compared.
pub async fn inspect(inspection: &mut Inspection<'_>) -> Ran {
    let account = inspection.subject.account();
    let call = inspection.call;
    let ran = inspection.subject.run_for(&account, call, Plan::examples()).await;
    inspection.saw(&ran, CASE, &[]);
    let outcome = judge(call, &ran);
    let succeeds = !matches!(outcome, Outcome::Failed(_));
    inspection.note(CASE, outcome);

    let again = inspection.run(Plan::examples(), SAME_MOMENT).await;
    let differs = difference(&ran, &again);
    let demanded = "the same requests byte for byte, and the same result: a call must depend on its inputs only";
    inspection.note(
        SAME_MOMENT,
        match differs {
            None => Outcome::Passed,
            Some((found, about)) => {
                Outcome::Failed(Failing { found, ..failing(demanded, &again, about) })
            }
        },
    );
    if !succeeds {
        return ran;
    }
    let cached = inspection.subject.run_for(&account, call, Plan::examples()).await;
    inspection.saw(&cached, CACHED, &[]);
    let outcome = match judge(call, &cached) {
        Outcome::Noted { .. } => Outcome::Passed, // noted above
        outcome => outcome,
    };
    inspection.note(CACHED, outcome);

    let later = inspection.subject.run_later(call, Plan::examples()).await;
    inspection.saw(&later, LATER, &[]);
    let note = |(found, _): (String, Option<&Seen>)| Outcome::Noted {
        note: format!(
            "a request depends on the clock or on randomness, so a retry differs: {found}"
        ),
    };
    inspection.note(LATER, difference(&ran, &later).map_or(Outcome::Passed, note));
    ran
}

fn judge(call: &Call, ran: &Ran) -> Outcome {
    let last = ran.requests.last();
    if let Some(seen) = ran.requests.iter().find(|seen| seen.example.is_none()) {
        return Outcome::Failed(failing(lacking(seen), ran, Some(seen)));
    }
    match (&ran.reply, call) {
        (Err(_), _) => {
            let demanded =
                "success: the manifest's examples must be the provider's responses on success";
            Outcome::Failed(failing(demanded, ran, last))
        }
        (Ok(Reply::Refused(_)), _) => Outcome::Failed(failing(lacking_notification(), ran, last)),
        (Ok(_), Call::ParseNotification { body, .. }) if body.is_empty() => {
            Outcome::Failed(failing(lacking_notification(), ran, last))
        }
        (Ok(reply), call) => match empty(reply) {
            Some(demanded) => Outcome::Failed(failing(demanded, ran, last)),
            None => worth_a_note(call, reply, &ran.requests)
                .map_or(Outcome::Passed, |note| Outcome::Noted { note }),
        },
    }
}

/// Returns the example that the manifest lacks for a request.
fn lacking(seen: &Seen) -> String {
    let path = Url::parse(&seen.url).map_or_else(|_| seen.url.clone(), |url| url.path().to_owned());
    let to = format!("{} {path}", seen.method);
    format!(
        "an example for each request: add {{\"to\": {to:?}, \"body\": …}} with the provider's response to examples.answers in the manifest"
    )
}

fn lacking_notification() -> String {
    format!(
        "an example that is accepted: add \"notification\": {{\"headers\": {{…}}, \"body\": \"…\"}}, signed with the secret {EXAMPLE_SECRET:?}, to examples in the manifest"
    )
}

/// Returns what an incomplete result lacks.
fn empty(reply: &Reply) -> Option<&'static str> {
    match reply {
        Reply::Session(session) if session.url.is_empty() => Some("a session with a URL"),
        Reply::Accepted(id) if id.is_empty() => Some("the gateway's id of the message"),
        Reply::Refund(refund) if refund.provider_id.is_empty() => {
            Some("a refund with the id that refunds.check needs")
        }
        Reply::Notifications(told) if told.is_empty() => Some("a notification with a subject"),
        _ => None,
    }
}

fn worth_a_note(call: &Call, reply: &Reply, requests: &[Seen]) -> Option<String> {
    let (order, reference) = match call {
        Call::StartCheckout(order) => (Some(&order.amount), Some(&order.service_ref)),
        Call::ChargeCard(order) => (Some(&order.amount), Some(&order.service_ref)),
        Call::Debit(order) => (Some(&order.amount), Some(&order.service_ref)),
        Call::SendText(message) => (None, Some(&message.reference)),
        _ => (None, None),
    };
    let holds = |seen: &Seen, text: &str| {
        seen.url.contains(text) || memchr::memmem::find(&seen.body, text.as_bytes()).is_some()
    };
    let mut note = String::new();
    if let Some(reference) = reference
        && !requests.iter().any(|seen| holds(seen, reference))
    {
        let _ = write!(
            note,
            "the reference {reference} is in no request, so the provider cannot recognize a retry"
        );
    }
    if let (Reply::Payment(payment), Some(asked)) = (reply, order) {
        let told = payment.requested.as_ref().unwrap_or(&payment.amount);
        if told != asked {
            let (told, asked) = (readable::money(told), readable::money(asked));
            let _ = write!(
                note,
                "the payment is of {told}, but {asked} was requested: the host compares them"
            );
        }
    }
    (!note.is_empty()).then_some(note)
}

/// Returns the first difference between two calls, and the request with it.
fn difference<'r>(one: &Ran, other: &'r Ran) -> Option<(String, Option<&'r Seen>)> {
    for (n, (first, second)) in one.requests.iter().zip(&other.requests).enumerate() {
        let what = if (&first.method, &first.url) != (&second.method, &second.url) {
            "URL"
        } else if first.headers != second.headers {
            "headers"
        } else if first.body != second.body {
            "body"
        } else {
            continue;
        };
        let (before, after) = (readable::request(first), readable::request(second));
        return Some((
            format!("request {} has another {what}: {before}, then {after}", n + 1),
            Some(second),
        ));
    }
    let (before, after) = (one.requests.len(), other.requests.len());
    if before != after {
        return Some((format!("{before} requests, then {after}"), other.requests.last()));
    }
    let (before, after) = (readable::reply(&one.reply), readable::reply(&other.reply));
    (before != after).then(|| (format!("{before}, then {after}"), None))
}
