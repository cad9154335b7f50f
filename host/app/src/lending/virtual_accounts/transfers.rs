//! Recording transfers to virtual accounts.

use super::{VirtualAccount, store};
use crate::{
    lending::{loans, recollections},
    money::{charges::Received, payments, prelude::*},
    tenants::companies,
};

/// Records the transfer of a webhook, if it went to a virtual account. The job is retried until the
/// provider reports that the money has arrived; after `ABANDON_AFTER_FAILURES`, an alarm is raised.
pub async fn transfer_job(app: App, job: Job) -> Result<JobResult> {
    let (account_id, service_ref) = notifications::parse_transfer(&job.subject);
    let read = async |tx: &mut Tx| providers::find_by_id(tx, &account_id).await;
    let Some(account) = app.store.select(read).await? else { return Ok(JobResult::Done) };
    match find_and_record(&app, &job, &account, service_ref).await {
        Err(error) if job.failures >= jobs::ABANDON_AFTER_FAILURES => {
            let reason = error.chain();
            alarm(&app, &account, service_ref, &reason);
            Ok(JobResult::Done)
        }
        recorded => recorded.map(|()| JobResult::Done),
    }
}

fn alarm(app: &App, account: &Account, service_ref: &str, reason: &str) {
    const UNMATCHED: &str = "unmatched transfer";
    app.metrics.count_alarm(UNMATCHED);
    let provider = &*account.provider;
    tracing::error!(
        alarm = UNMATCHED,
        provider,
        service_ref,
        reason,
        "a transfer to a virtual account was not recorded"
    );
}

async fn find_and_record(app: &App, job: &Job, account: &Account, service_ref: &str) -> Result<()> {
    let provider = app.plugins.provider(&account.provider, &job.company_id)?;
    let credentials = account.open_credentials(app)?;
    let found = provider.find_transfer(&credentials, service_ref).await;
    let found = found.map_err(|error| error.into_private_error(&account.provider))?;
    let Some(transfer) = found else { return Ok(()) };
    match transfer.payment.status {
        PaymentStatus::Success => {}
        PaymentStatus::Failed | PaymentStatus::Reversed => return Ok(()),
        PaymentStatus::Pending => {
            return Err(Error::Unavailable("the transfer is pending, try again later"));
        }
    }
    let read = async |tx: &mut Tx| store::find_at(tx, &account.id, &transfer.account).await;
    let Some(to) = app.store.select(read).await? else {
        alarm(app, account, service_ref, "no virtual account of this host");
        return Ok(());
    };
    match record(app, to, account, &transfer.payment, service_ref).await {
        // Another webhook of the same transfer.
        Err(error) if error.is_duplicate() => Ok(()),
        recorded => recorded,
    }
}

/// Records a payment or a recollection with its charge, which the next verification settles. Fails
/// as a duplicate if a record has the reference.
async fn record(
    app: &App,
    to: VirtualAccount,
    account: &Account,
    seen: &ProviderPayment,
    service_ref: &str,
) -> Result<()> {
    let amount = seen.requested.clone().unwrap_or_else(|| seen.amount.clone());
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
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
