//! Sending a code: charge, code and queued messages are one transaction.

use super::{FEATURE, Key, counts, limits, limits::Limited, store};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    messages::{self, Destination, NewMessage, OtpText},
    store::{self as database, Tx},
    wallet::{self, Moved},
};

/// The reason in the notes of sends that the wallet did not cover.
const NOT_COVERED: &str = "insufficient balance";

/// A code to be sent.
#[derive(Clone, Debug)]
pub struct Order {
    pub key: Key,
    /// One for each channel, at least one.
    pub destinations: Vec<Destination>,
    pub digits: usize,
    pub minutes: i64,
    pub header: String,
    pub body: String,
    pub greeting: String,
    /// What operators see that the messages are for.
    pub purpose: &'static str,
    /// The name of the sending, for a request that may run more than once.
    pub run: Option<String>,
}

/// A send of which nothing was committed.
struct Unsent {
    error: Error,
    /// As far as it was known.
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

/// Sends a code in a transaction of its own, in which `order` is made. Fails as `order` does, and 403 when the plan has no codes, 400
/// when the wallet does not cover the messages or a number is not allowed, 429 when too many were sent, 503 when a channel is not
/// set up. Nothing of a send that fails is kept, save a note for support when the wallet does not cover it.
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
        app.telemetry.noted.code("sent");
        return Ok(());
    };
    if let Some(order) = order
        && matches!(error, Error::NotCovered)
    {
        note_refusal(app, company, order).await;
    }
    Err(error)
}

/// Notes a refused send among the company's messages, for each destination whose limit allows it:
/// refusals cost nothing, so nothing else bounds them. A missing note fails no request.
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
            tracing::warn!(error = %error.chain(), "a refused message was not noted");
        }
    }
}

/// Draws a code, puts it in the place of the one before it, and queues a message for each destination.
async fn issue(tx: &mut Tx, app: &App, company: &Company, order: &Order) -> Result<()> {
    company.check_feature(FEATURE)?;
    let now = app.clock.now();
    let id = order.run.clone().unwrap_or_else(|| app.random.id(now));
    let charge_key = |to: &Destination| format!("otp:{id}:{}", to.channel.name());
    if let (Some(_), Some(first)) = (&order.run, order.destinations.first())
        && wallet::was_charged(tx, &company.id, &charge_key(first)).await?
    {
        // An earlier run of this request has sent it and could not say so.
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
    // Rows are locked in one order, in which balances come after buckets.
    limits::take(tx, app, &company.id, Limited::Sends, &order.destinations).await?;
    messages::withdraw(tx, app, &company.id, &topic).await?;
    let text = order.text(company, code);
    for destination in &order.destinations {
        let (item, charge_key) = (destination.channel.billing_item(), charge_key(destination));
        if wallet::charge(tx, app, company, item, 1, &charge_key).await? == Moved::Before {
            // Another run of this request has sent it meanwhile; what this one did must not stand.
            return Err(Error::Conflict("this request is being run already".to_owned()));
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

/// A test company may have every code fixed: repeated or cut to the length that is wanted.
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
