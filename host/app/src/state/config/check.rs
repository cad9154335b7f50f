//! Checks for settings that conflict or cannot be used.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use url::Url;

use super::Config;
use tollhouse_http::Endpoint;
use tollhouse_platform::{config::ConfigError, crypto::seal::Sealer, random::Random};
use tollhouse_plugins as plugins;

/// A shorter token can be guessed.
const MIN_TOKEN_CHARACTERS: usize = 20;

/// Returns all problems. Reads files, but contacts no other system.
pub fn problems(config: &Config) -> Vec<ConfigError> {
    let found = [
        config.database.url().map(drop),
        config.listeners.public().and_then(certificate),
        config.listeners.internal().and_then(certificate),
        operator_token(config),
        master_key(config),
        public_url(config),
        console_url(config),
        config.oidc.provider(config.service.development).map(drop),
        development(config),
        config.email.mailer().map(drop),
        plugin_cache(config),
        plugin_publishers(config),
        config.telemetry.check(),
    ];
    found.into_iter().filter_map(Result::err).collect()
}

/// Returns warnings about settings that work but are unsafe.
pub fn warnings(config: &Config) -> Vec<String> {
    let files = [
        ("operator_token_file", &config.operator_token.operator_token_file),
        ("master_key_file", &config.master_key.master_key_file),
        ("database_file", &config.database.database_file),
        ("smtp_password_file", &config.email.smtp_password_file),
        ("oidc_client_secret_file", &config.oidc.oidc_client_secret_file),
    ];
    let warning = |(key, file): (&str, &Option<PathBuf>)| {
        let file = file.as_ref()?;
        let is_open = fs::metadata(file).ok()?.permissions().mode() & 0o077 != 0;
        let file = file.display();
        is_open.then(|| format!("{key} {file} is accessible to other users: chmod 600"))
    };
    files.into_iter().filter_map(warning).collect()
}

fn reject(what: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError(what.into()))
}

fn certificate(endpoint: Endpoint) -> Result<(), ConfigError> {
    let Some(files) = &endpoint.tls else { return Ok(()) };
    files.check().map_err(|error| ConfigError(error.to_string()))
}

fn operator_token(config: &Config) -> Result<(), ConfigError> {
    let token = config.operator_token.read()?;
    if !token.bytes().all(|b| b.is_ascii_graphic()) || token.len() < MIN_TOKEN_CHARACTERS {
        return reject(format!(
            "the operator token must be at least {MIN_TOKEN_CHARACTERS} visible characters without spaces"
        ));
    }
    Ok(())
}

fn master_key(config: &Config) -> Result<(), ConfigError> {
    let keys = config.master_key.read()?;
    Sealer::new(&keys, Random::seeded(0)).map(drop).map_err(|error| ConfigError(error.to_string()))
}

fn public_url(config: &Config) -> Result<(), ConfigError> {
    let needs_tls = config.service.portal && !config.service.development;
    let is_origin = |url: &String| Url::parse(url).is_ok_and(|url| url.path() == "/");
    let is_valid = |url: &String| {
        Url::parse(url)
            .is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.query().is_none())
    };
    match &config.listeners.public_url {
        None if config.listeners.listen.ip().is_unspecified() => reject(
            "public_url is required for webhooks of providers, because listen is a wildcard address",
        ),
        Some(url) if !is_valid(url) => {
            reject("public_url must be an http or https URL without a query")
        }
        Some(url) if needs_tls && !url.starts_with("https:") => reject(
            "public_url must begin with https if portal is set, because the portal sets cookies",
        ),
        None if needs_tls => reject(
            "public_url is required if portal is set, because the portal's e-mails link to it",
        ),
        Some(url) if config.service.portal && !is_origin(url) => reject(
            "public_url must have no path if portal is set: the portal's links begin with /portal",
        ),
        _ => Ok(()),
    }
}

fn console_url(config: &Config) -> Result<(), ConfigError> {
    let is_valid = |url: &String| {
        Url::parse(url).is_ok_and(|url| {
            let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            let has_user = !url.username().is_empty() || url.password().is_some();
            ["http", "https"].contains(&url.scheme()) && is_origin && !has_user
        })
    };
    match &config.listeners.console_url {
        None if config.oidc.oidc_issuer.is_some()
            && config.listeners.internal_listen.ip().is_unspecified() =>
        {
            reject(
                "console_url is required with oidc_issuer, because internal_listen is a wildcard address",
            )
        }
        Some(url) if !is_valid(url) => {
            reject("console_url must be an http or https URL without a path")
        }
        _ => Ok(()),
    }
}

fn development(config: &Config) -> Result<(), ConfigError> {
    let listeners = [config.listeners.listen, config.listeners.internal_listen];
    if config.service.development && listeners.iter().any(|address| !address.ip().is_loopback()) {
        return reject(
            "development is for loopback only, because it allows clients to advance the clock: remove it, or listen on 127.0.0.1",
        );
    }
    Ok(())
}

fn plugin_publishers(config: &Config) -> Result<(), ConfigError> {
    if config.plugins.plugin_unsigned && !config.plugins.plugin_publishers.is_empty() {
        return reject(
            "plugin_unsigned also accepts plugins that none of plugin_publishers has signed: remove one of the two settings",
        );
    }
    Ok(())
}

fn plugin_cache(config: &Config) -> Result<(), ConfigError> {
    match config.plugins.plugin_cache.as_deref().and_then(plugins::cache_fault) {
        Some(fault) => reject(format!("plugin_cache: {fault}")),
        None => Ok(()),
    }
}
