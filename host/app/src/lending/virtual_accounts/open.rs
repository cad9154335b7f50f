//! Opening and closing a virtual account.

use super::{CLOSE_JOB, INTERFACE, VirtualAccount, api::NewVirtualAccount, store};
use crate::{
    lending::{
        loans::{self, LoanId},
        rejection,
    },
    money::prelude::*,
};
use tollhouse_plugins::{AccountOrder, Credentials};

const NOT_CLOSED: &str = "virtual account not closed";

/// Returns the account of a payer, which is opened unless it exists. Every request for it uses the
/// same reference, so the provider opens the account once even if responses are lost.
#[instrument(target = SPAN_TARGET, name = "virtual_accounts.create", skip_all)]
pub async fn open(
    app: &App,
    company: &Company,
    order: NewVirtualAccount,
) -> Result<VirtualAccount> {
    let identity = order.identity.clone().map(|known| (known.kind, known.number));
    let (account, user) = record(app, company, order).await?;
    if !account.account_number.is_empty() {
        return Ok(account);
    }
    let (provider, credentials) = verifier(app, &account).await?;
    let order = AccountOrder {
        account_ref: account.account_ref.clone(),
        currency: account.currency.to_string(),
        email: user.email.ok_or_else(users::missing_email)?,
        name: format!("{} {}", user.first_name, user.last_name).trim().to_owned(),
        phone: user.phone,
        identity,
    };
    let opened = provider.open_account(&credentials, &order).await;
    let opened = opened.map_err(|error| {
        let fields = ["currency", "identity"];
        rejection::client_error(error, &account.payment_service, &fields, "open an account")
    })?;
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        store::set_opened(tx, &account, &opened, now).await?;
        let found = store::find_any(tx, &account.company_id, &account.id).await?;
        found.ok_or_else(|| Error::internal("an opened account is missing"))
    })
    .await
}

/// Hides an account, and closes it at the provider in a job. Later transfers are still recorded.
pub async fn close(app: &App, account: VirtualAccount) -> Result<()> {
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        if store::set_closed(tx, &account, now).await? {
            jobs::enqueue(tx, &account.company_id, CLOSE_JOB, &account.id, now).await?;
        }
        Ok(())
    })
    .await
}

/// Closes a hidden account at the provider.
pub async fn close_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| store::find_any(tx, &job.company_id, &job.subject).await;
    let Some(account) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let Err(error) = close_at_provider(&app, &account).await else { return Ok(JobResult::Done) };
    if job.failures < jobs::ABANDON_AFTER_FAILURES {
        return Err(error);
    }
    app.metrics.count_alarm(NOT_CLOSED);
    let (company, id) = (account.company_id.as_str(), account.id.as_str());
    tracing::error!(
        alarm = NOT_CLOSED,
        company,
        virtual_account = id,
        error = error.chain(),
        "a virtual account could not be closed; no further attempts"
    );
    Ok(JobResult::Done)
}

async fn close_at_provider(app: &App, account: &VirtualAccount) -> Result<()> {
    let (provider, credentials) = verifier(app, account).await?;
    let closed = provider.close_account(&credentials, &account.provider_id).await;
    closed.map(drop).map_err(|error| error.into_private_error(&account.payment_service))
}

async fn verifier(app: &App, account: &VirtualAccount) -> Result<(Provider, Credentials)> {
    let VirtualAccount { company_id, payment_service, account_id, .. } = account;
    let ChargeVerifier { provider, credentials } =
        ChargeVerifier::open(app, company_id, payment_service, account_id).await?;
    if !provider.exports(INTERFACE) {
        let message = format!("{payment_service} no longer supports virtual accounts");
        return Err(Error::Invalid(message));
    }
    Ok((provider, credentials))
}

/// Records an account to open, or returns the payer's existing one.
async fn record(
    app: &App,
    company: &Company,
    order: NewVirtualAccount,
) -> Result<(VirtualAccount, User)> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let user = users::get(tx, &company.id, &order.user_id).await?;
        if user.email.is_none() {
            return Err(users::missing_email());
        }
        if let Some(loan) = &order.loan {
            check_loan(tx, &company.id, loan, &user, &order.currency).await?;
        }
        let provider = app.plugins.provider(&order.payment_service, &company.id)?;
        let account = providers::resolve(tx, &company, &order.payment_service).await?;
        let now = app.clock.now();
        let id = app.random.id(now);
        let new = VirtualAccount {
            company_id: company.id.clone(),
            account_ref: provider.manifest().reference.conform(&format!("acc-{id}")),
            id: id.into(),
            user_key: user.id.clone(),
            user_id: user.user_id.clone(),
            loan_id: order.loan,
            payment_service: order.payment_service,
            account_id: account.id,
            currency: order.currency,
            created_at: now,
            ..VirtualAccount::default()
        };
        store::insert(tx, &new).await?;
        let recorded = store::find_like(tx, &new).await?;
        let recorded = recorded.ok_or_else(|| Error::internal("the reference is taken"))?;
        Ok((recorded, user))
    })
    .await
}

async fn check_loan(
    tx: &mut Tx,
    company_id: &CompanyId,
    loan: &LoanId,
    user: &User,
    currency: &Currency,
) -> Result<()> {
    let found = loans::find(tx, company_id, loan).await?;
    let found = found.filter(|loan| loan.user_key == user.id);
    let found = found.ok_or_else(|| Error::not_found("loan not found"))?;
    match found.currency == *currency {
        true => Ok(()),
        false => Err(Error::invalid("currency mismatch")),
    }
}
