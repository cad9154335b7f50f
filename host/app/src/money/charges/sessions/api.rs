//! `POST` and `PUT
//! /api/v1/notifications/{provider}/{account}/{company}/{charge_or_refund}/{signature}`:
//! notifications of one charge or refund. The URL authenticates the sender.

use axum::http::HeaderMap;
use sha2::{Digest, Sha256};

use super::{
    super::{
        ChargeId, RECONCILE_JOB, REFUND_JOB,
        refund::{self, Refund},
        store as charges,
    },
    Charge, Data, Purpose, is_signed, known, known_refund, read, store,
};
use crate::money::prelude::*;
use tollhouse_http::request::body::RawBody;
use tollhouse_plugins::{Credentials, PluginData, Webhook};

/// Number of attempts to record a notification despite concurrent ones for the same record.
const MAX_ATTEMPTS: usize = 3;

/// The record of a notification URL.
struct Target {
    charge: Charge,
    /// `None`: the URL is that of the charge.
    refund: Option<Refund>,
}

impl Target {
    fn id(&self) -> &str {
        self.refund.as_ref().map_or(&self.charge.id, |refund| &refund.id)
    }

    fn job(&self) -> &'static str {
        if self.refund.is_some() { REFUND_JOB } else { RECONCILE_JOB }
    }

    /// Returns the data that the plugin reads from the notification.
    async fn read(
        &self,
        app: &App,
        provider: &Provider,
        credentials: &Credentials,
        webhook: &Webhook,
    ) -> Result<PluginData> {
        let received = match &self.refund {
            None => {
                let session = known(app, provider, &self.charge).await?;
                provider.receive_for_session(credentials, &session, webhook).await
            }
            Some(refund) => {
                let refund = known_refund(app, provider, &self.charge, refund).await?;
                provider.receive_for_refund(credentials, &refund, webhook).await
            }
        };
        received.map_err(|error| match error.fault.category {
            _ if error.retry_after_s.is_some() => error.into_error(&self.charge.provider),
            _ if error.certainty == Certainty::Unknown => Error::internal(error.fault.message),
            FaultCategory::Refused => Error::Unauthorized("the signature is not valid"),
            FaultCategory::Invalid => {
                let (provider, reason) = (&self.charge.provider, error.fault.message);
                tracing::warn!(provider, reason, "malformed notification");
                Error::invalid("the notification cannot be read")
            }
            _ => Error::internal(error.fault.message),
        })
    }
}

/// Responds once the notification is stored; a job verifies the charge or checks the refund.
#[instrument(target = SPAN_TARGET, name = "sessions.receive", skip_all)]
pub async fn receive(
    State(app): State<App>,
    Path((provider, account, company, id, signature)): Path<(
        String,
        String,
        CompanyId,
        String,
        String,
    )>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<MessageResponse> {
    let unknown = || Error::not_found("notification URL not found");
    if !is_signed(&app, Purpose::Notification, &company, &id, &signature) {
        return Err(unknown());
    }
    let (account, plugin, credentials) = notifications::open(&app, &provider, &account).await?;
    let find = async |tx: &mut Tx| find(tx, &company, &id).await;
    let target = app.store.read(find).await?;
    let is_at_account = |target: &Target| target.charge.account_id == account.id;
    let target = target.filter(is_at_account).ok_or_else(unknown)?;
    let webhook = Webhook { headers: notifications::lower_case(&headers), body: body.clone() };
    let digest = hex::encode(Sha256::digest([id.as_bytes(), &body].concat()));
    for _ in 0..MAX_ATTEMPTS {
        let Data { revision, .. } = read(&app, &company, &id).await?;
        let data = target.read(&app, &plugin, &credentials, &webhook).await?;
        let notified = store::seal(&app, &company, &id, &data);
        let (db, host, account) = (app.store.clone(), app.clone(), account.clone());
        let (company, id, digest) = (company.clone(), target.id().to_owned(), digest.clone());
        let (job, about) = (target.job(), summarize(&target));
        let recorded = db.write(async move |tx| {
            let now = host.clock.now();
            if !store::set_notified(tx, &company, &id, &notified, revision).await? {
                return Ok::<_, Error>(false);
            }
            notifications::record(tx, &account, &digest, about, now).await?;
            jobs::enqueue(tx, &company, job, &id, now).await?;
            Ok(true)
        });
        if recorded.await? {
            if let Some(refund) = &target.refund {
                refund::report_late_notification(&app, &target.charge, refund);
            }
            return Ok(MessageResponse("Notification received successfully"));
        }
    }
    Err(Error::Unavailable("other notifications of this record are being stored, try again later"))
}

/// The same by `PUT`, which some providers use.
pub async fn receive_put(
    state: State<App>,
    path: Path<(String, String, CompanyId, String, String)>,
    headers: HeaderMap,
    body: RawBody,
) -> Result<MessageResponse> {
    receive(state, path, headers, body).await
}

async fn find(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
) -> tollhouse_platform::store::Result<Option<Target>> {
    if let Some(charge) = charges::find(tx, company_id, &ChargeId::from(id)).await? {
        return Ok(Some(Target { charge, refund: None }));
    }
    let Some(refund) = refund::find(tx, company_id, id).await? else { return Ok(None) };
    let charge = charges::find(tx, company_id, &refund.charge_id).await?;
    Ok(charge.map(|charge| Target { charge, refund: Some(refund) }))
}

fn summarize(target: &Target) -> Value {
    json!([{
        "subject": if target.refund.is_some() { "refund" } else { "payment" },
        "event": "",
        "service_ref": target.charge.service_ref,
        "transaction_id": target.charge.transaction_id,
    }])
}
