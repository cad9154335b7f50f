//! Creating a recollection: record it and, unless it is manual, start it at the provider.

use super::{
    CARD, CHECKOUT, DIRECT_DEBIT, Recollection, SETTLE_JOB, Status,
    api::{NewRecollection, Pages},
    charge, lock_with_loan, settle, store, user_of,
};
use crate::{
    lending::{
        loans::{self, Loan},
        mandates::{self, MandateId},
    },
    money::{
        cards::{self, CardId},
        prelude::*,
    },
};

/// The default channel of a manual recollection.
const CASH: &str = "cash";

#[instrument(target = SPAN_TARGET, name = "recollections.create", skip_all)]
pub async fn create(
    app: &App,
    company: &Company,
    order: NewRecollection,
    run: Option<String>,
) -> Result<Recollection> {
    let (recollection, attempt) = record(app, company, order, run).await?;
    if recollection.status != Status::Pending || recollection.checkout.url.is_some() {
        return Ok(recollection);
    }
    if recollection.is_charge() {
        return charge::attempt(app, recollection, attempt).await;
    }
    let verifier = recollection.verifier(app).await?;
    let user = user_of(app, &recollection).await?.ok_or_else(users::not_found)?;
    let order = checkout_order(&recollection, user)?;
    let begun = verifier.provider.start_checkout(&verifier.credentials, &order);
    let Recollection { company_id, id, lease, .. } = recollection.clone();
    let id = id.to_string();
    let leased = Leased { table: LeasedTable::Recollections, company_id, id, lease };
    match leased.hold(app, begun).await {
        Ok(session) => record_session(app, recollection, session).await,
        Err(error) => {
            // A recollection from an earlier request is kept.
            let is_forgotten = charges::is_invalid(&error) && attempt == Attempt::First;
            end_attempt(app, &recollection, is_forgotten).await?;
            let fields = ["amount", "metadata"];
            Err(charges::client_error(error, &recollection.payment_service, &fields))
        }
    }
}

async fn record(
    app: &App,
    company: &Company,
    order: NewRecollection,
    run: Option<String>,
) -> Result<(Recollection, Attempt)> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let loan = loans::lock(tx, &company.id, &order.loan).await?;
        let loan = loan.ok_or_else(|| Error::not_found("loan not found"))?;
        if let Some(reference) = &order.reference
            && let Some(known) = store::find_by_reference(tx, &company.id, reference).await?
        {
            let known = find_or_resume(tx, &app, &loan, &order, run.as_ref(), known).await?;
            return Ok((known, Attempt::Retry));
        }
        check_outstanding(&loan)?;
        let new = compose(tx, &app, &company, &loan, order, run).await?;
        if !store::insert(tx, &new).await? {
            // A concurrent request for another loan has used the reference.
            return Err(reference_taken());
        }
        let recorded = match new.with_provider {
            true => begin(tx, &new).await.map(|()| new),
            false => settle::succeed(tx, &app, loan, new).await,
        };
        Ok((recorded?, Attempt::First))
    })
    .await
}

fn check_outstanding(loan: &Loan) -> Result<()> {
    if loan.is_paid() {
        return Err(Error::invalid("loan already been paid completely"));
    }
    if !loan.disbursed {
        return Err(Error::invalid("loan has not been disbursed"));
    }
    Ok(())
}

fn reference_taken() -> Error {
    Error::invalid("reference already exists")
}

/// Finds the recollection of a repeated request. If it has no checkout URL yet, any checkout
/// request with the same reference opens another session, under another reference at the provider,
/// once the lease has ended; until then 409.
async fn find_or_resume(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    order: &NewRecollection,
    run: Option<&String>,
    known: Recollection,
) -> Result<Recollection> {
    let now = app.clock.now();
    let is_own = run.is_some() && run == known.run.as_ref();
    let has_no_page = known.status == Status::Pending
        && known.payment_channel == CHECKOUT
        && known.checkout.url.is_none();
    let may = if has_no_page { order.is_by(CHECKOUT) } else { is_own };
    if known.loan_id != order.loan || !may {
        return Err(reference_taken());
    }
    if !has_no_page {
        return Ok(known);
    }
    if !known.lease.is_free(now) {
        return Err(known.lease.conflict(now, charges::IN_PROGRESS));
    }
    check_outstanding(loan)?;
    let served = providers::plugin_of(app, &known.payment_service, &known.company_id)?;
    let known = Recollection {
        service_ref: served.manifest().reference.conform(&format!("rec-{}", app.new_id())),
        amount: known.amount.min(loan.remaining()),
        begun_at: Some(now),
        lease: Lease::acquire(app),
        updated_at: now,
        ..known
    };
    store::update(tx, &known).await?;
    begin(tx, &known).await?;
    Ok(known)
}

async fn compose(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    loan: &Loan,
    order: NewRecollection,
    run: Option<String>,
) -> Result<Recollection> {
    let owed = loan.remaining();
    let mut most = owed;
    if order.is_by(CARD) || order.is_by(DIRECT_DEBIT) {
        // The same debt must not be charged twice.
        let now = app.clock.now();
        most.0 -= store::pending_charges(tx, &loan.company_id, &loan.id, now).await?.0;
    }
    if most <= Minor(0) {
        return Err(Error::invalid("pending charges already cover the outstanding amount"));
    }
    let user = users::find_by_id(tx, &loan.company_id, &loan.user_key).await?;
    let user = user.ok_or_else(users::not_found)?;
    let mut new = blank(app, loan, order.amount.unwrap_or(owed).min(most));
    new.run = run;
    new.callback_url = order.callback_url;
    new.metadata = Json(order.metadata.unwrap_or_default());
    if let Some(reference) = order.reference {
        new.reference = reference;
    }
    match (order.payment_channel, order.checkout) {
        (channel, _) if !order.with_provider => {
            new.payment_channel = channel.unwrap_or_else(|| CASH.to_owned());
            new.repaid_at = order.repaid_at.or(Some(new.created_at));
        }
        (_, Some(pages)) => with_checkout(tx, app, company, &mut new, &user, pages).await?,
        (Some(channel), None) if channel == CARD => {
            with_card(tx, company, &mut new, order.card.as_ref()).await?;
        }
        (_, None) => with_mandate(tx, company, &mut new, order.direct_debit.as_ref()).await?,
    }
    if new.with_provider {
        let served = providers::plugin_of(app, &new.payment_service, &company.id)?;
        assign_reference(&mut new, &served);
    }
    Ok(new)
}

/// Opens a checkout session at the company's provider.
async fn with_checkout(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    new: &mut Recollection,
    user: &User,
    pages: Pages,
) -> Result<()> {
    let provider = providers::default_provider(app, company);
    let account = providers::resolve(tx, company, &provider).await?;
    let served = providers::plugin_of(app, &provider, &company.id)?;
    if !served.manifest().currencies.iter().any(|c| *c == *new.currency) {
        return Err(Error::Invalid(format!("{provider} does not support {}", new.currency)));
    }
    if user.email.is_none() {
        return Err(missing_email());
    }
    set_account(new, CHECKOUT, &account);
    let Pages { success_url, cancel_url } = pages;
    new.checkout = store::Checkout { success_url: Some(success_url), cancel_url, url: None };
    new.begun_at = Some(new.created_at);
    new.lease = Lease::acquire(app);
    Ok(())
}

fn missing_email() -> Error {
    Error::invalid("email address not found for this user")
}

/// Returns a recollection of a loan with only the common fields set.
pub fn blank(app: &App, loan: &Loan, amount: Minor) -> Recollection {
    let now = app.clock.now();
    Recollection {
        company_id: loan.company_id.clone(),
        id: app.random.id(now).into(),
        loan_id: loan.id.clone(),
        user_key: loan.user_key.clone(),
        user_id: loan.user_id.clone(),
        amount,
        currency: loan.currency.clone(),
        reference: format!("rec-{}", app.random.id(now)),
        created_at: now,
        updated_at: now,
        ..Recollection::default()
    }
}

fn set_account(new: &mut Recollection, channel: &str, account: &Account) {
    new.with_provider = true;
    new.payment_channel = channel.to_owned();
    new.payment_service.clone_from(&account.provider);
    new.account_id.clone_from(&account.id);
    new.credits_wallet = account.is_service_account();
}

/// Sets the reference at the provider.
pub fn assign_reference(new: &mut Recollection, provider: &Provider) {
    new.service_ref = provider.manifest().reference.conform(&format!("rec-{}", new.id));
}

/// Selects a card of the borrower and the provider account that issued its token.
pub async fn with_card(
    tx: &mut Tx,
    company: &Company,
    new: &mut Recollection,
    id: Option<&CardId>,
) -> Result<()> {
    let card = cards::find_for_user(tx, &new.company_id, &new.user_key, id).await?;
    let card = card.ok_or_else(cards::not_found)?;
    if !card.is_valid() {
        return Err(Error::invalid("card is not valid"));
    }
    if card.currency != new.currency {
        return Err(Error::invalid("currency mismatch"));
    }
    let account = providers::find_chargeable(tx, company, &card.account_id).await?;
    set_account(new, CARD, &account);
    new.card_id = Some(card.id);
    Ok(())
}

pub async fn with_mandate(
    tx: &mut Tx,
    company: &Company,
    new: &mut Recollection,
    id: Option<&MandateId>,
) -> Result<()> {
    let mandate = mandates::find_usable(tx, &new.company_id, &new.user_key, id).await?;
    let mandate = mandate.ok_or_else(mandates::not_found)?;
    if mandate.currency != new.currency {
        return Err(Error::invalid("currency mismatch"));
    }
    let account = providers::resolve(tx, company, &mandate.payment_service).await?;
    set_account(new, DIRECT_DEBIT, &account);
    new.direct_debit_id = Some(mandate.id);
    Ok(())
}

/// Reserves the reference at the provider and schedules the checks.
pub async fn begin(tx: &mut Tx, new: &Recollection) -> Result<()> {
    let Recollection { account_id, service_ref, updated_at, .. } = new;
    if !notifications::reserve(tx, account_id, service_ref, new.as_owner(), *updated_at).await? {
        return Err(Error::internal("generated reference is already taken"));
    }
    if let Some(at) = next_check(new.status.of_charge(), new.checks_start_at(), *updated_at) {
        jobs::enqueue(tx, &new.company_id, SETTLE_JOB, &new.id, at).await?;
    }
    Ok(())
}

fn checkout_order(recollection: &Recollection, user: User) -> Result<CheckoutOrder> {
    Ok(CheckoutOrder {
        service_ref: recollection.service_ref.clone(),
        amount: recollection.money(),
        email: user.email.ok_or_else(missing_email)?,
        customer_name: None,
        narration: "Loan repayment".to_owned(),
        channels: Vec::new(),
        success_url: recollection.checkout.success_url.clone().unwrap_or_default(),
        cancel_url: recollection.checkout.cancel_url.clone(),
        metadata: metadata_of(recollection),
        save_instrument: false,
    })
}

/// The entry that identifies the recollection at the provider.
pub fn metadata_of(recollection: &Recollection) -> String {
    json!({ METADATA_KEY: recollection.id, "event": "recollection" }).to_string()
}

/// Transaction 2: records the checkout session.
async fn record_session(
    app: &App,
    before: Recollection,
    session: CheckoutSession,
) -> Result<Recollection> {
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        let (_, mut recollection) = lock_with_loan(tx, &before).await?;
        if !recollection.lease.is_held_as(&before.lease) {
            // Another request has started over; no client has received this session's URL.
            return match recollection.checkout.url {
                Some(_) => Ok(recollection),
                None => Err(recollection.lease.conflict(now, charges::IN_PROGRESS)),
            };
        }
        let Recollection { account_id, service_ref, .. } = &recollection;
        let (owner, new) = (recollection.as_owner(), session.service_ref);
        if !notifications::replace(tx, account_id, service_ref, &new, owner, now).await? {
            return Err(Error::internal("reference returned by the provider is already taken"));
        }
        recollection.service_ref = new;
        recollection.checkout.url = Some(session.url);
        recollection.lease = Lease::default();
        recollection.updated_at = now;
        store::update(tx, &recollection).await?;
        Ok(recollection)
    })
    .await
}

/// Releases the lease after a failed attempt. `is_forgotten` deletes the recollection.
async fn end_attempt(app: &App, recollection: &Recollection, is_forgotten: bool) -> Result<()> {
    let (db, before) = (app.store.clone(), recollection.clone());
    db.write(async move |tx| {
        loans::lock(tx, &before.company_id, &before.loan_id).await?;
        let found = store::find(tx, &before.company_id, &before.id).await?;
        let found = found.filter(|now| now.lease.is_held_as(&before.lease));
        let Some(mut now) = found else { return Ok(()) };
        if is_forgotten {
            notifications::release(tx, &before.account_id, &before.service_ref).await?;
            return Ok(store::delete(tx, &now).await?);
        }
        now.lease = Lease::default();
        Ok(store::update(tx, &now).await?)
    })
    .await
}
