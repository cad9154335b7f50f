//! Order of SMS gateways: the company's, then those of the service; recently failed ones last.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::SendOutcome;
use crate::tenants::prelude::*;
use tollhouse_platform::clock::Clock;
use tollhouse_plugins::{CallError, FaultCategory, TextMessage};

/// Cooldown in which a failed gateway account is tried last.
const COOLDOWN_SECONDS: i64 = 30;

/// The gateways of the service, and the accounts in cooldown.
pub struct Gateways {
    /// In the order in which they are tried.
    names: Vec<String>,
    /// End of the cooldown by account.
    cooldown_until: Mutex<HashMap<String, Timestamp>>,
    clock: Clock,
}

impl Gateways {
    pub fn new(names: Vec<String>, clock: Clock) -> Gateways {
        Gateways { names, cooldown_until: Mutex::default(), clock }
    }

    /// Returns the names of all gateways for a company that has chosen `first`, in order.
    fn in_order(&self, first: Option<&str>) -> Vec<String> {
        let mut names: Vec<String> = first.map(str::to_owned).into_iter().collect();
        names.extend(self.names.iter().filter(|name| Some(&***name) != first).cloned());
        names
    }

    fn is_cooling_down(&self, account: &str) -> bool {
        let resting = self.cooldown_until.lock().unwrap_or_else(PoisonError::into_inner);
        resting.get(account).is_some_and(|until| *until > self.clock.now())
    }

    /// Starts the cooldown of one account: a company's wrong key does not affect other companies.
    fn start_cooldown(&self, account: &str) {
        let until = self.clock.now().plus_seconds(COOLDOWN_SECONDS);
        let mut resting = self.cooldown_until.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(account.to_owned(), until);
    }
}

/// Returns the accounts through which a company can send, in the order of attempts.
pub async fn accounts(tx: &mut Tx, app: &App, company: &Company) -> Result<Vec<Account>> {
    let mut accounts = Vec::new();
    for name in app.slot::<Gateways>().in_order(company.sms_gateway.as_deref()) {
        if app.plugins.get(&name).is_some()
            && let Ok(account) = providers::find_usable(tx, company, &name).await?
        {
            accounts.push(account);
        }
    }
    accounts.sort_by_key(|account| app.slot::<Gateways>().is_cooling_down(&account.id));
    Ok(accounts)
}

/// Checks that a text message of a company can go to a gateway. 400 if gateways are installed and
/// the company has an account at none of them; 503 if none is installed, or one is deactivated or
/// not ready on this host.
pub async fn check(tx: &mut Tx, app: &App, company: &Company) -> Result<()> {
    let names = app.slot::<Gateways>().in_order(company.sms_gateway.as_deref());
    let (mut missing, mut is_deactivated) = (None, false);
    for name in names.iter().filter(|name| app.plugins.get(name).is_some()) {
        match providers::find_usable(tx, company, name).await? {
            Ok(_) => return Ok(()),
            Err(NoAccount::Deactivated) => is_deactivated = true,
            Err(why @ NoAccount::Missing) => missing = Some(why.to_error(name)),
        }
    }
    for name in &names {
        app.plugins.ensure_ready(name).map_err(|error| match error {
            Error::RetryLater { detail, retry_after_s, .. } => Error::RetryLater {
                message: "text messages cannot be sent now, please try again later".to_owned(),
                detail: format!("{name}: {detail}"),
                retry_after_s,
            },
            other => other,
        })?;
    }
    Err(missing.filter(|_| !is_deactivated).unwrap_or(Error::Unavailable(
        "text messages are not configured: contact the operator of this service",
    )))
}

/// Tries the accounts until a gateway accepts the message or rejects it permanently.
pub async fn send(
    app: &App,
    company_id: &CompanyId,
    accounts: &[Account],
    message: &TextMessage,
) -> SendOutcome {
    let mut reasons = Vec::new();
    for account in accounts {
        let name = &*account.provider;
        let Some(gateway) = app.plugins.gateway(name, company_id) else { continue };
        let credentials = match account.open_credentials(app) {
            Ok(credentials) => credentials,
            Err(error) => {
                tracing::error!(gateway = name, error = %error.chain(), "credentials of a gateway account cannot be opened");
                reasons.push(format!("{name}: credentials cannot be opened"));
                continue;
            }
        };
        let reference = gateway.manifest().reference.conform(&message.reference);
        let message = TextMessage { reference, ..message.clone() };
        match gateway.send_text(&credentials, &message).await {
            Ok(id) => return SendOutcome::Accepted { via: name.to_owned(), id: Some(id) },
            Err(error) if is_final(&error) => {
                return SendOutcome::Rejected(failure_reason(name, &error));
            }
            Err(error) => {
                app.slot::<Gateways>().start_cooldown(&account.id);
                reasons.push(failure_reason(name, &error));
            }
        }
    }
    if reasons.is_empty() {
        reasons.push("no gateway is configured".to_owned());
    }
    SendOutcome::Retryable(reasons.join(", "))
}

/// Returns whether the failure is final: the plugin contract then allows no other gateway.
fn is_final(error: &CallError) -> bool {
    use FaultCategory::{Invalid, NotFound, Refused};
    matches!(error.fault.category, Invalid | NotFound | Refused)
}

/// Returns the reason for operators, without the gateway's text, which may contain the number.
fn failure_reason(gateway: &str, error: &CallError) -> String {
    const MAX_CODE_CHARACTERS: usize = 60;
    let plain = |c: &char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(c);
    let code: String = error.fault.code.chars().filter(plain).take(MAX_CODE_CHARACTERS).collect();
    format!("{gateway}: {:?} {code}", error.fault.category).trim_end().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_ordered_and_cool_down_by_account() {
        let clock = Clock::frozen_at(Timestamp(0));
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let gateways = Gateways::new(names, clock.clone());
        let order = |first| gateways.in_order(first).concat();
        assert_eq!([order(None), order(Some("b")), order(Some("x"))], ["abc", "bac", "xabc"]);
        gateways.start_cooldown("account");
        assert!(gateways.is_cooling_down("account") && !gateways.is_cooling_down("another"));
        clock.advance_to(Timestamp(COOLDOWN_SECONDS * 1_000));
        assert!(!gateways.is_cooling_down("account"));
    }
}
