//! Accounts at payment providers, SMS gateways and registers: with whose credentials a payment is made, a message sent, an identity
//! looked up.
//!
//! A company may have credentials of its own; the service has some for everyone else, one set for test companies and one for live
//! ones. Each set has an opaque account id, which stands in the URL that the provider notifies.

pub mod api;
mod probe;
mod store;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::{
    api::chosen,
    store::{Account, SEALED},
};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    plugins::{Credentials, Kind, Provider},
    store::Tx,
};

/// Whether an account moves real money. A company uses accounts of the mode of its `server` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ProviderMode")]
pub enum Mode {
    Test,
    Live,
}

impl Mode {
    #[must_use]
    pub fn of(company: &Company) -> Mode {
        if company.is_test() { Mode::Test } else { Mode::Live }
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Mode> {
        [Mode::Test, Mode::Live].into_iter().find(|mode| mode.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Test => "test",
            Mode::Live => "live",
        }
    }

    /// What stands in the place of a company in the rows of the service's own accounts. No company's id is as short. There are two
    /// values because the table has one row per company and provider; hosts of the previous version know only `""`.
    fn service(self) -> &'static str {
        match self {
            Mode::Live => "",
            Mode::Test => "test",
        }
    }
}

/// Why a company has no account at a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAccount {
    /// None of the company's mode has credentials.
    Missing,
    /// The provider is deactivated, for the company or for the service.
    Deactivated,
}

impl NoAccount {
    #[must_use]
    pub fn at(self, provider: &str) -> Error {
        match self {
            NoAccount::Missing => no_key(),
            NoAccount::Deactivated => deactivated(provider),
        }
    }
}

/// The account through which `company` uses `provider` now.
pub async fn resolve(tx: &mut Tx, company: &Company, provider: &str) -> Result<Account> {
    usable(tx, company, provider).await?.map_err(|why| why.at(provider))
}

/// The same account, or why there is none, for a caller that answers that in its own way.
pub async fn usable(
    tx: &mut Tx,
    company: &Company,
    provider: &str,
) -> Result<Result<Account, NoAccount>> {
    let (own, services) = both(tx, company, provider).await?;
    Ok(choose(own, services))
}

/// The account that a saved instrument of `company` is good for, if the company may be charged through it now.
pub async fn chargeable(tx: &mut Tx, company: &Company, account_id: &str) -> Result<Account> {
    let account = store::by_id(tx, account_id).await?;
    let account =
        account.filter(|account| account.serves(company) && account.credentials.is_some());
    let account = account.ok_or_else(no_key)?;
    let (own, services) = both(tx, company, &account.provider).await?;
    match is_off(own.as_ref(), services.as_ref()) {
        true => Err(deactivated(&account.provider)),
        false => Ok(account),
    }
}

/// The company's own account and the service's, both of the company's mode.
async fn both(
    tx: &mut Tx,
    company: &Company,
    provider: &str,
) -> Result<(Option<Account>, Option<Account>)> {
    let own = store::find(tx, &company.id, provider).await?;
    let services = store::find(tx, Mode::of(company).service(), provider).await?;
    Ok((own, services))
}

fn is_off(own: Option<&Account>, services: Option<&Account>) -> bool {
    own.into_iter().chain(services).any(|account| !account.active)
}

fn no_key() -> Error {
    Error::invalid("payment service key not found")
}

/// What callers hear of a provider that an operator has switched off or taken out of service.
#[must_use]
pub fn deactivated(provider: &str) -> Error {
    Error::Invalid(format!("{provider} has been deactivated"))
}

/// The plugin of an account that something was saved with. One that is not installed any more is as good as deactivated.
pub fn serving(app: &App, provider: &str, company_id: &str) -> Result<Provider> {
    let serving = app.plugins.provider(provider, company_id);
    serving.map_err(|error| match error {
        Error::Invalid(_) => deactivated(provider),
        other => other,
    })
}

/// Inactive for everyone or for the company: nobody's. The company's own credentials come before the service's.
fn choose(own: Option<Account>, services: Option<Account>) -> Result<Account, NoAccount> {
    if is_off(own.as_ref(), services.as_ref()) {
        return Err(NoAccount::Deactivated);
    }
    let usable = |account: &Account| account.credentials.is_some();
    own.filter(usable).or(services.filter(usable)).ok_or(NoAccount::Missing)
}

/// The account with this id, whosever it is: for notifications, whose URL holds it, and for records that were made with it.
pub async fn by_id(tx: &mut Tx, id: &str) -> Result<Option<Account>> {
    Ok(store::by_id(tx, id).await?)
}

impl Account {
    #[must_use]
    pub fn is_services(&self) -> bool {
        [Mode::Test, Mode::Live].iter().any(|mode| self.company_id == mode.service())
    }

    /// The company whose account it is; empty for the service's own.
    #[must_use]
    pub fn owner(&self) -> &str {
        if self.is_services() { "" } else { &self.company_id }
    }

    /// Whether `company` may use it: its own account, or the service's of its mode.
    fn serves(&self, company: &Company) -> bool {
        self.company_id == company.id || self.company_id == Mode::of(company).service()
    }

    pub fn open_credentials(&self, app: &App) -> Result<Credentials> {
        let json = self.open(&app.sealer)?.ok_or_else(no_key)?;
        let values: HashMap<String, String> =
            serde_json::from_str(&json).map_err(Error::internal)?;
        // What was cached under other values is not good under these.
        let id = format!("{}@{}", self.id, self.updated_at.0);
        Ok(Credentials { id, values })
    }

    /// Where the provider sends its notifications for this account; gateways and registers send none.
    #[must_use]
    pub fn notification_url(&self, app: &App) -> Option<String> {
        let plugin = app.plugins.get(&self.provider);
        if plugin.is_some_and(|plugin| plugin.manifest().kind != Kind::Provider) {
            return None;
        }
        let base = app.settings.public_url.trim_end_matches('/');
        Some(format!("{base}/api/v1/notifications/{}/{}", self.provider, self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn account(id: &str, active: bool, credentials: bool) -> Option<Account> {
        Some(Account {
            company_id: String::new(),
            provider: "p".into(),
            id: id.into(),
            credentials: credentials.then(|| "sealed".to_owned()),
            active,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        })
    }

    #[test]
    fn which_account_is_used() {
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
            let chosen = choose(own, services).map(|account| account.id);
            assert_eq!(chosen, expected.map(str::to_owned));
        }
    }
}
