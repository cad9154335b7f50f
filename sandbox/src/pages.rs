//! Web pages: the front page and the hosted checkout. Plain HTML that works without JavaScript.

mod people;
mod phones;

use std::cmp::Reverse;

use axum::{
    Form, Json,
    extract::{Path, State},
    http::{
        StatusCode,
        header::{CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    response::{Html, IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Hint, Link, Outcome, Simulators,
    checkout::{Checkout, Completion, CompletionError},
    locked,
    server::error_response,
    sms, smtp,
};

pub(crate) use phones::{answer_prompt, show_phone, submit_answer};

const STYLE: &str = include_str!("pages/style.css");
/// The HTML of an e-mail is untrusted: it may only display itself and images, and must not run
/// scripts, submit forms or embed frames.
const MAIL_POLICY: &str = "sandbox; default-src 'none'; img-src data: http: https:; style-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Maximum number of messages and events on the front page; the JSON lists have all of them.
const SHOWN: usize = 50;

/// The page's form; an empty card means that none was chosen.
#[derive(Deserialize)]
pub(crate) struct Submission {
    outcome: Outcome,
    card: Option<String>,
}

pub(crate) async fn front_page(State(simulators): State<Simulators>) -> Html<String> {
    let content = html! {
        h1 { "Tollhouse sandbox" }
        (links(&locked(&simulators.0.links)))
        (hints(&locked(&simulators.0.hints)))
        (open_checkouts(&simulators))
        (phones::section(&simulators))
        (mailbox(&simulators))
        (people::section())
        (events(&simulators))
    };
    page("Tollhouse sandbox", "wide", &content)
}

/// Shows the HTML part of an e-mail unchanged.
pub(crate) async fn show_html(
    State(simulators): State<Simulators>,
    Path(id): Path<String>,
) -> Response {
    let message = id.parse().ok().and_then(|id| simulators.mailbox().find(id));
    let Some(html) = message.and_then(|message| message.html) else {
        return not_found_page("This e-mail does not exist.");
    };
    let safe = [
        (CONTENT_SECURITY_POLICY, MAIL_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (safe, Html(html)).into_response()
}

pub(crate) async fn show_checkout(
    State(simulators): State<Simulators>,
    Path(id): Path<String>,
) -> Response {
    match find(&simulators, &id) {
        Some(checkout) => checkout_page(&checkout, None).into_response(),
        None => checkout_not_found(),
    }
}

pub(crate) async fn submit_checkout(
    State(simulators): State<Simulators>,
    Path(id): Path<String>,
    form: Result<Form<Submission>, axum::extract::rejection::FormRejection>,
) -> Response {
    let Some(checkout) = find(&simulators, &id) else { return checkout_not_found() };
    let bad =
        |notice| (StatusCode::BAD_REQUEST, checkout_page(&checkout, Some(notice))).into_response();
    let Ok(Form(submission)) = form else {
        return bad("The outcome is invalid. Choose one of the buttons.");
    };
    let card = submission.card.as_deref().filter(|card| !card.is_empty());
    match complete(&simulators, &id, submission.outcome, card) {
        Some(Ok(Completion { redirect_url: Some(url), .. })) => {
            (StatusCode::SEE_OTHER, [(LOCATION, url)]).into_response()
        }
        // Without a return URL, the customer stays and sees the outcome.
        Some(Ok(Completion { outcome, .. })) => {
            find(&simulators, &id).map_or_else(checkout_not_found, |c| {
                let notice = match (outcome, c.open) {
                    (Outcome::Success, _) => "Completed. Thank you.",
                    (Outcome::Failed, true) => "This attempt failed. You can try again.",
                    (Outcome::Failed, false) => "This attempt failed.",
                    (Outcome::Abandoned, true) => {
                        "You left the checkout. You can return at any time."
                    }
                    (Outcome::Abandoned, false) => "You left the checkout.",
                };
                checkout_page(&c, Some(notice)).into_response()
            })
        }
        Some(Err(CompletionError::UnknownCard)) => bad("This is not a test card."),
        Some(Err(CompletionError::CardNotAccepted)) => bad("This checkout does not accept cards."),
        Some(Err(CompletionError::AlreadyPaid)) => {
            (StatusCode::CONFLICT, checkout_page(&checkout, None)).into_response()
        }
        None => checkout_not_found(),
    }
}

/// Completes a checkout like the page's buttons, for programs.
pub(crate) async fn complete_checkout(
    State(simulators): State<Simulators>,
    Path(id): Path<String>,
    body: String,
) -> Response {
    if find(&simulators, &id).is_none() {
        return error_response(StatusCode::NOT_FOUND, "this checkout does not exist");
    }
    let Ok(submission) = serde_json::from_str::<Submission>(&body) else {
        return error_response(
            StatusCode::BAD_REQUEST,
            "outcome must be success, failed or abandoned",
        );
    };
    match complete(&simulators, &id, submission.outcome, submission.card.as_deref()) {
        Some(Ok(done)) => {
            Json(json!({ "outcome": done.outcome, "redirect_url": done.redirect_url }))
                .into_response()
        }
        Some(Err(CompletionError::UnknownCard)) => {
            error_response(StatusCode::BAD_REQUEST, "this is not a test card of the provider")
        }
        Some(Err(CompletionError::CardNotAccepted)) => error_response(
            StatusCode::BAD_REQUEST,
            "this checkout does not accept cards: omit card",
        ),
        Some(Err(CompletionError::AlreadyPaid)) => {
            error_response(StatusCode::CONFLICT, "this checkout is already completed")
        }
        None => error_response(StatusCode::NOT_FOUND, "this checkout does not exist"),
    }
}

fn find(simulators: &Simulators, id: &str) -> Option<Checkout> {
    simulators.payment_simulators().iter().find_map(|provider| provider.checkout(id))
}

fn complete(
    simulators: &Simulators,
    id: &str,
    outcome: Outcome,
    card: Option<&str>,
) -> Option<Result<Completion, CompletionError>> {
    simulators.payment_simulators().iter().find_map(|provider| provider.complete(id, outcome, card))
}

fn checkout_not_found() -> Response {
    not_found_page("This checkout does not exist.")
}

fn not_found_page(what: &str) -> Response {
    let content = html! { h1 { "Not found" } p { (what) } };
    (StatusCode::NOT_FOUND, page("Not found", "narrow", &content)).into_response()
}

fn page(title: &str, width: &str, content: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                // An empty icon, so that browsers do not request one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body { main class=(width) { (content) } }
        }
    };
    Html(page.into_string())
}

fn checkout_page(checkout: &Checkout, notice: Option<&str>) -> Html<String> {
    let content = html! {
        p.provider { (checkout.provider) " · test mode" }
        @match &checkout.amount {
            Some((minor, currency)) => { h1 { (money(*minor, currency)) } }
            None => { h1 { "Direct debit" } p { "Allow this merchant to debit your account." } }
        }
        dl {
            dt { "Pay to" } dd { (checkout.merchant) }
            dt { "Payer" } dd { (checkout.payer) }
            dt { "Reference" } dd { (checkout.reference) }
        }
        @if let Some(notice) = notice { p.notice { (notice) } }
        @if checkout.open { (checkout_form(checkout)) } @else { p.done { "This checkout is completed." } }
    };
    page("Checkout", "narrow", &content)
}

fn checkout_form(checkout: &Checkout) -> Markup {
    html! {
        form method="post" action={ "/checkout/" (checkout.id) } {
            @if !checkout.cards.is_empty() {
                fieldset {
                    legend { "Test card" }
                    @for (at, (number, meaning)) in checkout.cards.iter().enumerate() {
                        label {
                            input type="radio" name="card" value=(number) checked[at == 0];
                            span.number { (number) } span.meaning { (meaning) }
                        }
                    }
                }
            }
            div.buttons {
                button.main name="outcome" value="success" {
                    @if checkout.amount.is_some() { "Pay" } @else { "Allow" }
                }
                button name="outcome" value="failed" { "Fail" }
                button name="outcome" value="abandoned" { "Leave" }
            }
        }
    }
}

fn links(links: &[Link]) -> Markup {
    html! {
        @if !links.is_empty() {
            ul { @for link in links { li { a href=(link.url) { (link.what) } } } }
        }
    }
}

fn hints(hints: &[Hint]) -> Markup {
    html! {
        @if !hints.is_empty() {
            section {
                h2 { "What to try" }
                ol { @for hint in hints { li { (hint.what) ":" pre { (hint.command) } } } }
            }
        }
    }
}

fn open_checkouts(simulators: &Simulators) -> Markup {
    let mut open: Vec<(u64, Checkout)> = simulators
        .payment_simulators()
        .iter()
        .flat_map(|provider| provider.open_checkouts())
        .collect();
    open.sort_by_key(|(number, _)| Reverse(*number));
    html! {
        section {
            h2 { "Open checkouts" }
            @if open.is_empty() { p.empty { "None." } } @else {
                table {
                    tr { th { "Checkout" } th { "Amount" } th { "Payer" } th { "Provider" } }
                    @for (_, checkout) in open.iter().take(SHOWN) {
                        tr {
                            td { a href={ "/checkout/" (checkout.id) } { (checkout.reference) } }
                            td {
                                @match &checkout.amount {
                                    Some((minor, currency)) => (money(*minor, currency)),
                                    None => "mandate",
                                }
                            }
                            td { (checkout.payer) }
                            td { (checkout.provider) }
                        }
                    }
                }
            }
        }
    }
}

fn mailbox(simulators: &Simulators) -> Markup {
    let messages = simulators.mailbox().list(None);
    html! {
        section {
            h2 { "Mailbox" }
            (unreachable_recipients())
            @if messages.is_empty() { p.empty { "No messages yet." } }
            @for message in messages.iter().take(SHOWN) {
                details {
                    summary {
                        (message.at) " · " (message.channel) " to " (message.to)
                        @if let Some(subject) = &message.subject { " · " (subject) }
                    }
                    p { "From " (message.from) }
                    pre { (message.text) }
                    @if message.html.is_some() {
                        p { a href={ "/mailbox/" (message.id) "/html" } { "View as HTML" } }
                    }
                }
            }
        }
    }
}

/// Describes the recipients that simulate failures.
fn unreachable_recipients() -> Markup {
    html! {
        details {
            summary { "Phone numbers and addresses that simulate failures" }
            ul {
                @for (ending, why) in sms::ENDINGS {
                    li { "Numbers ending in " code { (ending) } ": " (why) }
                }
                li { "Addresses beginning with " code { (smtp::REFUSED) } ": the mailbox does not exist" }
            }
        }
    }
}

fn events(simulators: &Simulators) -> Markup {
    let events = simulators.events();
    html! {
        section {
            h2 { "Events received" }
            @if events.is_empty() { p.empty { "None yet." } }
            @for event in events.iter().take(SHOWN) {
                details {
                    summary {
                        (event.at) " · " (event.event) " · signature "
                        (json!(event.signature).as_str().unwrap_or_default())
                    }
                    pre { (readable(&event.body)) }
                }
            }
        }
    }
}

/// Indents JSON; returns anything else unchanged.
fn readable(body: &str) -> String {
    serde_json::from_str::<Value>(body).map_or_else(|_| body.to_owned(), |json| format!("{json:#}"))
}

/// Formats `1234567` kobo as `NGN 12,345.67`.
fn money(minor: u64, currency: &str) -> String {
    let major = (minor / 100).to_string();
    let grouped: Vec<&str> = major
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|digits| std::str::from_utf8(digits).unwrap_or_default())
        .collect();
    format!("{currency} {}.{:02}", grouped.join(","), minor % 100)
}

#[cfg(test)]
mod tests {
    use super::money;

    #[test]
    fn money_is_grouped_by_thousands() {
        assert_eq!(money(1_234_567, "NGN"), "NGN 12,345.67");
        assert_eq!(money(5, "USD"), "USD 0.05");
        assert_eq!(money(100_000_000, "NGN"), "NGN 1,000,000.00");
    }
}
