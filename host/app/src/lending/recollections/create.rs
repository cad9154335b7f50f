//! Creating a recollection: it is recorded, with its charge if it has one. A manual one is applied
//! at once, a checkout session is opened, and the charge of a card or mandate is queued.

use super::{
    CARD, CHECKOUT, DIRECT_DEBIT, Recollection, Status, VIRTUAL_ACCOUNT,
    api::{NewRecollection, Pages},
    owner, store,
};
use crate::{
    lending::{
        loans::{self, Loan},
        mandates::{self, MandateId},
    },
    money::{
        cards::{self, CardId},
        charges::{
            Method, NewCharge, OwnerKind, Received,
            choice::{Choice, Routed},
        },
        prelude::*,
        routing::{self, Payer, Routable},
    },
};

/// The default channel of a manual recollection.
const CASH: &str = "cash";
/// The request fields that an error of the provider may name.
const FIELDS: [&str; 2] = ["amount", "metadata"];

#[instrument(target = SPAN_TARGET, name = "recollections.create", skip_all)]
pub async fn create(
    app: &App,
    company: &Company,
    order: NewRecollection,
    run: Option<String>,
) -> Result<Recollection> {
    loop {
        let (recollection, charge) = record(app, company, order.clone(), run.clone()).await?;
        if !needs_session(&recollection) {
            return Ok(recollection);
        }
        let created = match charge {
            Some(charge) => {
                Some(charges::open_page(app, recollection, charge, None, &FIELDS).await?)
            }
            None => {
                let Recollection { company_id, id, .. } = &recollection;
                charges::resume(app, company_id, id, &FIELDS).await?
            }
        };
        if let Some(recollection) = created {
            return Ok(recollection);
        }
    }
}

/// Returns whether the recollection waits for a checkout session.
fn needs_session(recollection: &Recollection) -> bool {
    recollection.status == Status::Pending
        && recollection.payment_channel == CHECKOUT
        && recollection.checkout.url.is_none()
}

async fn record(
    app: &App,
    company: &Company,
    order: NewRecollection,
    run: Option<String>,
) -> Result<(Recollection, Option<Charge>)> {
    // A repeated request needs no provider.
    let routed = match route(app, company, &order).await {
        Err(Error::Invalid(no_provider)) => Err(no_provider),
        routed => Ok(routed?),
    };
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let loan = loans::lock(tx, &company.id, &order.loan).await?;
        let loan = loan.ok_or_else(|| Error::not_found("loan not found"))?;
        let mut known = match &order.reference {
            Some(reference) => store::find_by_reference(tx, &company.id, reference).await?,
            None => None,
        };
        if let Some(known) = known.take_if(|known| repeats(&order, run.as_ref(), known)) {
            return Ok((known, None));
        }
        if let Some(reason) = owner::obstacle(&loan) {
            return Err(Error::invalid(reason));
        }
        if known.is_some() {
            return Err(reference_taken());
        }
        let (new, at) = compose(tx, &app, &company, &loan, order, run, routed).await?;
        let Some((account, choice)) = at else {
            return Ok((insert_manual(tx, &app, new, loan).await?, None));
        };
        let (new, charge) = insert_charged(tx, &app, new, &account, choice, None).await?;
        Ok((new, Some(charge)))
    })
    .await
}

/// Chooses the provider of a checkout, if the company has a routing policy.
async fn route(app: &App, company: &Company, order: &NewRecollection) -> Result<Option<Routed>> {
    if company.routing.is_none() || !order.is_by(CHECKOUT) {
        return Ok(None);
    }
    let read = async |tx: &mut Tx| -> Result<Option<(Loan, User)>> {
        let Some(loan) = loans::find(tx, &company.id, &order.loan).await? else { return Ok(None) };
        let user = users::find_by_id(tx, &company.id, &loan.user_key).await?;
        Ok(user.map(|user| (loan, user)))
    };
    let Some((loan, user)) = app.store.read(read).await? else { return Ok(None) };
    let owed = loan.remaining();
    let checkout = Routable {
        amount: Money {
            minor: order.amount.unwrap_or(owed).min(owed),
            currency: loan.currency.clone(),
        },
        channels: Vec::new(),
        payer: Payer { has_phone: user.phone.is_some(), user: Some(user.id) },
        saves_card: false,
    };
    routing::choose(app, company, &checkout).await.map(Some)
}

/// Inserts a manual recollection, which repays the loan at once.
async fn insert_manual(
    tx: &mut Tx,
    app: &App,
    new: Recollection,
    loan: Loan,
) -> Result<Recollection> {
    // A concurrent request for another loan may have used the reference.
    match store::insert(tx, &new, None).await? {
        true => owner::repay(tx, app, loan, new).await,
        false => Err(reference_taken()),
    }
}

/// Inserts a recollection with its charge, which may take a part of the amount, but at least
/// `at_least`. `choice`: why the router chose the account.
pub async fn insert_charged(
    tx: &mut Tx,
    app: &App,
    mut new: Recollection,
    account: &Account,
    choice: Option<Choice>,
    at_least: Option<Minor>,
) -> Result<(Recollection, Charge)> {
    let method = match &*new.payment_channel {
        CARD => Method::Card,
        DIRECT_DEBIT => Method::Mandate,
        _ => Method::Checkout,
    };
    let order = NewCharge {
        company_id: &new.company_id,
        owner: (OwnerKind::Recollection, &new.id),
        method,
        account,
        choice,
        amount: new.money(),
        reference: None,
        lane: (method != Method::Checkout).then(|| new.loan_id.to_string()),
    };
    let charge = Charge { at_least, ..charges::compose(app, order)? };
    new.service_ref.clone_from(&charge.service_ref);
    if !store::insert(tx, &new, Some(&charge)).await? {
        return Err(reference_taken());
    }
    charges::insert_composed(tx, app, &charge).await?;
    Ok((new, charge))
}

fn reference_taken() -> Error {
    Error::invalid("reference already exists")
}

/// Records a transfer to a virtual account as a recollection of a loan that the caller has locked,
/// to be verified at once. Fails as a duplicate if a record has the provider's reference.
pub async fn receive(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    virtual_account: &str,
    received: Received<'_>,
) -> Result<()> {
    let mut new = blank(app, loan, received.amount.minor);
    set_account(&mut new, VIRTUAL_ACCOUNT, received.account);
    let metadata = json!({ "virtual_account": virtual_account });
    new.metadata = Json(metadata.as_object().cloned().unwrap_or_default());
    let order = NewCharge {
        company_id: &new.company_id,
        owner: (OwnerKind::Recollection, &new.id),
        method: Method::Checkout,
        account: received.account,
        choice: None,
        amount: received.amount,
        reference: Some(received.service_ref),
        lane: None,
    };
    let charge = charges::compose_received(app, order);
    new.service_ref.clone_from(&charge.service_ref);
    if !store::insert(tx, &new, Some(&charge)).await? {
        return Err(Error::internal("generated reference is already taken"));
    }
    charges::insert_received(tx, app, &charge).await
}

/// Returns whether a request with the reference of a recollection repeats the one that created it.
/// If that waits for a checkout session, any checkout request resumes it.
fn repeats(order: &NewRecollection, run: Option<&String>, known: &Recollection) -> bool {
    let is_own = run.is_some() && run == known.run.as_ref();
    let may = if needs_session(known) { order.is_by(CHECKOUT) } else { is_own };
    known.loan_id == order.loan && may
}

/// Returns the recollection, and the provider account that charges it, if any, with the reason why
/// the router chose it.
async fn compose(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    loan: &Loan,
    order: NewRecollection,
    run: Option<String>,
    routed: Result<Option<Routed>, String>,
) -> Result<(Recollection, Option<(Account, Option<Choice>)>)> {
    let owed = loan.remaining();
    let user = users::find_by_id(tx, &loan.company_id, &loan.user_key).await?;
    let user = user.ok_or_else(users::not_found)?;
    let mut new = blank(app, loan, order.amount.unwrap_or(owed).min(owed));
    new.run = run;
    new.callback_url = order.callback_url;
    new.metadata = Json(order.metadata.unwrap_or_default());
    if let Some(reference) = order.reference {
        new.reference = reference;
    }
    let account = match (order.payment_channel, order.checkout) {
        (channel, _) if !order.with_provider => {
            new.payment_channel = channel.unwrap_or_else(|| CASH.to_owned());
            new.repaid_at = order.repaid_at.or(Some(new.created_at));
            return Ok((new, None));
        }
        (_, Some(pages)) => {
            let at = match routed.map_err(Error::Invalid)? {
                Some(Routed { account, choice }) => (account, Some(choice)),
                None => (default_account(tx, app, company, &new, &user).await?, None),
            };
            set_checkout(&mut new, &at.0, &user, pages)?;
            return Ok((new, Some(at)));
        }
        (Some(channel), None) if channel == CARD => {
            with_card(tx, company, &mut new, order.card.as_ref()).await?
        }
        (_, None) => with_mandate(tx, company, &mut new, order.direct_debit.as_ref()).await?,
    };
    providers::plugin_of(app, &new.payment_service, &company.id)?;
    Ok((new, Some((account, None))))
}

/// Returns the account of the company's default provider for a checkout session.
async fn default_account(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    new: &Recollection,
    user: &User,
) -> Result<Account> {
    let provider = providers::default_provider(app, company);
    let account = providers::resolve(tx, company, &provider).await?;
    let served = providers::plugin_of(app, &provider, &company.id)?;
    if !served.manifest().currencies.iter().any(|c| *c == *new.currency) {
        return Err(Error::Invalid(format!("{provider} does not support {}", new.currency)));
    }
    if user.phone.is_none() && served.manifest().sessions.push {
        return Err(Error::invalid("phone number not found for this user"));
    }
    Ok(account)
}

fn set_checkout(
    new: &mut Recollection,
    account: &Account,
    user: &User,
    pages: Pages,
) -> Result<()> {
    if user.email.is_none() {
        return Err(users::missing_email());
    }
    set_account(new, CHECKOUT, account);
    let Pages { success_url, cancel_url } = pages;
    new.checkout = store::Checkout { success_url: Some(success_url), cancel_url, url: None };
    Ok(())
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
}

/// Selects a card of the borrower and the provider account that issued its token.
pub async fn with_card(
    tx: &mut Tx,
    company: &Company,
    new: &mut Recollection,
    id: Option<&CardId>,
) -> Result<Account> {
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
    Ok(account)
}

pub async fn with_mandate(
    tx: &mut Tx,
    company: &Company,
    new: &mut Recollection,
    id: Option<&MandateId>,
) -> Result<Account> {
    let mandate = mandates::get_usable(tx, &new.company_id, &new.user_key, id).await?;
    if mandate.currency != new.currency {
        return Err(Error::invalid("currency mismatch"));
    }
    let account = match mandate.issuer() {
        Some(account_id) => providers::find_chargeable(tx, company, account_id).await?,
        None => providers::resolve(tx, company, &mandate.payment_service).await?,
    };
    set_account(new, DIRECT_DEBIT, &account);
    new.direct_debit_id = Some(mandate.id);
    Ok(account)
}
