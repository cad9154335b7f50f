//! Operator API for provider accounts. Credentials are accepted and never returned.

mod probe;
mod set;

pub use self::{
    probe::{test_for_company, test_for_service},
    set::{set_for_company, set_for_service},
};
use super::{Account, AccountId, AccountOwner, Mode, store};
use crate::tenants::prelude::*;
use tollhouse_plugins::PluginHandle;

impl Choice for Mode {
    const ALL: &'static [&'static str] = &["test", "live"];
}

/// A provider account. Its credentials are never returned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderAccount")]
pub struct View {
    provider: String,
    account: AccountId,
    /// Companies with this `server` use the account.
    mode: Mode,
    active: bool,
    has_credentials: bool,
    /// Whether its transactions are listed daily and compared with the records.
    reconciled: bool,
    /// URL to which the provider sends webhooks; `null` for SMS gateways, which send none.
    notification_url: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

fn view(account: Account, mode: Mode, app: &App) -> View {
    View {
        notification_url: account.notification_url(app),
        has_credentials: account.credentials.is_some(),
        reconciled: app
            .plugins
            .provider(&account.provider, "")
            .is_ok_and(|plugin| plugin.has_settlements()),
        provider: account.provider,
        account: account.id,
        mode,
        active: account.active,
        created_at: account.created_at,
        updated_at: account.updated_at,
    }
}

struct Target {
    owner: AccountOwner,
    mode: Mode,
}

impl Target {
    fn service(app: &App, mode: Option<Mode>) -> Target {
        let usual = if app.settings.service.development { Mode::Test } else { Mode::Live };
        let mode = mode.unwrap_or(usual);
        Target { owner: AccountOwner::Service(mode), mode }
    }

    /// Returns 404 for an unknown company and 400 if `mode` differs from the company's.
    async fn company(
        app: &App,
        id: &CompanyId,
        mode: Option<Mode>,
        fields: &Fields,
    ) -> Result<Target> {
        let company = companies::find(app, id).await?;
        let own = Mode::of(&company);
        if mode.is_some_and(|sent| sent != own) {
            return Err(fields.must_be("mode", &format!("{}, the mode of the company", own.name())));
        }
        Ok(Target { owner: AccountOwner::Company(company.id), mode: own })
    }
}

/// Returns the active version, or why there is none; 404 if the plugin is not installed.
fn active_plugin(app: &App, provider: &str) -> Result<Result<PluginHandle>> {
    match (app.plugins.get(provider), app.plugins.unavailability(provider)) {
        (Some(plugin), _) => Ok(Ok(plugin)),
        (None, Some(absence)) => Ok(Err(absence.to_error(provider))),
        (None, None) => Err(Error::not_found("provider not found")),
    }
}

pub async fn list_for_service(State(app): State<App>) -> Result<DataResponse<Vec<View>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let mut accounts = Vec::new();
        for mode in [Mode::Live, Mode::Test] {
            let of_mode = store::list(tx, &AccountOwner::Service(mode)).await?;
            accounts.extend(of_mode.into_iter().map(|account| (account, mode)));
        }
        Ok(accounts)
    };
    let mut accounts = app.store.read(read).await?;
    accounts.sort_by(|(one, _), (other, _)| one.provider.cmp(&other.provider));
    let accounts = accounts.into_iter().map(|(account, mode)| view(account, mode, &app));
    DataResponse::data(accounts.collect(), "Providers fetched successfully")
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<View>>> {
    let mode = Mode::of(&companies::find(&app, &company).await?);
    let owner = AccountOwner::Company(company);
    let accounts = app.store.select(async |tx| store::list(tx, &owner).await).await?;
    let accounts = accounts.into_iter().map(|account| view(account, mode, &app));
    DataResponse::data(accounts.collect(), "Providers fetched successfully")
}
