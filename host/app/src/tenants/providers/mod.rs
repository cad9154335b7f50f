//! Accounts at payment providers, SMS gateways and identity registers.
//!
//! A company may have its own credentials; other companies use the service accounts, one per
//! provider for test companies and one for live companies. Each account has an opaque id, which is
//! part of its webhook URL.

pub mod api;
mod probe;
pub mod statistics;
mod store;

use std::collections::HashMap;

pub use self::store::{Account, AccountId, SEALED, find_by_id};
use crate::tenants::prelude::*;
use tollhouse_plugins::{Credentials, PluginKind, Provider};

/// Specified values of `payment_service`. Those not installed are rejected as not configured.
const SPECIFIED_PROVIDERS: [&str; 3] = ["provider_a", "provider_b", "provider_c"];

/// Mode of an account: equal to the `server` of the companies that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ProviderMode")]
pub enum Mode {
    Test,
    Live,
}

impl Mode {
    pub fn of(company: &Company) -> Mode {
        if company.is_test() { Mode::Test } else { Mode::Live }
    }

    /// Returns the mode with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Mode> {
        [Mode::Test, Mode::Live].into_iter().find(|mode| mode.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Mode::Test => "test",
            Mode::Live => "live",
        }
    }
}

/// The owner of an account. The service has one account per provider and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountOwner {
    Service(Mode),
    Company(CompanyId),
}

impl AccountOwner {
    /// Returns the value of the column `company_id`, for the service shorter than any company's id.
    fn column(&self) -> &str {
        match self {
            AccountOwner::Service(Mode::Live) => "",
            AccountOwner::Service(Mode::Test) => "test",
            AccountOwner::Company(id) => id,
        }
    }
}

impl From<String> for AccountOwner {
    fn from(column: String) -> AccountOwner {
        match &*column {
            "" => AccountOwner::Service(Mode::Live),
            "test" => AccountOwner::Service(Mode::Test),
            _ => AccountOwner::Company(column.into()),
        }
    }
}

impl From<&AccountOwner> for Owner {
    fn from(owner: &AccountOwner) -> Owner {
        match owner {
            AccountOwner::Service(_) => Owner::Service,
            AccountOwner::Company(id) => Owner::from(id.clone()),
        }
    }
}

/// Reason why a company cannot use a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAccount {
    /// No account of the company's mode has credentials.
    Missing,
    /// The company's account or the service account is inactive.
    Deactivated,
}

impl NoAccount {
    pub fn to_error(self, provider: &str) -> Error {
        match self {
            NoAccount::Missing => not_configured(),
            NoAccount::Deactivated => deactivated(provider),
        }
    }
}

/// Returns the requested provider, else the company's default, else the default of the service. 400
/// if the requested one is unknown or deactivated; 503 if it is not ready on this host.
pub fn choose_provider(
    app: &App,
    company: &Company,
    sent: Option<&str>,
    fields: &Fields,
) -> Result<String> {
    if let Some(name) = sent
        && let Some(absence) = app.plugins.unavailability(name)
    {
        return Err(absence.to_error(name));
    }
    let installed = app.plugins.names(PluginKind::Provider);
    let mut known: Vec<&str> = installed.iter().map(String::as_str).collect();
    known.extend(SPECIFIED_PROVIDERS.iter().filter(|name| !installed.iter().any(|i| i == *name)));
    sent.iter().try_for_each(|name| fields.require_one_of("payment_service", name, &known))?;
    Ok(sent.map_or_else(|| default_provider(app, company), str::to_owned))
}

/// Returns whether cards can be saved at the provider: not by push payments, which have no page.
pub fn saves_cards(provider: &Provider) -> bool {
    provider.exports("saved-card") && !provider.manifest().sessions.push
}

/// A feature that only some providers have.
pub struct Feature {
    /// Completes "the payment_service field must be …".
    pub provider: &'static str,
    pub is_supported: fn(&Provider) -> bool,
}

/// Like [`choose_provider`], but also 400 if the provider does not support the currency or the
/// feature. A provider that is not ready is not checked.
pub fn choose_provider_of(
    feature: &Feature,
    app: &App,
    company: &Company,
    fields: &Fields,
    currency: &str,
    sent: Option<&str>,
) -> Result<String> {
    let name = choose_provider(app, company, sent, fields)?;
    if let Ok(provider) = app.plugins.provider(&name, &company.id) {
        let currencies = provider.manifest().currencies.iter().map(String::as_str);
        fields.require_one_of("currency", currency, &currencies.collect::<Vec<_>>())?;
        if !(feature.is_supported)(&provider) {
            return Err(fields.must_be("payment_service", feature.provider));
        }
    }
    Ok(name)
}

/// Returns the provider that is used if a request names none.
pub fn default_provider(app: &App, company: &Company) -> String {
    company.payment_service.clone().unwrap_or_else(|| app.settings.service.default_provider.clone())
}

/// Returns the account through which `company` uses `provider`; 400 if there is none.
pub async fn resolve(tx: &mut Tx, company: &Company, provider: &str) -> Result<Account> {
    find_usable(tx, company, provider).await?.map_err(|why| why.to_error(provider))
}

/// Like [`resolve`], but returns the reason, for callers with errors of their own.
pub async fn find_usable(
    tx: &mut Tx,
    company: &Company,
    provider: &str,
) -> Result<Result<Account, NoAccount>> {
    Ok(select(find_own_and_service(tx, company, provider).await?))
}

/// Returns the account through which `company` uses each of these providers, or the reason why it
/// cannot.
pub async fn find_all_usable(
    tx: &mut Tx,
    company: &Company,
    providers: &[String],
) -> Result<HashMap<String, Result<Account, NoAccount>>> {
    let owners = owners_of(company);
    let mut accounts = store::find_at(tx, &owners, providers).await?;
    let mut take = |owner: &AccountOwner, provider: &String| {
        let found = accounts
            .iter()
            .position(|account| account.owner == *owner && account.provider == *provider);
        found.map(|index| accounts.swap_remove(index))
    };
    let select = |provider: &String| {
        let [own, service] = owners.each_ref().map(|owner| take(owner, provider));
        (provider.clone(), select([own, service]))
    };
    Ok(providers.iter().map(select).collect())
}

/// Returns the account with which a payment instrument was saved, if `company` may charge it.
pub async fn find_chargeable(
    tx: &mut Tx,
    company: &Company,
    account_id: &AccountId,
) -> Result<Account> {
    let account = find_by_id(tx, account_id).await?;
    let account =
        account.filter(|account| account.is_usable_by(company) && account.credentials.is_some());
    let account = account.ok_or_else(not_configured)?;
    match is_deactivated(&find_own_and_service(tx, company, &account.provider).await?) {
        true => Err(deactivated(&account.provider)),
        false => Ok(account),
    }
}

/// Returns the company, and the service in its mode.
fn owners_of(company: &Company) -> [AccountOwner; 2] {
    [AccountOwner::Company(company.id.clone()), AccountOwner::Service(Mode::of(company))]
}

/// Returns the company's own account and the service account of its mode.
async fn find_own_and_service(
    tx: &mut Tx,
    company: &Company,
    provider: &str,
) -> Result<[Option<Account>; 2]> {
    let owners = owners_of(company);
    let mut accounts = store::find_both(tx, &owners, provider).await?;
    let own = accounts.iter().position(|account| account.owner == owners[0]);
    let own = own.map(|index| accounts.swap_remove(index));
    Ok([own, accounts.pop()])
}

fn is_deactivated(accounts: &[Option<Account>; 2]) -> bool {
    accounts.iter().flatten().any(|account| !account.active)
}

/// The error of a company without a usable account at the provider.
pub fn not_configured() -> Error {
    Error::invalid("payment service key not found")
}

/// Enqueues a job for each usable account whose plugin `fits`, unless the account already has one.
pub async fn enqueue_jobs(
    app: &App,
    kind: &'static str,
    fits: impl Fn(&Provider) -> bool,
) -> Result<()> {
    let names = app.plugins.names(PluginKind::Provider).into_iter();
    let names =
        names.filter(|name| app.plugins.provider(name, "").is_ok_and(|plugin| fits(&plugin)));
    let names: Vec<String> = names.collect();
    let list = async |tx: &mut Tx| store::list_without_job(tx, kind, &names).await;
    let accounts = app.store.select(list).await?;
    if accounts.is_empty() {
        return Ok(());
    }
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| -> Result<()> {
        for account in &accounts {
            let owner = CompanyId::from(Owner::from(&account.owner).column());
            jobs::enqueue(tx, &owner, kind, &account.id, now).await?;
        }
        Ok(())
    })
    .await
}

pub fn deactivated(provider: &str) -> Error {
    Error::Invalid(format!("{provider} has been deactivated"))
}

/// Returns the plugin of a record's account. One that is no longer installed counts as deactivated.
pub fn plugin_of(app: &App, provider: &str, company_id: &CompanyId) -> Result<Provider> {
    let serving = app.plugins.provider(provider, company_id);
    serving.map_err(|error| match error {
        Error::Invalid(_) => deactivated(provider),
        other => other,
    })
}

/// Selects the company's own account if it has credentials, else the service account. If either is
/// inactive, neither is used.
fn select(own_and_service: [Option<Account>; 2]) -> Result<Account, NoAccount> {
    if is_deactivated(&own_and_service) {
        return Err(NoAccount::Deactivated);
    }
    let mut accounts = own_and_service.into_iter().flatten();
    accounts.find(|account| account.credentials.is_some()).ok_or(NoAccount::Missing)
}

impl Account {
    pub fn is_service_account(&self) -> bool {
        matches!(self.owner, AccountOwner::Service(_))
    }

    /// Returns whether `company` may use it: its own account, or the service account of its mode.
    fn is_usable_by(&self, company: &Company) -> bool {
        match &self.owner {
            AccountOwner::Service(mode) => *mode == Mode::of(company),
            AccountOwner::Company(id) => *id == company.id,
        }
    }

    pub fn open_credentials(&self, app: &App) -> Result<Credentials> {
        let json = self.open_json(&app.sealer)?.ok_or_else(not_configured)?;
        let values: HashMap<String, String> =
            serde_json::from_str(&json).map_err(Error::internal)?;
        // The time invalidates cache entries that were made with earlier credentials.
        let id = format!("{}@{}", self.id, self.updated_at.0);
        Ok(Credentials { id, values })
    }

    /// Returns the URL to which the provider sends webhooks; `None` for gateways and registers.
    pub fn notification_url(&self, app: &App) -> Option<String> {
        let plugin = app.plugins.get(&self.provider);
        if plugin.is_some_and(|plugin| plugin.manifest().kind != PluginKind::Provider) {
            return None;
        }
        let base = app.settings.public_url.trim_end_matches('/');
        Some(format!("{base}/api/v1/notifications/{}/{}", self.provider, self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: &str, active: bool, credentials: bool) -> Option<Account> {
        Some(Account {
            owner: AccountOwner::Service(Mode::Live),
            provider: "p".into(),
            id: id.into(),
            credentials: credentials.then(|| "sealed".to_owned()),
            active,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        })
    }

    #[test]
    fn own_credentials_are_preferred_and_an_inactive_account_blocks_both() {
        let (deactivated, no_key) = (NoAccount::Deactivated, NoAccount::Missing);
        for (own, services, expected) in [
            (None, None, Err(no_key)),
            (None, account("s", true, true), Ok("s")),
            (account("o", true, true), account("s", true, true), Ok("o")),
            (account("o", true, true), None, Ok("o")),
            (account("o", true, false), account("s", true, true), Ok("s")),
            (account("o", true, false), account("s", true, false), Err(no_key)),
            (account("o", false, true), account("s", true, true), Err(deactivated)),
            (account("o", true, true), account("s", false, true), Err(deactivated)),
            (None, account("s", false, true), Err(deactivated)),
        ] {
            let chosen = select([own, services]).map(|account| account.id);
            assert_eq!(chosen, expected.map(AccountId::from));
        }
    }
}
