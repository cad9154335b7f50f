//! Recording transfers to virtual accounts.

use super::{INTERFACE, VirtualAccount, store};
use crate::{
    lending::{loans, recollections},
    money::{charges::Received, payments, prelude::*},
    tenants::companies,
};
use tollhouse_plugins::IncomingTransfer;

/// The alarm of a transfer to an account that the host does not know.
const UNMATCHED: &str = "unmatched transfer";

/// Records the transfer of a webhook, if it is one to a virtual account.
pub async fn transfer_job(app: App, job: Job) -> Result<JobResult> {
    let (account_id, service_ref) = notifications::parse_transfer(&job.subject);
    let read = async |tx: &mut Tx| -> Result<Option<Account>> {
        match store::is_any_at(tx, &account_id).await? {
            true => Ok(providers::find_by_id(tx, &account_id).await?),
            false => Ok(None),
        }
    };
    let Some(account) = app.store.read(read).await? else { return Ok(JobResult::Done) };
    let Some(transfer) = find(&app, &job, &account, service_ref).await? else {
        return Ok(JobResult::Done);
    };
    let read = async |tx: &mut Tx| store::find_at(tx, &account.id, &transfer.account).await;
    let Some(to) = app.store.select(read).await? else {
        app.metrics.count_alarm(UNMATCHED);
        tracing::error!(
            alarm = UNMATCHED,
            provider = account.provider,
            service_ref,
            "a transfer arrived for a virtual account that the host does not know"
        );
        return Ok(JobResult::Done);
    };
    match record(&app, &to, &account, &transfer.payment, service_ref).await {
        // Another webhook of the same transfer.
        Err(error) if error.is_duplicate() => Ok(JobResult::Done),
        recorded => recorded.map(|()| JobResult::Done),
    }
}

/// Queries the provider. `None`: the payment is no transfer to a virtual account, or its money did
/// not arrive.
async fn find(
    app: &App,
    job: &Job,
    account: &Account,
    service_ref: &str,
) -> Result<Option<IncomingTransfer>> {
    let provider = app.plugins.provider(&account.provider, &job.company_id)?;
    if !provider.exports(INTERFACE) {
        return Ok(None);
    }
    let credentials = account.open_credentials(app)?;
    match provider.find_transfer(&credentials, service_ref).await {
        Ok(transfer) => Ok(Some(transfer).filter(|transfer| {
            matches!(transfer.payment.status, PaymentStatus::Pending | PaymentStatus::Success)
        })),
        Err(error) if error.fault.category == FaultCategory::NotFound => Ok(None),
        Err(error) => Err(error.into_error(&account.provider)),
    }
}

/// Records a payment or a recollection with its charge, which the next verification settles. Fails
/// as a duplicate if a record has the reference.
async fn record(
    app: &App,
    to: &VirtualAccount,
    account: &Account,
    seen: &ProviderPayment,
    service_ref: &str,
) -> Result<()> {
    let amount = seen.requested.clone().unwrap_or_else(|| seen.amount.clone());
    let (db, app, to, account) = (app.store.clone(), app.clone(), to.clone(), account.clone());
    let service_ref = service_ref.to_owned();
    db.write(async move |tx| {
        let received =
            Received { account: &account, amount: amount.clone(), service_ref: &service_ref };
        if let Some(loan) = &to.loan_id {
            let loan = loans::lock(tx, &to.company_id, loan).await?;
            let owed = loan.filter(|loan| loan.currency == amount.currency);
            if let Some(loan) = owed.filter(|loan| recollections::obstacle(loan).is_none()) {
                return recollections::receive(tx, &app, &loan, &to.id, received).await;
            }
        }
        let company = companies::get(tx, &to.company_id).await?;
        let user = users::find_by_id(tx, &to.company_id, &to.user_key).await?;
        payments::receive(tx, &app, &company, user.as_ref(), &to.id, received).await
    })
    .await
}
