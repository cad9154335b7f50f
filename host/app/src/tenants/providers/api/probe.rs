//! Testing an account.

use super::{Target, active_plugin};
use crate::{
    tenants::prelude::*,
    tenants::providers::{
        Mode, not_configured,
        probe::{self, ProbeOutcome},
        store,
    },
};

fields! {
    /// A test of a provider account.
    Body ProviderTest {
        /// As for the setup of an account. A company's own account has the mode of its `server`.
        mode: Option<OneOf<Mode>> as Option<Mode> => Ok(mode.as_deref().and_then(Mode::from_name)),
    }
}

/// Result of a provider test.
#[derive(Serialize, JsonSchema)]
pub struct ProviderTested {
    provider: String,
    account: AccountId,
    mode: Mode,
    outcome: ProbeOutcome,
    /// Fault code of the plugin or the host; empty without a fault.
    code: String,
    /// The outcome as a sentence.
    detail: String,
}

pub async fn test_for_service(
    State(app): State<App>,
    actor: Actor,
    Path(provider): Path<String>,
    body: Body<ProviderTest>,
) -> Result<DataResponse<ProviderTested>> {
    let target = Target::service(&app, body.read()?.mode);
    test(app, actor, target, provider).await
}

pub async fn test_for_company(
    State(app): State<App>,
    actor: Actor,
    Path((company, provider)): Path<(CompanyId, String)>,
    body: Body<ProviderTest>,
) -> Result<DataResponse<ProviderTested>> {
    let target = Target::company(&app, &company, body.read()?.mode, &body).await?;
    test(app, actor, target, provider).await
}

/// Tests an account. An inactive one is allowed, so that it can be tested before it is used.
async fn test(
    app: App,
    actor: Actor,
    target: Target,
    provider: String,
) -> Result<DataResponse<ProviderTested>> {
    active_plugin(&app, &provider)??;
    let find = async |tx: &mut Tx| store::find(tx, &target.owner, &provider).await;
    let account = app.store.select(find).await?;
    let account =
        account.filter(|account| account.credentials.is_some()).ok_or_else(not_configured)?;
    let (outcome, code) = probe::probe(&app, &account).await?;
    let (db, mode) = (app.store.clone(), target.mode);
    db.write(async move |tx| {
        let detail = json!({ "provider": provider, "mode": mode, "outcome": outcome });
        audit::record(tx, &app, &actor, &target.owner, "provider.test", detail).await?;
        let detail = outcome.detail(&provider);
        let account = account.id;
        let tested = ProviderTested { provider, account, mode, outcome, code, detail };
        DataResponse::data(tested, "Provider tested successfully")
    })
    .await
}
