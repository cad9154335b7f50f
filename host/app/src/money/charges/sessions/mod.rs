//! Data of plugins about charges and refunds, and the signed links of each.
//!
//! A plugin with the interface `sessions` or `session-refunds` returns data when it starts a
//! session or refund, and when it reads a notification; later calls receive it. Each charge and
//! refund has its own notification URL, and each push payment a status page. The links are signed,
//! so that they cannot be guessed and need not be stored.

pub mod api;
pub mod page;
mod store;

pub use self::store::SEALED;
use super::{Charge, ChargeOwner, refund::Refund};
use crate::money::prelude::*;
use store::Row;
use tollhouse_plugins::{KnownRefund, KnownSession, PluginData};

/// The instruction to the payer if that of the provider is unknown.
pub const PROMPT: &str = "Confirm the payment on your phone.";

/// What the signature of a link permits.
#[derive(Clone, Copy)]
enum Purpose {
    Notification,
    Page,
}

fn signed_values<'v>(purpose: Purpose, company_id: &'v str, id: &'v str) -> [&'v str; 3] {
    let purpose = match purpose {
        Purpose::Notification => "session-notification",
        Purpose::Page => "session-page",
    };
    [purpose, company_id, id]
}

/// Returns the end of a link's path: company, charge or refund, and signature.
fn sign(app: &App, purpose: Purpose, company_id: &str, id: &str) -> String {
    let signature = app.sealer.digest(&signed_values(purpose, company_id, id));
    format!("{company_id}/{id}/{signature}")
}

fn is_signed(app: &App, purpose: Purpose, company_id: &str, id: &str, signature: &str) -> bool {
    app.sealer.verify_digest(signature, &signed_values(purpose, company_id, id))
}

/// Returns the URL that receives the notifications of a charge or of one of its refunds.
pub fn notification_url(app: &App, charge: &Charge, id: &str) -> String {
    let base = app.settings.public_url.trim_end_matches('/');
    let Charge { company_id, provider, account_id, .. } = charge;
    let end = sign(app, Purpose::Notification, company_id, id);
    format!("{base}/api/v1/notifications/{provider}/{account_id}/{end}")
}

/// Returns the URL of the page on which the payer waits.
pub fn page_url(app: &App, charge: &Charge) -> String {
    let base = app.settings.public_url.trim_end_matches('/');
    format!("{base}/pay/{}", sign(app, Purpose::Page, &charge.company_id, &charge.id))
}

/// Stores what a plugin returned with a session.
pub async fn insert<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    owner: &O,
    charge: &Charge,
    session: &CheckoutSession,
) -> Result<()> {
    if session.state.is_none() && session.prompt.is_none() {
        return Ok(());
    }
    let (success_url, cancel_url) = owner.return_urls();
    let row = Row {
        state: seal_state(app, charge, session),
        prompt: session.prompt.clone(),
        success_url: Some(success_url.to_owned()),
        cancel_url: cancel_url.map(str::to_owned),
        ..Row::new(&charge.company_id, &charge.id)
    };
    Ok(store::insert(tx, &row).await?)
}

fn seal_state(app: &App, charge: &Charge, session: &CheckoutSession) -> Option<String> {
    let state = session.state.as_ref()?;
    Some(store::seal(app, &charge.company_id, &charge.id, state))
}

/// Stores the state of a session that the charge no longer uses, unless a state is stored already:
/// the payer may still confirm that session.
pub async fn keep_state(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    session: &CheckoutSession,
) -> Result<()> {
    let Some(state) = seal_state(app, charge, session) else { return Ok(()) };
    Ok(store::insert_missing_state(tx, &charge.company_id, &charge.id, &state).await?)
}

/// Stores what a plugin returned with a refund.
pub async fn insert_refund(
    tx: &mut Tx,
    app: &App,
    refund: &Refund,
    seen: &ProviderRefund,
) -> Result<()> {
    let Some(state) = &seen.state else { return Ok(()) };
    if refund.state == super::RefundState::Pending {
        return Ok(());
    }
    let row = Row {
        state: Some(store::seal(app, &refund.company_id, &refund.id, state)),
        ..Row::new(&refund.company_id, &refund.id)
    };
    Ok(store::insert(tx, &row).await?)
}

/// Data of a plugin about one record.
#[derive(Default)]
struct Data {
    state: Option<PluginData>,
    notified: Option<PluginData>,
    revision: i64,
}

async fn read(app: &App, company_id: &CompanyId, id: &str) -> Result<Data> {
    let find = async |tx: &mut Tx| store::find(tx, company_id, id).await;
    let Some(row) = app.store.select(find).await? else { return Ok(Data::default()) };
    let open = |sealed: &Option<String>| {
        sealed.as_ref().map(|sealed| store::open(app, company_id, id, sealed)).transpose()
    };
    Ok(Data { state: open(&row.state)?, notified: open(&row.notified)?, revision: row.revision })
}

/// Returns a charge as plugins see it.
pub async fn known(app: &App, provider: &Provider, charge: &Charge) -> Result<KnownSession> {
    let data = match provider.has_sessions() {
        true => read(app, &charge.company_id, &charge.id).await?,
        false => Data::default(),
    };
    Ok(KnownSession {
        service_ref: charge.service_ref.clone(),
        transaction_id: charge.transaction_id.clone(),
        amount: charge.money(),
        started_at: charge.requested_at.unwrap_or(charge.created_at).to_string(),
        state: data.state,
        notified: data.notified,
    })
}

/// Returns whether a notification about the record is stored.
pub async fn is_notified(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<bool> {
    Ok(store::find(tx, company_id, id).await?.is_some_and(|row| row.notified.is_some()))
}

/// Returns a refund as plugins see it.
pub async fn known_refund(
    app: &App,
    provider: &Provider,
    charge: &Charge,
    refund: &Refund,
) -> Result<KnownRefund> {
    let data = match provider.has_session_refunds() {
        true => read(app, &refund.company_id, &refund.id).await?,
        false => Data::default(),
    };
    Ok(KnownRefund {
        session: known(app, provider, charge).await?,
        refund_ref: refund.refund_ref.clone(),
        amount: refund.money(),
        provider_id: refund.provider_id.clone(),
        state: data.state,
        notified: data.notified,
    })
}
