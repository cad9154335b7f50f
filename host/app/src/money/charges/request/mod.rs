//! Requesting charges: record the charge, call the provider, record its response.
//!
//! The charge is committed before the provider is called, so that it can be settled even after a
//! crash. No transaction is open during the call. A page is opened while its client waits. Card and
//! mandate charges are queued: the job `charge.request` requests those of a lane one at a time.
//!
//! The reference at the provider is the caller's, if the provider accepts it, it is not in use on
//! that account, and the provider does not look up push payments by reference. Otherwise it is
//! generated. If the provider returns another reference, both are in the directory, and only the
//! provider's is verified.

pub mod choice;
pub mod lease;
mod page;
mod rejection;
mod resume;

use self::{choice::Choice, lease::Leased, resume::maybe_open_until};
pub use self::{page::open_page, rejection::check_amount, resume::resume};
use super::{
    Charge, ChargeOwner, Decision, Fact, FundsAccount, Method, Order, OwnerKind, RECONCILE_JOB,
    REQUEST_JOB, ReferenceSource, Rejection, State, Turn, adopt::adopt_lane, sessions, settle,
    store, verify,
};
use crate::money::prelude::*;
use tollhouse_plugins::{Cause, Manifest, PartialOrder};

/// Delay until a card or mandate charge that certainly was not made is requested again.
const REQUEUE_SECONDS: i64 = 60;

/// A charge to record.
pub struct NewCharge<'c> {
    pub company_id: &'c CompanyId,
    pub owner: (OwnerKind, &'c str),
    pub method: Method,
    pub account: &'c Account,
    /// Why the router chose the account's provider. `None`: it did not.
    pub choice: Option<Choice>,
    pub amount: Money,
    /// The caller's reference.
    pub reference: Option<&'c str>,
    pub lane: Option<String>,
}

/// Money that arrived without a request.
pub struct Received<'r> {
    /// The account at which it arrived.
    pub account: &'r Account,
    pub amount: Money,
    /// The provider's reference.
    pub service_ref: &'r str,
}

/// Composes the first charge of an owner. Its reference is the caller's, if the provider accepts
/// its format, else a generated one. A page is requested at once. 400 if the provider does not
/// accept the amount.
pub fn compose(app: &App, new: NewCharge<'_>) -> Result<Charge> {
    let provider = app.plugins.provider(&new.account.provider, new.company_id)?;
    rejection::check_amount(&provider, &new.amount)?;
    let has_reference = new.reference.is_some();
    let mut charge = first(app, new);
    let Manifest { reference: rules, sessions, .. } = provider.manifest();
    if !has_reference || !rules.accepts(&charge.service_ref) || sessions.needs_own_reference() {
        charge.service_ref = charge.generate_reference(app)?;
        charge.reference_source = ReferenceSource::Host;
    }
    if charge.method == Method::Checkout {
        charge.claim(charge.created_at);
    }
    Ok(charge)
}

/// Composes the charge of money that arrived without a request. `new` has the provider's reference.
pub fn compose_received(app: &App, new: NewCharge<'_>) -> Charge {
    let mut charge = first(app, new);
    charge.reference_source = ReferenceSource::Provider;
    charge.claim(charge.created_at);
    // No request is in progress.
    charge.lease_until = None;
    charge
}

/// Returns the first charge of an owner, under the caller's reference.
fn first(app: &App, new: NewCharge<'_>) -> Charge {
    let now = app.clock.now();
    Charge {
        company_id: new.company_id.clone(),
        id: app.random.id(now).into(),
        owner_kind: new.owner.0,
        owner_id: new.owner.1.to_owned(),
        number: 1,
        method: new.method,
        provider: new.account.provider.clone(),
        account_id: new.account.id.clone(),
        in_books: new.account.is_service_account(),
        lane: new.lane,
        amount: new.amount.minor,
        currency: new.amount.currency,
        at_least: None,
        taken: None,
        taken_currency: None,
        fees: None,
        credited: Minor(0),
        credited_to: FundsAccount::Wallet,
        refunded: Minor(0),
        disputed: Minor(0),
        service_ref: new.reference.unwrap_or_default().to_owned(),
        reference_source: ReferenceSource::Caller,
        transaction_id: String::new(),
        state: State::Queued,
        counts: false,
        superseded: false,
        holds_lane: false,
        unsure: false,
        fence: 0,
        lease_until: None,
        begun_at: None,
        requested_at: None,
        settled_at: None,
        session_url: None,
        mismatch: None,
        created_at: now,
        updated_at: now,
        choice: new.choice,
    }
}

/// Inserts the charge of money that arrived, and enqueues its verification. Fails as a duplicate if
/// a record has the reference.
pub async fn insert_received(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    insert_composed(tx, app, charge).await?;
    let Charge { company_id, id, created_at, .. } = charge;
    Ok(jobs::enqueue(tx, company_id, RECONCILE_JOB, id, *created_at).await?)
}

/// Inserts a composed charge with its reference. Fails as a duplicate if the reference is taken.
pub async fn insert_composed(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    let Charge { account_id, service_ref, created_at, .. } = charge;
    let owner = charge.as_owner();
    let charge_id = Some(&*charge.id);
    notifications::insert_reference(tx, account_id, service_ref, owner, charge_id, *created_at)
        .await?;
    insert(tx, app, charge).await
}

/// Inserts a charge and enqueues its first job.
async fn insert(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    store::insert(tx, charge).await?;
    choice::insert(tx, charge).await?;
    let now = app.clock.now();
    if let Some(lane) = &charge.lane {
        jobs::enqueue(tx, &charge.company_id, REQUEST_JOB, lane, now).await?;
    }
    verify::schedule(tx, charge, now).await
}

async fn reserve_generated(tx: &mut Tx, app: &App, charge: &mut Charge) -> Result<()> {
    charge.service_ref = charge.generate_reference(app)?;
    charge.reference_source = ReferenceSource::Host;
    let Charge { account_id, service_ref, created_at, .. } = &*charge;
    let owner = charge.as_owner();
    match notifications::reserve(tx, account_id, service_ref, owner, Some(&charge.id), *created_at)
        .await?
    {
        true => Ok(()),
        false => Err(Error::internal("generated reference is already taken")),
    }
}

/// Inserts the charge that replaces one without effect for the payer. Its reference is generated.
pub async fn insert_next(
    tx: &mut Tx,
    app: &App,
    before: &Charge,
    number: i64,
    amount: Minor,
) -> Result<Charge> {
    let now = app.clock.now();
    let mut next = Charge {
        id: app.random.id(now).into(),
        number,
        amount,
        transaction_id: String::new(),
        unsure: false,
        fence: 0,
        begun_at: None,
        requested_at: None,
        created_at: now,
        state: State::Queued,
        superseded: false,
        ..before.clone()
    };
    reserve_generated(tx, app, &mut next).await?;
    next.claim(now);
    insert(tx, app, &next).await?;
    Ok(next)
}

/// A provider's response to a request.
enum Response {
    Session(CheckoutSession),
    Payment(Box<ProviderPayment>),
}

/// Requests a charge under its lease. The outer error is the host's: no request was sent.
async fn send<O: ChargeOwner>(
    app: &App,
    owner: &O,
    charge: &Charge,
    account: Option<&Account>,
) -> Result<Result<Response, CallError>> {
    let ChargeVerifier { provider, credentials } = match account {
        Some(account) => ChargeVerifier::new(app, &charge.company_id, account)?,
        None => charge.verifier(app).await?,
    };
    // A repayment may have become smaller since.
    if let Err(violation) = provider.manifest().check_amount(&charge.money()) {
        let fault = violation.to_fault(&charge.currency);
        return Ok(Err(CallError::not_done(fault)));
    }
    let order = owner.order(app, charge).await?;
    let call = async {
        match order {
            Order::Checkout(mut order) => {
                order.notification_url = sessions::notification_url(app, charge, &charge.id);
                let mut session = provider.open_session(&credentials, &order).await?;
                if session.prompt.is_some() {
                    session.url = sessions::page_url(app, charge);
                }
                Ok(Response::Session(session))
            }
            Order::Card(order) => {
                let charged = match charge.least().filter(|_| provider.has_partial_debits()) {
                    Some(least) => {
                        let order = PartialOrder::of_card(order, least);
                        provider.charge_card_in_part(&credentials, &order).await?
                    }
                    None => provider.charge_card(&credentials, &order).await?,
                };
                let charged = provider.with_decline(&credentials, charged).await;
                Ok(Response::Payment(Box::new(charged)))
            }
            Order::Debit(order) => {
                let debited = match charge.least().filter(|_| provider.has_partial_debits()) {
                    Some(least) => {
                        let order = PartialOrder::of_mandate(order, least);
                        provider.debit_in_part(&credentials, &order).await?
                    }
                    None => provider.debit(&credentials, &order).await?,
                };
                let debited = provider.with_decline(&credentials, debited).await;
                Ok(Response::Payment(Box::new(debited)))
            }
        }
    };
    Ok(Leased::Charge(Box::new(charge.clone())).hold(app, call).await)
}

fn to_fact(app: &App, response: &Result<Result<Response, CallError>>, charge: &Charge) -> Fact {
    match response {
        Ok(Err(error)) if is_own_duplicate(app, error, charge) => Fact::Lost,
        Ok(Ok(Response::Session(session))) => Fact::Session(Box::new(session.clone())),
        // The charge is known by the requested reference, whatever the plugin returns.
        Ok(Ok(Response::Payment(seen))) => Fact::Seen(Box::new(ProviderPayment {
            service_ref: charge.service_ref.clone(),
            ..(**seen).clone()
        })),
        Ok(Err(error)) if error.certainty == Certainty::Unknown => Fact::Lost,
        Ok(Err(error)) => {
            let reason = rejection::reason(&error.fault, charge);
            let rejection = match to_rejection(error) {
                // Another provider may accept it.
                Rejection::Invalid
                    if charge.choice.is_some() && rejection::is_of_provider(error) =>
                {
                    Rejection::Refused
                }
                rejection => rejection,
            };
            Fact::Rejected(rejection, reason)
        }
        Err(_) => Fact::Rejected(Rejection::Temporary, None),
    }
}

/// Returns whether a duplicate-reference error refers to this charge's own earlier request, which
/// the preceding verification did not find. The payer may still confirm that request.
fn is_own_duplicate(app: &App, error: &CallError, charge: &Charge) -> bool {
    // The provider accepts a reference once: the first request decides when the prompt expires.
    let first = Charge { requested_at: charge.begun_at, ..charge.clone() };
    let open_until = maybe_open_until(app, &first).ok().flatten();
    to_rejection(error) == Rejection::DuplicateReference
        && charge.unsure
        && open_until.is_some_and(|until| until > app.clock.now())
}

fn to_rejection(error: &CallError) -> Rejection {
    match error.fault.category {
        _ if error.fault.code == "duplicate-reference" => Rejection::DuplicateReference,
        _ if error.fault.cause() == Some(Cause::PayerBusy) => Rejection::Temporary,
        FaultCategory::Invalid => Rejection::Invalid,
        FaultCategory::Refused | FaultCategory::NotFound => Rejection::Refused,
        FaultCategory::Unavailable | FaultCategory::Misconfigured | FaultCategory::Other => {
            Rejection::Temporary
        }
    }
}

/// Requests the oldest queued charge of a lane, unless another charge holds the lane.
pub async fn request_job<O: ChargeOwner>(app: App, job: Job) -> Result<JobResult> {
    let lane = job.subject.clone();
    let read = async |tx: &mut Tx| store::next_in_lane(tx, &job.company_id, &lane).await;
    let Some(candidate) = app.store.select(read).await? else { return Ok(JobResult::Done) };
    let now = app.clock.now();
    let (owner, charge) = match take::<O>(&app, candidate).await? {
        Taken::Go(owner, charge) => (owner, charge),
        Taken::Changed => return Ok(JobResult::RescheduleAt(now)),
        Taken::Wait => return Ok(JobResult::RescheduleAt(now.plus_seconds(REQUEUE_SECONDS))),
    };
    let response = send(&app, &owner, &charge, None).await;
    let fact = to_fact(&app, &response, &charge);
    let recorded = settle::record::<O>(&app, &charge, fact).await?;
    let error = match response {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.into_error(&charge.provider)),
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        let (company, id) = (charge.company_id.as_str(), charge.id.as_str());
        tracing::warn!(company, charge = id, error = error.chain(), "charge was not confirmed");
    }
    Ok(match recorded.map(|recorded| recorded.decision) {
        Some(Decision::Requeue) => {
            JobResult::RescheduleAt(app.clock.now().plus_seconds(REQUEUE_SECONDS))
        }
        // The transaction that releases the lane enqueues this job.
        _ => JobResult::Done,
    })
}

enum Taken<O> {
    Go(O, Box<Charge>),
    /// The charge was withdrawn, or another host has taken it.
    Changed,
    Wait,
}

/// Begins the request of a queued charge, with the amount that is still wanted.
async fn take<O: ChargeOwner>(app: &App, candidate: Charge) -> Result<Taken<O>> {
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let Charge { company_id, owner_id, .. } = &candidate;
        let Some((owner, _)) = settle::lock::<O>(tx, &app, company_id, owner_id).await? else {
            return Ok(Taken::Changed);
        };
        let lane = candidate.lane.as_deref().unwrap_or_default();
        adopt_lane(tx, &app, company_id, lane).await?;
        let next = store::next_in_lane(tx, company_id, lane).await?;
        let Some(mut charge) = next.filter(|next| next.id == candidate.id) else {
            return Ok(Taken::Changed);
        };
        let now = app.clock.now();
        match owner.turn(tx, &app, &charge).await? {
            Turn::Go(amount) => charge.amount = amount,
            Turn::GoAt(amount, account) => {
                charge.amount = amount;
                move_to(tx, &app, &mut charge, &account).await?;
            }
            Turn::Withdraw(message) => {
                settle::cancel(tx, &app, owner, charge, message).await?;
                return Ok(Taken::Changed);
            }
            Turn::Wait => return Ok(Taken::Wait),
        }
        charge.claim(now);
        store::update(tx, &charge).await?;
        verify::schedule(tx, &charge, now).await?;
        Ok(Taken::Go(owner, Box::new(charge)))
    })
    .await
}

/// Moves a charge that was never requested to another account of its provider.
async fn move_to(tx: &mut Tx, app: &App, charge: &mut Charge, account: &Account) -> Result<()> {
    notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
    charge.account_id = account.id.clone();
    charge.in_books = account.is_service_account();
    reserve_generated(tx, app, charge).await
}
