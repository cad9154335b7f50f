//! Records changes of a mandate, each with its event. The caller has locked the user's row.

use super::{
    Mandate, MandateState, SYNC_JOB,
    state::{Fact, decide},
    store,
};
use crate::money::prelude::*;
use tollhouse_plugins::{Consent, MandateStatus, ProviderMandate};

/// Records a status that the provider reports.
pub async fn record_seen(
    tx: &mut Tx,
    app: &App,
    mut mandate: Mandate,
    seen: &ProviderMandate,
) -> Result<Mandate> {
    let next = decide(mandate.state, Fact::Seen(seen.status));
    let is_ready = next.unwrap_or(mandate.state) == MandateState::Ready;
    if mandate.state == MandateState::Created
        && let Some(consent) = &seen.consent
    {
        mandate.set_consent(consent);
    }
    if is_ready && seen.status == MandateStatus::Ready {
        mandate.token = mandate.seal_token(app, &seen.token);
        if !seen.email.is_empty() {
            mandate.email.clone_from(&seen.email);
        }
    }
    let texts = [(&seen.bank, &mut mandate.bank), (&seen.last4, &mut mandate.last4)];
    for (found, kept) in texts.into_iter().filter(|(found, _)| !found.is_empty()) {
        kept.clone_from(found);
    }
    let Some(next) = next else {
        store::update(tx, &mandate).await?;
        return Ok(mandate);
    };
    mandate.message.clone_from(&seen.message);
    enter(tx, app, mandate, next).await
}

/// Cancels a mandate at the request of the company, or because the payer has not authorized it in
/// time. The job cancels it at the provider.
pub async fn cancel(tx: &mut Tx, app: &App, mut mandate: Mandate, fact: Fact) -> Result<Mandate> {
    let Some(next) = decide(mandate.state, fact) else { return Ok(mandate) };
    if !mandate.is_foreign() {
        mandate.to_cancel = true;
        jobs::enqueue(tx, &mandate.company_id, SYNC_JOB, &mandate.id, app.clock.now()).await?;
    }
    enter(tx, app, mandate, next).await
}

async fn enter(
    tx: &mut Tx,
    app: &App,
    mut mandate: Mandate,
    state: MandateState,
) -> Result<Mandate> {
    mandate.state = state;
    mandate.updated_at = app.clock.now();
    mandate.active = state == MandateState::Ready;
    match state {
        MandateState::Created | MandateState::Approved => {}
        MandateState::Ready => {
            let default = store::find_default(tx, &mandate.company_id, &mandate.user_key).await?;
            mandate.is_default = default.is_none();
        }
        MandateState::Cancelled => {
            mandate.token = mandate.seal_token(app, "");
            return resign(tx, app, mandate).await;
        }
    }
    store::update(tx, &mandate).await?;
    emit(tx, app, &mandate).await?;
    Ok(mandate)
}

/// Writes a cancelled mandate. If it was the default, the newest other usable mandate becomes the
/// default.
async fn resign(tx: &mut Tx, app: &App, mut mandate: Mandate) -> Result<Mandate> {
    let was_default = std::mem::take(&mut mandate.is_default);
    store::update(tx, &mandate).await?;
    if was_default {
        let Mandate { company_id, user_key, updated_at, .. } = &mandate;
        let newest = SortOrder::Descending;
        let all = store::list_for_user(tx, company_id, user_key, None, newest).await?;
        if let Some(next) = all.into_iter().find(Mandate::is_usable) {
            let next = Mandate { is_default: true, updated_at: *updated_at, ..next };
            store::update(tx, &next).await?;
        }
    }
    emit(tx, app, &mandate).await?;
    Ok(mandate)
}

/// Emits the event of the mandate's state.
pub async fn emit(tx: &mut Tx, app: &App, mandate: &Mandate) -> Result<()> {
    let event = events::Event {
        kind: match mandate.state {
            MandateState::Created => "direct_debit.created",
            MandateState::Approved => "direct_debit.approved",
            MandateState::Ready => "direct_debit.ready",
            MandateState::Cancelled => "direct_debit.cancelled",
        },
        subject_id: mandate.id.to_string(),
        data: json!(mandate.view()),
        callback_url: None,
    };
    events::emit(tx, app, &mandate.company_id, event).await
}

impl Mandate {
    pub fn set_consent(&mut self, consent: &Consent) {
        let (url, instruction) = match consent {
            Consent::Page(url) => (Some(url.clone()), None),
            Consent::Instruction(text) => (None, Some(text.clone())),
        };
        (self.consent_url, self.instruction) = (url, instruction);
    }
}
