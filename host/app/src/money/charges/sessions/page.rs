//! `GET /pay/{company}/{charge}/{signature}`: the page on which a payer waits while confirming a
//! payment elsewhere, for example on a phone. It reloads itself until the charge has an outcome.

use askama::Template;
use axum::{
    http::{HeaderValue, header},
    response::{Html, IntoResponse, Response},
};

use super::{
    super::{ChargeId, State as ChargeState, store as charges},
    Charge, PROMPT, Purpose, is_signed,
    store::{self, Row},
};
use crate::money::prelude::*;
use tollhouse_http::openapi::{Describe, Operation};

/// Interval at which the page reloads itself.
const RELOAD_SECONDS: u32 = 3;
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// The page as HTML.
pub struct PayPage(String);

impl IntoResponse for PayPage {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        (headers, Html(self.0)).into_response()
    }
}

impl Describe for PayPage {
    fn describe(operation: &mut Operation<'_>) {
        operation.set_response("text/html", json!({ "type": "string" }));
    }
}

#[derive(Template)]
#[template(path = "pay.html")]
struct Page {
    amount: String,
    heading: &'static str,
    text: String,
    /// The page reloads itself after this number of seconds.
    reload: Option<u32>,
    /// Where the payer continues.
    link: Option<String>,
    /// Opens `link` at once.
    redirects: bool,
}

/// The progress of a charge, for its payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Waiting,
    Expired,
    Paid,
    Failed,
    /// The provider took another amount.
    InReview,
    Returned,
}

impl Progress {
    fn of(charge: &Charge, expires_s: u32, now: Timestamp) -> Progress {
        let expires_at = |from: Timestamp| from.plus_seconds(expires_s.into());
        match charge.state {
            ChargeState::Succeeded => Progress::Paid,
            ChargeState::Queued | ChargeState::Requested | ChargeState::Open => {
                let is_over = charge.requested_at.is_some_and(|from| expires_at(from) <= now);
                if expires_s > 0 && is_over { Progress::Expired } else { Progress::Waiting }
            }
            ChargeState::Failed | ChargeState::Canceled => Progress::Failed,
            ChargeState::Mismatched => Progress::InReview,
            ChargeState::Reversed => Progress::Returned,
        }
    }
}

pub async fn show(
    State(app): State<App>,
    Path((company, id, signature)): Path<(CompanyId, ChargeId, String)>,
) -> Result<PayPage> {
    let unknown = || Error::not_found("page not found");
    if !is_signed(&app, Purpose::Page, &company, &id, &signature) {
        return Err(unknown());
    }
    let find = async |tx: &mut Tx| {
        let charge = charges::find(tx, &company, &id).await?;
        Ok::<_, Error>(charge.zip(store::find(tx, &company, &id).await?))
    };
    let (charge, row) = app.store.read(find).await?.ok_or_else(unknown)?;
    let provider = app.plugins.provider(&charge.provider, &charge.company_id).ok();
    let expires_s = provider.map_or(0, |provider| provider.manifest().sessions.expires_s);
    let page = compose(&charge, row, Progress::of(&charge, expires_s, app.clock.now()));
    Ok(PayPage(page.render().map_err(Error::internal)?))
}

fn compose(charge: &Charge, row: Row, progress: Progress) -> Page {
    let Row { prompt, success_url, cancel_url, .. } = row;
    let other_url = cancel_url.or_else(|| success_url.clone());
    let text = |text: &str| text.to_owned();
    let (heading, text, reload, link) = match progress {
        Progress::Waiting => {
            let prompt = prompt.unwrap_or_else(|| text(PROMPT));
            ("Confirm the payment", prompt, Some(RELOAD_SECONDS), None)
        }
        // A late confirmation still counts.
        Progress::Expired => (
            "The payment request has expired",
            text(
                "If you have already confirmed the payment, keep this page open. It will show the result.",
            ),
            Some(10 * RELOAD_SECONDS),
            other_url,
        ),
        Progress::Paid => {
            ("Payment successful", text("Redirecting you back to the merchant."), None, success_url)
        }
        Progress::InReview => (
            "Your payment is under review",
            text("The amount you paid differs from the amount requested."),
            None,
            other_url,
        ),
        Progress::Returned => (
            "Your payment was refunded",
            text("The money has been returned to you."),
            None,
            other_url,
        ),
        Progress::Failed => (
            "The payment was not completed",
            text("Select Continue to go back to the merchant."),
            None,
            other_url,
        ),
    };
    let amount = format!("{} {}", charge.currency, charge.amount.to_major());
    let redirects = progress == Progress::Paid;
    Page { amount, heading, text, reload, link, redirects }
}
