//! Creating a mandate: record it, begin it at the provider, and record the response.

use super::{
    Mandate, MandateState, SUBJECT, SYNC_JOB, api::NewMandate, forget, lock_any, not_found,
    record::emit, state::next_check, store, sync::seal_session,
};
use crate::{lending::rejection, money::prelude::*};
use tollhouse_plugins::{DebitedAccount, MandateOrder, MandateSession};

/// The description of a mandate at the provider.
const NARRATION: &str = "Loan repayments";

/// Returns a mandate that the user can authorize. A repeated run of a request resumes its mandate.
#[instrument(target = SPAN_TARGET, name = "mandates.create", skip_all)]
pub async fn create(
    app: &App,
    company: &Company,
    order: NewMandate,
    run: Option<String>,
) -> Result<Mandate> {
    let account = order.account.as_ref().map(|account| DebitedAccount {
        bank_code: account.bank_code.clone(),
        account_number: account.account_number.clone(),
    });
    let (mandate, user, is_new) = record(app, company, order, run).await?;
    if mandate.session.is_some() || mandate.state != MandateState::Created {
        return Ok(mandate);
    }
    match begin(app, &mandate, user, account).await {
        Ok(session) => record_session(app, mandate, session).await,
        Err(Failed { error, is_certain }) => {
            if is_new && is_certain {
                discard(app, mandate).await?;
            }
            Err(error)
        }
    }
}

/// The failure of a call that begins a mandate.
struct Failed {
    error: Error,
    /// Nothing was begun.
    is_certain: bool,
}

/// Records a new mandate, or returns the one of an earlier run of the request.
async fn record(
    app: &App,
    company: &Company,
    order: NewMandate,
    run: Option<String>,
) -> Result<(Mandate, User, bool)> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let user = users::get(tx, &company.id, &order.user_id).await?;
        let email = user.email.clone().ok_or_else(users::missing_email)?;
        let account = providers::resolve(tx, &company, &order.payment_service).await?;
        let provider = app.plugins.provider(&order.payment_service, &company.id)?;
        let now = app.clock.now();
        let id = app.random.id(now);
        let mut new = Mandate {
            run,
            payment_service: order.payment_service,
            account_id: account.id,
            service_ref: provider.manifest().reference.conform(&format!("mnd-{id}")),
            success_url: Some(order.checkout.success_url),
            currency: order.currency,
            email,
            max_amount: order.max_amount,
            ends_at: order.ends_at,
            ..Mandate::blank(&company.id, id.into(), &user, now)
        };
        new.token = new.seal_token(&app, "");
        if !store::insert(tx, &new).await? {
            let run = new.run.as_deref().unwrap_or_default();
            let found = store::find_by_run(tx, &company.id, run).await?.ok_or_else(not_found)?;
            let found = lock_any(tx, &found).await?.filter(|found| found.removed_at.is_none());
            // The job deletes a mandate an hour after the last request for it.
            let resumed = Mandate { updated_at: now, ..found.ok_or_else(not_found)? };
            store::update(tx, &resumed).await?;
            return Ok((resumed, user, false));
        }
        let owner = (&*new.company_id, SUBJECT, &*new.id);
        notifications::insert_reference(tx, &new.account_id, &new.service_ref, owner, None, now)
            .await?;
        let first = next_check(new.state, now, now).unwrap_or(now);
        jobs::enqueue(tx, &company.id, SYNC_JOB, &new.id, first).await?;
        Ok((new, user, true))
    })
    .await
}

async fn begin(
    app: &App,
    mandate: &Mandate,
    user: User,
    account: Option<DebitedAccount>,
) -> Result<MandateSession, Failed> {
    let certain = |error| Failed { error, is_certain: true };
    let read = async |tx: &mut Tx| providers::find_by_id(tx, &mandate.account_id).await;
    let own = app.store.select(read).await.map_err(|error| certain(error.into()))?;
    let notification_url = own.and_then(|account| account.notification_url(app));
    let ChargeVerifier { provider, credentials } = mandate.verifier(app).await.map_err(certain)?;
    let currency = mandate.currency.clone();
    let order = MandateOrder {
        mandate_ref: mandate.service_ref.clone(),
        currency: currency.to_string(),
        email: mandate.email.clone(),
        name: format!("{} {}", user.first_name, user.last_name).trim().to_owned(),
        phone: user.phone,
        address: user.address,
        account,
        max_amount: mandate.max_amount.map(|minor| Money { minor, currency }),
        starts_at: mandate.created_at,
        ends_at: mandate.ends_at,
        narration: NARRATION.to_owned(),
        return_url: mandate.success_url.clone().unwrap_or_default(),
        notification_url: notification_url.unwrap_or_default(),
    };
    let begun = provider.begin_mandate(&credentials, &order).await;
    begun.map_err(|error| Failed {
        is_certain: error.certainty == Certainty::NotDone,
        error: rejection::client_error(
            error,
            &mandate.payment_service,
            &["account", "currency", "ends_at", "max_amount"],
            "create a mandate",
        ),
    })
}

/// Records the provider's response. The mandate may have been deleted or authorized meanwhile.
async fn record_session(app: &App, mandate: Mandate, session: MandateSession) -> Result<Mandate> {
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let mut current = lock_any(tx, &mandate).await?.ok_or_else(not_found)?;
        if current.session.is_some() {
            return Ok(current);
        }
        let Mandate { company_id, id, account_id, service_ref, .. } = current.clone();
        let (owner, now) = ((&*company_id, SUBJECT, &*id), app.clock.now());
        let by = &session.service_ref;
        if !notifications::replace(tx, &account_id, &service_ref, by, owner, None, now).await? {
            return Err(Error::internal("the provider returned the reference of another record"));
        }
        current.service_ref.clone_from(by);
        current.session = Some(seal_session(&app, &current, &session.state));
        current.set_consent(&session.consent);
        current.updated_at = now;
        // It was deleted before the response arrived.
        current.to_cancel = current.state == MandateState::Cancelled;
        store::update(tx, &current).await?;
        match current.state {
            MandateState::Created => emit(tx, &app, &current).await?,
            _ => jobs::enqueue(tx, &company_id, SYNC_JOB, &id, now).await?,
        }
        Ok(current)
    })
    .await
}

/// Deletes a mandate that was certainly not begun.
async fn discard(app: &App, mandate: Mandate) -> Result<()> {
    let db = app.store.clone();
    db.write(async move |tx| match lock_any(tx, &mandate).await? {
        Some(current) if current.is_unbegun() => forget(tx, &current).await,
        _ => Ok(()),
    })
    .await
}
