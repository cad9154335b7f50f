//! Settings of the listeners: addresses and TLS.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args};

use crate::{Endpoint, TlsFiles};
use tollhouse_platform::config::ConfigError;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Listeners")]
pub struct ListenerSettings {
    /// Address of the public listener: the API and the webhooks of providers
    #[arg(
        long,
        env = "TOLLHOUSE_LISTEN",
        value_name = "address",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// PEM file with the certificate chain of the public listener. Reloaded when it changes
    #[arg(long, env = "TOLLHOUSE_TLS_CERTIFICATE", value_name = "file")]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the private key of that certificate. Reloaded when it changes
    #[arg(long, env = "TOLLHOUSE_TLS_KEY", value_name = "file")]
    pub tls_key: Option<PathBuf>,
    /// Allow plain HTTP for the API beyond loopback, behind a proxy that terminates TLS
    #[arg(long, env = "TOLLHOUSE_PLAIN_HTTP", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub plain_http: bool,
    /// Address of the internal listener, for operators
    #[arg(
        long,
        env = "TOLLHOUSE_INTERNAL_LISTEN",
        value_name = "address",
        default_value = "127.0.0.1:8081"
    )]
    pub internal_listen: SocketAddr,
    /// PEM file with the certificate chain of the internal listener. Reloaded when it changes
    #[arg(long, env = "TOLLHOUSE_INTERNAL_TLS_CERTIFICATE", value_name = "file")]
    pub internal_tls_certificate: Option<PathBuf>,
    /// PEM file with the private key of that certificate. Reloaded when it changes
    #[arg(long, env = "TOLLHOUSE_INTERNAL_TLS_KEY", value_name = "file")]
    pub internal_tls_key: Option<PathBuf>,
    /// Allow plain HTTP for the internal interface beyond loopback
    #[arg(long, env = "TOLLHOUSE_INTERNAL_PLAIN_HTTP", value_name = "bool", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub internal_plain_http: bool,
    /// Base URL for the webhooks of providers and the portal. Without it, the address of `listen`
    #[arg(long, env = "TOLLHOUSE_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// Base URL at which browsers reach the console, without a path. Without it, the address of
    /// `internal_listen`
    #[arg(long, env = "TOLLHOUSE_CONSOLE_URL", value_name = "URL")]
    pub console_url: Option<String>,
}

impl ListenerSettings {
    #[must_use]
    pub fn public_url(&self) -> String {
        let scheme = if self.tls_certificate.is_some() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{}", self.listen))
    }

    /// Returns the base URL of the console, without a slash at its end.
    #[must_use]
    pub fn console_url(&self) -> String {
        let scheme = if self.internal_tls_certificate.is_some() { "https" } else { "http" };
        let listener = || format!("{scheme}://{}", self.internal_listen);
        let url = self.console_url.clone().unwrap_or_else(listener);
        url.trim_end_matches('/').to_owned()
    }

    /// Returns the endpoint of the public listener.
    pub fn public(&self) -> Result<Endpoint, ConfigError> {
        let (certificate, key) = (self.tls_certificate.as_ref(), self.tls_key.as_ref());
        endpoint("", self.listen, certificate, key, self.plain_http)
    }

    /// Returns the endpoint of the internal listener.
    pub fn internal(&self) -> Result<Endpoint, ConfigError> {
        let (certificate, key) =
            (self.internal_tls_certificate.as_ref(), self.internal_tls_key.as_ref());
        endpoint("internal_", self.internal_listen, certificate, key, self.internal_plain_http)
    }
}

/// Refuses to send keys unencrypted beyond loopback, unless `plain_http` is set.
fn endpoint(
    prefix: &str,
    address: SocketAddr,
    certificate: Option<&PathBuf>,
    key: Option<&PathBuf>,
    plain_http: bool,
) -> Result<Endpoint, ConfigError> {
    let refuse = |what| Err(ConfigError(what));
    let tls = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        (None, None) => None,
        _ => {
            return refuse(format!(
                "{prefix}tls_certificate and {prefix}tls_key must be set together"
            ));
        }
    };
    match tls {
        Some(_) if plain_http => {
            refuse(format!("{prefix}plain_http and {prefix}tls_certificate exclude each other"))
        }
        None if !plain_http && !address.ip().is_loopback() => refuse(format!(
            "{prefix}listen {address} is not loopback and would serve plain HTTP: set {prefix}tls_certificate and \
             {prefix}tls_key, or {prefix}plain_http if a proxy in front of it terminates TLS"
        )),
        tls => Ok(Endpoint { address, tls }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_allowed_on_loopback_or_if_set() {
        let (file, no_file) = (PathBuf::from("file.pem"), None);
        let (file, loopback, network) = (Some(&file), "127.0.0.1:8080", "0.0.0.0:8080");
        for (address, certificate, key, plain_http, refused) in [
            (loopback, no_file, no_file, false, None),
            ("[::1]:8080", no_file, no_file, false, None),
            (loopback, no_file, no_file, true, None),
            (network, no_file, no_file, true, None),
            (network, file, file, false, None),
            (network, no_file, no_file, false, Some("or internal_plain_http if a proxy")),
            ("[::]:8080", no_file, no_file, false, Some("internal_listen [::]:8080 is not")),
            ("192.168.1.1:1", no_file, no_file, false, Some("set internal_tls_certificate and")),
            (network, file, file, true, Some("exclude each other")),
            (loopback, file, no_file, false, Some("must be set together")),
            (loopback, no_file, file, false, Some("must be set together")),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            let found = endpoint("internal_", address, certificate, key, plain_http);
            match (found, refused) {
                (Ok(_), None) => {}
                (Err(error), Some(part)) if error.0.contains(part) => {}
                (found, _) => panic!("{address} {certificate:?} {plain_http}: {found:?}"),
            }
        }
    }
}
