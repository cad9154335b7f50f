//! Charges: taking money from payers through providers, and refunding it.
//!
//! A charge is one attempt to take one amount under one reference at one provider account. Its
//! owner, a payment, a card or a recollection, determines the request and the effects of an
//! outcome, as a [`ChargeOwner`]. An owner may have several charges, of which one settles it.
//!
//! - `request`: records a charge, calls the provider, resumes a page, requests queued charges;
//! - `verify`: queries the provider, on demand, after webhooks and by schedule;
//! - `state`: the state machine, pure;
//! - `settle`: records a fact and its effects in one transaction, as `state` decides;
//! - `ledger`: the ledger transactions;
//! - `refund`: returns what was taken;
//! - `sessions`: data of plugins about charges and refunds, notification URLs, and the status page
//!   of a push payment;
//! - `adopt`: derives the charges of records that hosts of the previous version wrote.
//!
//! Locks are taken in this order: owner (the loan's row first), charge, refund, plugin's data,
//! reference directory, ledger balance, outbox.

mod adopt;
mod exceptions;
mod ledger;
mod model;
mod refund;
mod request;
pub mod sessions;
mod settle;
mod state;
mod store;
mod verify;

pub use self::request::choice;
use self::request::lease;
use self::state::{Decision, Fact, LANE_SECONDS, Rejection, decide, next_check};
pub use self::{
    adopt::{adopt_lane, sweep},
    exceptions::{
        Exception, ExceptionState, Note, find as find_exception, find_difference,
        list as list_exceptions, list_of_charge as list_exceptions_of_charge,
        list_open_differences, list_unsettled_differences, lock as lock_exception,
        raise as raise_exception, reopen as reopen_exception, resolve as resolve_exception,
        update as update_exception,
    },
    ledger::{
        DisputedMoney, FundsAccount, begin_pending, credit, dispute_key, post_disputed,
        unbooked_fees,
    },
    model::{
        Charge, ChargeId, ChargeOwner, Failure, Method, Order, Outcome, OwnerKind, ReferenceSource,
        State, Turn, conflict,
    },
    refund::{
        Cause, ListedRefund, Refund, RefundState, RefundTerms, RefundsFilter,
        advance as advance_refund, begin as begin_refund, find as find_refund,
        find_last as find_last_refund, find_listed as find_listed_refund, list as list_refunds,
        list_of_charge as list_refunds_of_charge, refund_job,
    },
    request::{
        NewCharge, Received, check_amount, compose, compose_received, insert_composed,
        insert_received, open_page, request_job, resume,
    },
    sessions::SEALED,
    settle::lock,
    state::fees,
    store::{
        find, is_disputed, list, lock as lock_charge, refresh_disputed, sum_of_lane,
        update as update_charge,
    },
    verify::{Verified, reconcile_job, verify_all},
};
use super::prelude::*;
use tollhouse_plugins::{Credentials, IncomingTransfer};

/// The job that requests the queued charges of a lane. Its subject is the lane.
pub const REQUEST_JOB: &str = "charge.request";
/// The job that verifies a charge.
pub const RECONCILE_JOB: &str = "charge.reconcile";
/// The job that queries the disputes of a charge.
pub const DISPUTES_JOB: &str = "charge.disputes";
/// The job that requests and polls a refund.
pub const REFUND_JOB: &str = "charge.refund";

/// The names of the payment channels in the API.
pub const CHANNELS: [&str; 6] = ["card", "bank", "ussd", "qr", "mobile_money", "bank_transfer"];

/// The key under which provider metadata names the owning record.
pub const METADATA_KEY: &str = "tollhouse_payment";

/// A provider, with the credentials under which a charge was created.
pub struct ChargeVerifier {
    pub provider: Provider,
    pub credentials: Credentials,
}

impl ChargeVerifier {
    /// 400 if the provider or the account is no longer configured.
    pub async fn open(
        app: &App,
        company_id: &CompanyId,
        provider: &str,
        account_id: &AccountId,
    ) -> Result<ChargeVerifier> {
        let provider = app.plugins.provider(provider, company_id)?;
        let account =
            app.store.select(async |tx| providers::find_by_id(tx, account_id).await).await?;
        let credentials = account.ok_or_else(providers::not_configured)?.open_credentials(app)?;
        Ok(ChargeVerifier { provider, credentials })
    }

    fn new(app: &App, company_id: &CompanyId, account: &Account) -> Result<ChargeVerifier> {
        let provider = app.plugins.provider(&account.provider, company_id)?;
        Ok(ChargeVerifier { provider, credentials: account.open_credentials(app)? })
    }

    /// Returns the provider's charge, if it exists. The result has the charge's reference, even if
    /// the plugin returned another one.
    async fn fetch(&self, app: &App, charge: &Charge) -> Result<Option<ProviderPayment>> {
        if charge.is_received() {
            let service_ref = charge.service_ref.clone();
            let found = self.provider.find_transfer(&self.credentials, &service_ref).await;
            return self.found(found.map(|transfer| {
                transfer.map(|IncomingTransfer { payment, .. }| ProviderPayment {
                    service_ref,
                    ..payment
                })
            }));
        }
        let session = sessions::known(app, &self.provider, charge).await?;
        let has_data = session.state.is_some() || session.notified.is_some();
        let is_found_by_state = self.provider.manifest().sessions.is_found_by_state();
        if is_found_by_state && !has_data {
            return Ok(None);
        }
        let mut seen = self.provider.query(&self.credentials, &session).await;
        if charge.lane.is_some()
            && charge.is_undecided()
            && let Ok(payment) = seen
        {
            seen = Ok(self.provider.with_decline(&self.credentials, payment).await);
        }
        self.found(seen.map(|seen| {
            Some(ProviderPayment {
                service_ref: charge.service_ref.clone(),
                // Found by its own data, so it is this charge.
                metadata: match is_found_by_state {
                    true => Some(json!({ METADATA_KEY: charge.owner_id }).to_string()),
                    false => seen.metadata,
                },
                ..seen
            })
        }))
    }

    fn found<T>(&self, found: Result<Option<T>, CallError>) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(found),
            Err(error) if error.fault.category == FaultCategory::NotFound => Ok(None),
            Err(error) => Err(error.into_error(&self.provider.manifest().name)),
        }
    }
}

/// Returns the provider's response without the instrument's token.
pub fn without_token(seen: &ProviderPayment) -> String {
    match &seen.instrument {
        Some(instrument) if !instrument.token.is_empty() => {
            seen.raw.replace(&instrument.token, "[token]")
        }
        _ => seen.raw.clone(),
    }
}

/// Enqueues the verification of a record's charges, for jobs of former kinds.
pub async fn adopt_job<O: ChargeOwner>(app: App, job: Job) -> Result<JobResult> {
    let (db, company_id, id) = (app.store.clone(), job.company_id, job.subject);
    db.write(async move |tx| {
        let now = app.clock.now();
        let found = settle::lock::<O>(tx, &app, &company_id, &id).await?;
        for charge in found.map(|(_, charges)| charges).unwrap_or_default() {
            jobs::enqueue(tx, &company_id, RECONCILE_JOB, &charge.id, now).await?;
        }
        Ok(JobResult::Done)
    })
    .await
}
