//! Sending of codes: fee, code and queued messages are one transaction.

use super::{FEATURE, Key, counts, limits, limits::Limited, store};
use crate::{
    messaging::messages::{self, Destination, NewMessage, OtpText},
    state::App,
    tenants::{
        companies::Company,
        wallet::{self, Moved},
    },
};
use tollhouse_platform::{
    error::{Error, Result},
    store as database,
    store::Tx,
};

/// Reason recorded for sends that the balance does not cover.
const NOT_COVERED: &str = "insufficient balance";

/// A code to send.
#[derive(Clone, Debug)]
pub struct Order {
    pub key: Key,
    /// At least one, and one per channel.
    pub destinations: Vec<Destination>,
    pub digits: usize,
    pub minutes: i64,
    pub header: String,
    pub body: String,
    pub greeting: String,
    /// Purpose of the messages, shown to operators.
    pub purpose: &'static str,
    /// Name of the request, if it may run more than once.
    pub run: Option<String>,
}

/// A failed send, of which nothing was committed.
struct Unsent {
    error: Error,
    /// `None` if the order could not be made.
    order: Option<Order>,
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Unsent {
        Unsent { error, order: None }
    }
}

impl From<database::Error> for Unsent {
    fn from(error: database::Error) -> Unsent {
        Error::from(error).into()
    }
}

/// Sends a code in a transaction of its own, which calls `order`. Fails like `order`; 403 if the
/// plan lacks the feature, 400 if the balance is insufficient or a number not allowed, 429 beyond
/// the send limits, 503 if a channel is not set up. If the balance is insufficient, records the
/// failure.
pub async fn send<F>(app: &App, company: &Company, order: F) -> Result<()>
where
    F: AsyncFnOnce(&mut Tx, &App, &Company) -> Result<Order> + Clone + Send + 'static,
{
    let (host, payer) = (app.clone(), company.clone());
    let sent = app.store.write(async move |tx: &mut Tx| -> Result<(), Unsent> {
        let order = order(tx, &host, &payer).await?;
        let issued = issue(tx, &host, &payer, &order).await;
        issued.map_err(|error| Unsent { error, order: Some(order) })
    });
    let Err(Unsent { error, order }) = sent.await else {
        app.metrics.noted.code("sent");
        return Ok(());
    };
    if let Some(order) = order
        && matches!(error, Error::NotCovered)
    {
        note_refusal(app, company, order).await;
    }
    Err(error)
}

/// Records a refused send for each destination within its limit: refusals are free, so nothing else
/// bounds the records. A failure to do so is only logged.
async fn note_refusal(app: &App, company: &Company, order: Order) {
    let (host, company_id) = (app.clone(), company.id.clone());
    let note = async move |tx: &mut Tx| -> Result<()> {
        let (what, destinations) = (Limited::Refusals, &order.destinations);
        let noted = limits::take_each(tx, &host, &company_id, what, destinations).await?;
        for destination in noted {
            let purpose = order.purpose;
            messages::note_refused(tx, &host, &company_id, destination, purpose, NOT_COVERED)
                .await?;
        }
        Ok(())
    };
    match app.store.write(note).await {
        Ok(()) | Err(Error::Throttled(_)) => {}
        Err(error) => {
            tracing::warn!(error = %error.chain(), "rejected message could not be recorded");
        }
    }
}

/// Draws a code, replaces the previous one and queues a message for each destination.
async fn issue(tx: &mut Tx, app: &App, company: &Company, order: &Order) -> Result<()> {
    company.check_feature(FEATURE)?;
    let now = app.clock.now();
    let id = order.run.clone().unwrap_or_else(|| app.random.id(now));
    let charge_key = |to: &Destination| format!("otp:{id}:{}", to.channel.name());
    if let (Some(_), Some(first)) = (&order.run, order.destinations.first())
        && wallet::was_charged(tx, &company.id, &charge_key(first)).await?
    {
        // An earlier run of this request sent it, but could not respond.
        return Ok(());
    }
    for destination in &order.destinations {
        messages::check(tx, app, company, destination).await?;
    }
    let code = draw(app, company, order.digits);
    let digest = app.sealer.digest(&order.key.parts(&company.id, &code));
    let expires_at = now.plus_seconds(order.minutes * 60);
    let (company_id, times) = (&*company.id, [now, expires_at]);
    let topic = store::put(tx, company_id, &order.key, &app.new_id(), &digest, times).await?;
    // Lock rows in one order: buckets before balances.
    limits::take(tx, app, &company.id, Limited::Sends, &order.destinations).await?;
    messages::withdraw(tx, app, &company.id, &topic).await?;
    let text = order.text(company, code);
    for destination in &order.destinations {
        let (item, charge_key) = (destination.channel.billing_item(), charge_key(destination));
        if wallet::charge(tx, app, company, item, 1, &charge_key).await? == Moved::Before {
            // A concurrent run of this request has sent it: roll back.
            return Err(Error::Conflict("this request is already in progress".to_owned()));
        }
        let message = NewMessage {
            destination,
            purpose: order.purpose,
            topic: &topic,
            text: &text,
            charge_key,
            give_up_at: expires_at,
        };
        messages::queue(tx, app, &company.id, message).await?;
    }
    counts::sent(tx, &company.id, now).await
}

/// Returns a random code, or the fixed one of a test company, repeated or cut to `digits`.
fn draw(app: &App, company: &Company, digits: usize) -> String {
    match &company.fixed_otp {
        Some(fixed) if company.is_test() => fixed.chars().cycle().take(digits).collect(),
        _ => app.random.digits(digits),
    }
}

impl Order {
    fn text(&self, company: &Company, code: String) -> OtpText {
        OtpText {
            company: company.name.clone(),
            logo: company.logo.clone(),
            header: self.header.clone(),
            greeting: self.greeting.clone(),
            body: self.body.clone(),
            code,
            minutes: self.minutes,
        }
    }
}
