//! Settings of the OpenID provider with which operators sign in.

use std::path::PathBuf;

use openidconnect::{ClientId, ClientSecret, IssuerUrl};

use tollhouse_platform::{
    config::{ConfigError, secrets, settings},
    outbound::egress::{Egress, EgressPolicy},
};

settings! {
    "Sign-in" OpenIdSettings;
    /// Issuer URL of the OpenID provider with which people sign in to the console. Without it, they
    /// sign in with passwords
    oidc_issuer: Option<String>, "TOLLHOUSE_OIDC_ISSUER", "URL";
    /// Client id of this service at the OpenID provider. Required with `oidc_issuer`
    oidc_client_id: Option<String>, "TOLLHOUSE_OIDC_CLIENT_ID", "text";
    /// File with the client secret of `oidc_client_id`. Without it, TOLLHOUSE_OIDC_CLIENT_SECRET
    /// contains it
    oidc_client_secret_file: Option<PathBuf>, "TOLLHOUSE_OIDC_CLIENT_SECRET_FILE", "file";
    /// Name of the OpenID provider on the sign-in page
    oidc_name: String, "TOLLHOUSE_OIDC_NAME", "text", default_value = "OpenID Connect";
}

/// The OpenID provider of the settings.
#[derive(Clone, Debug)]
pub struct OpenIdProvider {
    pub issuer: IssuerUrl,
    pub client_id: ClientId,
    /// Hidden in debug output.
    pub client_secret: ClientSecret,
    /// What people call it.
    pub name: String,
    /// Development: http to loopback.
    pub allow_loopback: bool,
}

impl OpenIdSettings {
    /// Returns `None` if `oidc_issuer` is not set.
    pub fn provider(&self, development: bool) -> Result<Option<OpenIdProvider>, ConfigError> {
        let secret =
            secrets::read(self.oidc_client_secret_file.as_deref(), secrets::OIDC_CLIENT_SECRET)?;
        let client_id = self.oidc_client_id.clone().filter(|id| !id.is_empty());
        let Some(issuer) = self.oidc_issuer.clone().filter(|issuer| !issuer.is_empty()) else {
            return match client_id.is_some() || secret.is_some() {
                true => reject("oidc_client_id and its secret require oidc_issuer"),
                false => Ok(None),
            };
        };
        let (Some(client_id), Some(secret)) = (client_id, secret) else {
            return reject(
                "oidc_issuer requires oidc_client_id and its secret: set oidc_client_secret_file to a file that contains the secret, or TOLLHOUSE_OIDC_CLIENT_SECRET to the secret itself",
            );
        };
        let provider = OpenIdProvider {
            issuer: IssuerUrl::new(issuer).map_err(|_| invalid("an absolute https URL"))?,
            client_id: ClientId::new(client_id),
            client_secret: ClientSecret::new(secret),
            name: self.oidc_name.clone(),
            allow_loopback: development,
        };
        let egress = Egress::new(provider.egress_policy());
        let egress = egress.map_err(|error| ConfigError(error.to_string()))?;
        egress.check_base(&provider.issuer).map_err(invalid)?;
        Ok(Some(provider))
    }
}

impl OpenIdProvider {
    /// Returns the destinations of requests to the provider: its host may have a private address,
    /// because the issuer is a setting. Other hosts that its metadata names must be public.
    pub fn egress_policy(&self) -> EgressPolicy {
        let host = self.issuer.url().host_str().map(str::to_owned);
        EgressPolicy {
            allow_loopback: self.allow_loopback,
            allow_private: host.into_iter().collect(),
        }
    }
}

fn invalid(what: &str) -> ConfigError {
    ConfigError(format!("oidc_issuer must be {what}"))
}

fn reject<T>(what: &str) -> Result<T, ConfigError> {
    Err(ConfigError(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any file that is not empty.
    const SECRET_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

    fn settings(issuer: &str, client_id: &str) -> OpenIdSettings {
        OpenIdSettings {
            oidc_issuer: Some(issuer.to_owned()),
            oidc_client_id: Some(client_id.to_owned()),
            oidc_client_secret_file: Some(PathBuf::from(SECRET_FILE)),
            oidc_name: "the provider".to_owned(),
        }
    }

    #[test]
    fn an_issuer_needs_https_except_on_loopback_in_development() {
        for (issuer, production, development) in [
            ("https://login.example.com", true, true),
            ("https://login.example.com/realms/lender", true, true),
            ("https://10.0.0.5:8443", true, true), // a private provider
            ("http://login.example.com", false, false),
            ("http://10.0.0.5", false, false),
            ("http://127.0.0.1:9", false, true),
            ("https://login.example.com/?tenant=1", false, false),
            ("login.example.com", false, false),
        ] {
            let provider = |development| settings(issuer, "tollhouse").provider(development);
            let accepted = [false, true].map(|development| match provider(development) {
                Ok(provider) => provider.is_some(),
                Err(error) => {
                    assert!(error.0.starts_with("oidc_issuer must be"), "{error}");
                    false
                }
            });
            assert_eq!(accepted, [production, development], "{issuer}");
        }
    }

    #[test]
    fn the_settings_belong_together() {
        let alone = settings("https://login.example.com", "").provider(false);
        assert!(alone.unwrap_err().0.starts_with("oidc_issuer requires oidc_client_id"));
        let alone = settings("", "tollhouse").provider(false);
        assert!(alone.unwrap_err().0.ends_with("require oidc_issuer"));
        let none = OpenIdSettings { oidc_client_secret_file: None, ..settings("", "") };
        assert!(none.provider(false).unwrap().is_none());
    }
}
