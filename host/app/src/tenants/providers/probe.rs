//! Tests of provider accounts by calls without cost or effect: the verification of a payment that
//! does not exist, first with the account's secrets and then with wrong ones.

use super::Account;
use crate::state::prelude::*;
use tollhouse_platform::random::Random;
use tollhouse_plugins::{
    CallError, Credentials, FaultCategory, KnownSession, PluginKind, Provider, ReferenceRules,
};

/// Outcome of a provider test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ProviderTestOutcome")]
pub enum ProbeOutcome {
    /// The provider was reached and accepted the credentials.
    Accepted,
    /// The provider was reached and refused the credentials.
    CredentialsRefused,
    /// The host or the plugin's grants do not allow the request.
    Forbidden,
    /// The connection failed or was interrupted.
    Unreachable,
    TimedOut,
    /// The provider or its plugin is temporarily unavailable.
    Unavailable,
    /// The response does not show whether the credentials are valid.
    Unclear,
    /// The plugin cannot be tested: each of its functions costs money or contacts a person.
    NotTestable,
}

impl ProbeOutcome {
    /// Returns the outcome as a sentence, without text from the provider or the plugin.
    pub fn detail(self, provider: &str) -> String {
        let sentence = match self {
            ProbeOutcome::Accepted => "NAME was reached and accepted the credentials",
            ProbeOutcome::CredentialsRefused => "NAME was reached and refused the credentials",
            ProbeOutcome::Forbidden => {
                "the request to NAME is not permitted: check its URL settings"
            }
            ProbeOutcome::Unreachable => "NAME could not be reached",
            ProbeOutcome::TimedOut => "NAME did not respond in time",
            ProbeOutcome::Unavailable => "NAME is unavailable, try again later",
            ProbeOutcome::Unclear => {
                "the response of NAME does not show whether the credentials are valid: check its URL settings"
            }
            ProbeOutcome::NotTestable => {
                "NAME cannot be tested without a paid call: an SMS gateway would send a message, \
                 a register would look up a person, \
                 a provider without lookup by reference would send a prompt to a payer"
            }
        };
        sentence.replace("NAME", provider)
    }
}

/// Returns the outcome, and the fault code if there is one.
pub async fn probe(app: &App, account: &Account) -> Result<(ProbeOutcome, String)> {
    let name = &account.provider;
    if app.plugins.get(name).is_some_and(|plugin| plugin.manifest().kind != PluginKind::Provider) {
        return Ok((ProbeOutcome::NotTestable, String::new()));
    }
    let provider = app.plugins.provider(name, Owner::from(&account.owner).column())?;
    if provider.manifest().sessions.is_found_by_state() {
        return Ok((ProbeOutcome::NotTestable, String::new()));
    }
    let reference = unknown_reference(&provider.manifest().reference, &app.new_id());
    let mut credentials = account.open_credentials(app)?;
    let now = app.clock.now();
    let first = verify(&provider, &credentials, &reference, now).await;
    if first.0 != ProbeOutcome::Accepted {
        return Ok(first);
    }
    // A wrong base URL may return "not found" for any credentials: only a server that rejects wrong
    // secrets has checked the right ones.
    for name in provider.manifest().secrets.names() {
        if let Some(secret) = credentials.values.get_mut(name) {
            *secret = wrong_secret(&app.random, secret);
        }
    }
    // Use a separate cache: the valid secrets may have left an access token in theirs.
    credentials.id = format!("{}#{}", credentials.id, app.new_id());
    Ok(match verify(&provider, &credentials, &reference, now).await {
        (ProbeOutcome::CredentialsRefused, _) => first,
        (_, code) => (ProbeOutcome::Unclear, code),
    })
}

async fn verify(
    provider: &Provider,
    credentials: &Credentials,
    reference: &str,
    now: Timestamp,
) -> (ProbeOutcome, String) {
    let currency = provider.manifest().currencies.first().map_or("NGN", String::as_str);
    let session = KnownSession {
        service_ref: reference.to_owned(),
        transaction_id: String::new(),
        amount: Money { minor: Minor(100), currency: currency.into() },
        started_at: now.to_string(),
        state: None,
        notified: None,
    };
    match provider.query(credentials, &session).await {
        Ok(_) => (ProbeOutcome::Accepted, String::new()),
        Err(error) => match outcome_of(&error) {
            ProbeOutcome::Accepted => (ProbeOutcome::Accepted, String::new()),
            outcome => (outcome, plain_code(&error)),
        },
    }
}

/// Returns a random text in the format of the secret: only letters and digits are replaced.
fn wrong_secret(random: &Random, secret: &str) -> String {
    let like = |c: char| {
        let [byte] = random.bytes::<1>();
        match c {
            'a'..='z' => char::from(b'a' + byte % 26),
            'A'..='Z' => char::from(b'A' + byte % 26),
            '0'..='9' => char::from(b'0' + byte % 10),
            _ => c,
        }
    };
    secret.chars().map(like).collect()
}

/// Returns a reference that no payment has: random and alphanumeric, which every provider accepts.
fn unknown_reference(rules: &ReferenceRules, random: &str) -> String {
    // The random part of an id is its end.
    let from = random.len().saturating_sub(rules.max_length);
    random[from..].to_owned()
}

fn outcome_of(error: &CallError) -> ProbeOutcome {
    if error.timed_out {
        return ProbeOutcome::TimedOut;
    }
    match (error.fault.category, &*error.fault.code) {
        (FaultCategory::NotFound, _) => ProbeOutcome::Accepted,
        (FaultCategory::Misconfigured, "forbidden" | "not-granted") => ProbeOutcome::Forbidden,
        (FaultCategory::Misconfigured, _) => ProbeOutcome::CredentialsRefused,
        (FaultCategory::Unavailable, "connect" | "cut") => ProbeOutcome::Unreachable,
        (FaultCategory::Unavailable, "timeout") => ProbeOutcome::TimedOut,
        (FaultCategory::Unavailable, _) => ProbeOutcome::Unavailable,
        (FaultCategory::Invalid | FaultCategory::Refused | FaultCategory::Other, _) => {
            ProbeOutcome::Unclear
        }
    }
}

/// Returns the fault code without unusual characters, because it may be text from the upstream.
fn plain_code(error: &CallError) -> String {
    const MAX_CODE_CHARACTERS: usize = 60;
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(c);
    error.fault.code.chars().filter(is_plain).take(MAX_CODE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_plugins::Fault;

    #[test]
    fn faults_map_to_test_outcomes() {
        use FaultCategory::{Invalid, Misconfigured, NotFound, Other, Refused, Unavailable};
        for (category, code, timed_out, outcome) in [
            (NotFound, "", false, ProbeOutcome::Accepted),
            (Misconfigured, "", false, ProbeOutcome::CredentialsRefused),
            (Misconfigured, "forbidden", false, ProbeOutcome::Forbidden),
            (Misconfigured, "not-granted", false, ProbeOutcome::Forbidden),
            (Unavailable, "connect", false, ProbeOutcome::Unreachable),
            (Unavailable, "cut", false, ProbeOutcome::Unreachable),
            (Unavailable, "timeout", false, ProbeOutcome::TimedOut),
            (Unavailable, "", true, ProbeOutcome::TimedOut),
            (Unavailable, "http-503", false, ProbeOutcome::Unavailable),
            (Invalid, "", false, ProbeOutcome::Unclear),
            (Refused, "", false, ProbeOutcome::Unclear),
            (Other, Fault::PLUGIN_BROKE, false, ProbeOutcome::Unclear),
        ] {
            let fault = Fault::new(category, code, "");
            let error = CallError { timed_out, ..CallError::not_done(fault) };
            assert_eq!(outcome_of(&error), outcome, "{error:?}");
        }
    }

    #[test]
    fn a_wrong_secret_is_random_and_looks_like_the_right_one() {
        let secret = "sk_test_AB12-é";
        let [one, other] = [1, 2].map(|seed| wrong_secret(&Random::seeded(seed), secret));
        assert!(one != secret && one != other, "{one} {other}");
        for (right, wrong) in secret.chars().zip(one.chars()) {
            assert_eq!(right.is_ascii_lowercase(), wrong.is_ascii_lowercase(), "{one}");
            assert_eq!(right.is_ascii_uppercase(), wrong.is_ascii_uppercase(), "{one}");
            assert_eq!(right.is_ascii_digit(), wrong.is_ascii_digit(), "{one}");
        }
        assert_eq!(one.chars().count(), secret.chars().count());
    }

    #[test]
    fn the_reference_obeys_the_rules() {
        for (max_length, length) in [(100, 24), (24, 24), (12, 12)] {
            let rules = ReferenceRules { alphabet: String::new(), max_length, format: None };
            let reference = unknown_reference(&rules, "0123456789abcdef01234567");
            assert_eq!(reference.len(), length);
            assert!(rules.accepts(&reference), "{reference}");
        }
    }
}
