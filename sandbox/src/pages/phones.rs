//! Phones of M-Pesa's payers: a section of the front page, and a page with the prompt of a phone.

use axum::{
    Form, Json,
    extract::{Path, State, rejection::FormRejection},
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::{SHOWN, money, not_found_page, page};
use crate::{
    Simulators,
    mpesa::{AUTOMATIC_ANSWERS, Answer, Push, is_subscriber, result_description},
    server::error_response,
};

/// The value and label of each button.
const BUTTONS: [(&str, &str); 4] = [
    ("pay", "Pay"),
    ("wrong_pin", "Wrong PIN"),
    ("insufficient_funds", "Low balance"),
    ("cancel", "Cancel"),
];

#[derive(Deserialize)]
pub(crate) struct Submission {
    answer: Answer,
}

/// Lists the phones with an open prompt, newest first.
pub(super) fn section(simulators: &Simulators) -> Markup {
    let mut open = simulators.mpesa().pushes();
    open.retain(Push::is_open);
    html! {
        section {
            h2 { "Phones with an M-Pesa prompt" }
            @if open.is_empty() { p.empty { "None." } } @else {
                table {
                    tr { th { "Phone" } th { "Amount" } th { "Reference" } th { "Pay to" } }
                    @for push in open.iter().rev().take(SHOWN) {
                        tr {
                            td.number { a href={ "/phone/" (push.phone) } { (push.phone) } }
                            td { (amount(push)) }
                            td { (push.account_reference) }
                            td { (push.shortcode) }
                        }
                    }
                }
            }
            details {
                summary { "Phone numbers that answer automatically" }
                ul {
                    @for (number, _, meaning) in AUTOMATIC_ANSWERS {
                        li { code { (number) } ": " (meaning) }
                    }
                }
            }
        }
    }
}

pub(crate) async fn show_phone(
    State(simulators): State<Simulators>,
    Path(number): Path<String>,
) -> Response {
    if !is_subscriber(&number) {
        return not_a_phone();
    }
    phone_page(&simulators, &number, None).into_response()
}

pub(crate) async fn submit_answer(
    State(simulators): State<Simulators>,
    Path(number): Path<String>,
    form: Result<Form<Submission>, FormRejection>,
) -> Response {
    if !is_subscriber(&number) {
        return not_a_phone();
    }
    let page = |notice| phone_page(&simulators, &number, Some(notice));
    let Ok(Form(submission)) = form else {
        let notice = "The answer is invalid. Choose one of the buttons.";
        return (StatusCode::BAD_REQUEST, page(notice)).into_response();
    };
    match simulators.mpesa().answer(&number, submission.answer) {
        Some(push) => page(description(&push)).into_response(),
        None => (StatusCode::CONFLICT, page("The prompt has ended.")).into_response(),
    }
}

/// Answers the prompt of a phone like the page's buttons, for programs.
pub(crate) async fn answer_prompt(
    State(simulators): State<Simulators>,
    Path(number): Path<String>,
    body: String,
) -> Response {
    let Ok(submission) = serde_json::from_str::<Submission>(&body) else {
        return error_response(
            StatusCode::BAD_REQUEST,
            "answer must be pay, wrong_pin, insufficient_funds or cancel",
        );
    };
    let push = is_subscriber(&number)
        .then(|| simulators.mpesa().answer(&number, submission.answer))
        .flatten();
    match push {
        Some(push) => Json(json!({
            "checkout_request_id": push.checkout_request_id,
            "result_code": push.result_code,
            "receipt": push.receipt,
        }))
        .into_response(),
        None => error_response(StatusCode::NOT_FOUND, "this phone has no open prompt"),
    }
}

fn not_a_phone() -> Response {
    not_found_page("This is not a Safaricom number such as 254708374149.")
}

fn phone_page(simulators: &Simulators, number: &str, notice: Option<&str>) -> Html<String> {
    let mut pushes = simulators.mpesa().pushes();
    pushes.retain(|push| push.phone == number);
    let content = html! {
        p.provider { "M-Pesa · test mode" }
        h1 { (number) }
        @if let Some(notice) = notice { p.notice { (notice) } }
        @match pushes.iter().find(|push| push.is_open()) {
            Some(push) => (prompt(push)),
            None => { p.done { "This phone has no open prompt." } }
        }
        @if pushes.iter().any(|push| !push.is_open()) { (history(&pushes)) }
    };
    page("Phone", "narrow", &content)
}

fn prompt(push: &Push) -> Markup {
    html! {
        dl {
            dt { "Amount" } dd { (amount(push)) }
            dt { "Pay to" } dd { (push.shortcode) }
            dt { "Account" } dd { (push.account_reference) }
            dt { "Description" } dd { (push.description) }
        }
        form method="post" action={ "/phone/" (push.phone) } {
            div.buttons {
                @for (at, (value, label)) in BUTTONS.iter().enumerate() {
                    button.main[at == 0] name="answer" value=(value) { (label) }
                }
            }
        }
    }
}

/// Lists prompts that have ended, newest first.
fn history(pushes: &[Push]) -> Markup {
    html! {
        section {
            h2 { "Earlier prompts" }
            table {
                tr { th { "Account" } th { "Amount" } th { "Result" } }
                @for push in pushes.iter().rev().filter(|push| !push.is_open()).take(SHOWN) {
                    tr {
                        td { (push.account_reference) }
                        td { (amount(push)) }
                        td {
                            (description(push))
                            @if let Some(receipt) = &push.receipt { " " code { (receipt) } }
                            @if push.reversed { " Returned." }
                        }
                    }
                }
            }
        }
    }
}

fn amount(push: &Push) -> String {
    money(push.amount.saturating_mul(100), "KES")
}

fn description(push: &Push) -> &'static str {
    push.result_code.map_or("", result_description)
}
