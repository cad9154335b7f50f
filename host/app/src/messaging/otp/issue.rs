//! Sending of codes: fee, code and queued messages are one transaction.

use super::{CodeKey, FEATURE, counts, limits, store};
use crate::{
    messaging::messages::{self, Destination, Message, OtpContent, Wording, resolve_wording},
    tenants::{
        prelude::*,
        wallet::{Fee, PostOutcome},
    },
};

/// Reason recorded for sends that the balance does not cover.
const NOT_COVERED: &str = "insufficient balance";

/// A code to send.
#[derive(Clone, Debug)]
pub struct CodeRequest {
    pub key: CodeKey,
    /// At least one, and one per channel.
    pub destinations: Vec<Destination>,
    pub digits: usize,
    pub minutes: i64,
    /// `None`: the shortest one.
    pub wording: Option<Wording>,
    /// Purpose of the messages, shown to operators.
    pub purpose: &'static str,
    /// Name of the request, if it may run more than once.
    pub run: Option<String>,
}

impl CodeRequest {
    /// Returns the request for a code that verifies a record.
    pub fn verification(
        key: CodeKey,
        destinations: Vec<Destination>,
        wording: Wording,
        purpose: &'static str,
    ) -> CodeRequest {
        let wording = Some(wording);
        CodeRequest { key, destinations, digits: 6, minutes: 10, wording, purpose, run: None }
    }
}

/// A failed send, of which nothing was committed.
struct SendFailure {
    error: Error,
    /// `None` if `order` failed.
    request: Option<Box<CodeRequest>>,
}

impl<E: Into<Error>> From<E> for SendFailure {
    fn from(error: E) -> SendFailure {
        SendFailure { error: error.into(), request: None }
    }
}

/// What a transaction that sends a code assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Assumes that no earlier code is valid, that tokens are left and that the balance is ample.
    /// PostgreSQL writes everything in one statement, which fails if one of these is wrong.
    Usual,
    /// Assumes nothing: replaces an earlier code, and reports why a code cannot be sent.
    General,
}

/// Sends a code in a transaction of its own, which calls `order`. Fails like `order`; 403 if the
/// plan lacks the feature, 400 if the balance is insufficient or a number is not allowed, 429
/// beyond the send limits, 503 if a channel is not set up. If the balance is insufficient, records
/// the failure.
pub async fn send<F>(app: &App, company: &Company, order: F) -> Result<()>
where
    F: AsyncFnOnce(&mut Tx, &App, &Company) -> Result<CodeRequest> + Clone + Send + 'static,
{
    let mut sent = send_in_mode(app, company, order.clone(), Mode::Usual).await;
    // Retry in general mode; twice, because a concurrent request may store a code under this key.
    for _ in 0..2 {
        match &sent {
            Err(SendFailure { error, .. }) if error.is_not_one_row() || error.is_duplicate() => {
                sent = send_in_mode(app, company, order.clone(), Mode::General).await;
            }
            _ => break,
        }
    }
    let Err(SendFailure { error, request: order }) = sent else {
        app.metrics.count_code("sent");
        return Ok(());
    };
    if let Some(order) = order
        && matches!(error, Error::InsufficientBalance)
    {
        record_rejected_sends(app, company, *order).await;
    }
    Err(error)
}

async fn send_in_mode<F>(
    app: &App,
    company: &Company,
    order: F,
    mode: Mode,
) -> Result<(), SendFailure>
where
    F: AsyncFnOnce(&mut Tx, &App, &Company) -> Result<CodeRequest> + Clone + Send + 'static,
{
    let (host, payer) = (app.clone(), company.clone());
    let send = async move |tx: &mut Tx| -> Result<(), SendFailure> {
        let order = order(tx, &host, &payer).await?;
        let issued = issue(tx, &host, &payer, &order, mode).await;
        issued.map_err(|error| SendFailure { error, request: Some(Box::new(order)) })
    };
    app.store.write(send).await
}

/// Records a refused send for each destination within its limit: refusals are free, so nothing else
/// bounds the records. A failure to do so is only logged.
async fn record_rejected_sends(app: &App, company: &Company, order: CodeRequest) {
    let (host, company_id) = (app.clone(), company.id.clone());
    let note = async move |tx: &mut Tx| -> Result<()> {
        let noted =
            limits::take_refusal_tokens(tx, &host, &company_id, &order.destinations).await?;
        for destination in noted {
            let message = Message::new(&host, &company_id, destination, order.purpose);
            messages::record_rejected(tx, message, NOT_COVERED).await?;
        }
        Ok(())
    };
    match app.store.write(note).await {
        Ok(()) | Err(Error::RateLimited(_)) => {}
        Err(error) => {
            tracing::warn!(error = %error.chain(), "rejected message could not be recorded");
        }
    }
}

/// Draws a code, replaces the previous one and queues a message for each destination.
async fn issue(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    order: &CodeRequest,
    mode: Mode,
) -> Result<()> {
    company.check_feature(FEATURE)?;
    let now = app.clock.now();
    let id = order.run.clone().unwrap_or_else(|| app.random.id(now));
    let charge_key = |to: &Destination| format!("otp:{id}:{}", to.channel.name());
    if let (Some(_), Some(first)) = (&order.run, order.destinations.first())
        && wallet::is_fee_charged(tx, &company.id, &charge_key(first)).await?
    {
        // An earlier run of this request sent it, but could not respond.
        return Ok(());
    }
    let mut fees = Vec::new();
    for destination in &order.destinations {
        messages::check(tx, app, company, destination).await?;
        let item = destination.channel.billing_item();
        let fee = wallet::quote_fee(tx, company, item, 1).await?;
        fees.push((fee, charge_key(destination)));
    }
    let code = generate_code(app, company, order.digits);
    let digest = app.sealer.digest(&order.key.digest_input(&company.id, &code));
    let expires_at = now.plus_seconds(order.minutes * 60);
    if mode == Mode::General
        && let Some(topic) = store::expire(tx, &company.id, &order.key, now).await?
    {
        messages::cancel_superseded(tx, app, &company.id, &topic).await?;
    }
    let topic = app.new_id();
    let times = [now, expires_at];
    store::insert(tx, &company.id, &order.key, &topic, &digest, times).await?;
    // Pay first, so that a refused send writes no messages.
    if mode == Mode::General {
        pay(tx, app, company, order, &fees, mode).await?;
    }
    let (header, body, greeting) = resolve_wording(&company.name, order.wording.as_ref());
    let (name, logo, minutes) = (company.name.clone(), company.logo.clone(), order.minutes);
    let text = OtpContent { company: name, logo, header, greeting, body, code, minutes };
    let text = messages::Content::from(text);
    for (destination, (_, charge_key)) in order.destinations.iter().zip(&fees) {
        let message = Message {
            topic: topic.clone(),
            charge_key: charge_key.clone(),
            give_up_at: expires_at,
            ..Message::new(app, &company.id, destination, order.purpose)
        };
        messages::enqueue(tx, app, message, &destination.to, text.clone()).await?;
    }
    if mode == Mode::Usual {
        pay(tx, app, company, order, &fees, mode).await?;
    }
    counts::count_sent(tx, &company.id, now).await
}

/// Takes the tokens of a send, and charges its fees. All sends of a company change its bucket, its
/// balance and its counts: they are locked in this order, and in the usual mode last.
async fn pay(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    order: &CodeRequest,
    fees: &[(Fee, String)],
    mode: Mode,
) -> Result<()> {
    if mode == Mode::Usual {
        limits::take_send_tokens_at_commit(tx, app, &company.id, &order.destinations).await?;
        if wallet::charge_ample_fees(tx, app, company, fees).await? {
            return Ok(());
        }
    } else {
        limits::take_send_tokens(tx, app, &company.id, &order.destinations).await?;
    }
    for (fee, key) in fees {
        if wallet::charge_quoted(tx, app, company, fee, key).await? == PostOutcome::Duplicate {
            // A concurrent run of this request has sent it: roll back.
            return Err(Error::Conflict("this request is already in progress".to_owned()));
        }
    }
    Ok(())
}

/// Returns a random code, or the fixed one of a test company, repeated or cut to `digits`.
fn generate_code(app: &App, company: &Company, digits: usize) -> String {
    match &company.fixed_otp {
        Some(fixed) if company.is_test() => fixed.chars().cycle().take(digits).collect(),
        _ => app.random.digits(digits),
    }
}
